"""Adapters, several in one step, against PEFT."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from pilotlight_engine.engine_port import AdapterSource
from pilotlight_engine.transformer.lora_layers import LoraLayers
from tests.engine.generations import request, run
from tests.engine.transformer.test_torch_engine import NEW, engine, prompts
from tests.engine.transformer.tiny_adapters import save_adapter, with_adapter
from tests.engine.transformer.tiny_models import greedy, reference

KINDS: dict[str, list[dict[str, Any]]] = {
    "qwen3": [{}, {"r": 8, "use_rslora": True, "alpha_pattern": {"layers.1.self_attn.q_proj": 64}}],
    "gpt2": [{}, {"rank_pattern": {"c_fc": 2}}],
}


@pytest.mark.filterwarnings("ignore:`is_gradient_checkpointing`:FutureWarning")  # PEFT asks transformers for it
@pytest.mark.parametrize("kind", KINDS)
def test_adapters_mixed_in_one_batch_are_equal_to_peft(
    kind: str, model_folder: Callable[[str], Path], tmp_path: Path
) -> None:
    """With equal prompts, chunks and stored prefixes: none reads what another stored."""
    folder = model_folder(kind)
    sources = [
        AdapterSource(name=name, folder=save_adapter(folder, kind, tmp_path / name, seed, **changed))
        for seed, (name, changed) in enumerate(zip(("one", "two"), KINDS[kind], strict=True))
    ]
    models = {"": reference(folder), **{each.name: with_adapter(folder, each.folder) for each in sources}}
    made = engine(folder)
    for source in sources:
        made.load_adapter(source)
    asked = [
        request(f"{name}-{number}", ids, NEW, adapter=name)
        for number, ids in enumerate(prompts()[2:4])
        for name in models
    ]
    expected = {each.id: greedy(models[each.adapter], each.prompt_ids, NEW) for each in asked}
    ran = run(made, *asked)
    again = run(made, *(replace(each, id=f"again-{each.id}") for each in asked))

    assert len({tuple(tokens) for tokens in expected.values()}) == 6
    assert ran.tokens == expected
    assert {name.removeprefix("again-"): tokens for name, tokens in again.tokens.items()} == expected
    assert {each.usage.cached_tokens for each in again.finished.values()} == {16, 36}


def test_layers_have_sizes_and_the_last_one_is_none_of_them(model_folder: Callable[[str], Path]) -> None:
    """Both kinds of linear layers."""
    sizes = LoraLayers(reference(model_folder("llama"))).sizes()
    conv = LoraLayers(reference(model_folder("gpt2"))).sizes()

    assert sizes["model.layers.0.mlp.down_proj"] == (64, 32)
    assert conv["transformer.h.0.attn.c_attn"] == (32, 96)
    assert "lm_head" not in {*sizes, *conv}


def test_without_adapters_layers_are_as_before(model_folder: Callable[[str], Path]) -> None:
    """A step with one leaves nothing behind."""
    layers = LoraLayers(reference(model_folder("llama")))
    assert not layers.in_use
    layers.use(())
    assert not layers.in_use
    assert torch.is_inference_mode_enabled() is False
