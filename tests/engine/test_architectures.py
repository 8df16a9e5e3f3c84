"""Which models the engine on torch runs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from pilotlight_engine.architectures import ALLOWED, UnknownArchitecture, architecture_name, architecture_of, shape_of

LLAMA: dict[str, Any] = {
    "architectures": ["LlamaForCausalLM"],
    "vocab_size": 128_256,
    "hidden_size": 4096,
    "intermediate_size": 14_336,
    "num_hidden_layers": 32,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "max_position_embeddings": 131_072,
}
GPT2 = {"architectures": ["GPT2LMHeadModel"], "vocab_size": 50_257, "n_embd": 768, "n_head": 12, "n_layer": 12,
        "n_positions": 1024}  # fmt: skip


def test_a_shape_is_read_as_the_architecture_has_it() -> None:
    """With what it means if nothing is said."""
    llama, gpt2 = shape_of(LLAMA), shape_of(GPT2)

    assert (llama.head_size, llama.kv_heads, llama.tied, llama.gated) == (128, 8, False, True)
    assert (gpt2.head_size, gpt2.kv_heads, gpt2.intermediate, gpt2.tied, gpt2.gated) == (64, 12, 3072, True, False)
    assert shape_of({**LLAMA, "head_dim": 64, "num_key_value_heads": None}).kv_heads == 32
    assert shape_of({**LLAMA, "architectures": ["GemmaForCausalLM"]}).tied


@pytest.mark.parametrize("config", [{}, {"architectures": ["PhiForCausalLM"]}, {"architectures": None}])
def test_others_are_refused_by_name_with_what_to_do(config: dict[str, Any]) -> None:
    """And the list of those that run."""
    with pytest.raises(UnknownArchitecture, match=r"LlamaForCausalLM.*Use VLLM") as refused:
        architecture_of(config)

    assert all(name in str(refused.value) for name in ALLOWED)
    assert str((config.get("architectures") or ["none"])[0]) in str(refused.value)


@pytest.mark.parametrize("field", ["quantization_config", "use_bidirectional_attention", "add_cross_attention"])
def test_what_would_not_be_exact_is_refused(field: str) -> None:
    """Though its name is allowed."""
    with pytest.raises(UnknownArchitecture, match="VLLM"):
        architecture_of({**LLAMA, field: True})


def test_a_shape_that_is_not_there_is_named() -> None:
    """By the field."""
    with pytest.raises(UnknownArchitecture, match="hidden_size"):
        shape_of({name: value for name, value in LLAMA.items() if name != "hidden_size"})


@pytest.mark.parametrize(
    "config",
    [
        {**LLAMA, "num_attention_heads": 0},
        {**LLAMA, "num_key_value_heads": -1},
        {**LLAMA, "num_hidden_layers": 10**30},
        {**LLAMA, "max_position_embeddings": 0},
        {**LLAMA, "hidden_size": float("inf")},
        {**LLAMA, "hidden_size": 10**400},
        {**LLAMA, "hidden_size": "9" * 5000},
        {**GPT2, "n_head": 0},
        {**LLAMA, "architectures": {"a": 1}},
        {**LLAMA, "architectures": 5},
    ],
)
def test_a_hostile_configuration_is_refused_as_any_that_does_not_fit(config: dict[str, Any]) -> None:
    """A gateway reads it: no number of it is divided by, or is too large for a message."""
    with pytest.raises(UnknownArchitecture):
        shape_of(config)


def test_a_folder_s_architecture_is_read_without_judging(tmp_path: Path) -> None:
    """It is empty where there is none."""
    assert architecture_name(tmp_path) == ""
    (tmp_path / "config.json").write_text(json.dumps({"architectures": ["Any"]}))
    assert architecture_name(tmp_path) == "Any"
