"""Which models the engine on torch runs: those whose every detail is held against `generate()` by its tests."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

LEAST_ATTENTION_TOKENS = 1024
"""In a small model a token's other costs, which grow with nothing, count for more than its matrices."""


class UnknownArchitecture(Exception):
    """A model that this engine does not run."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ModelShape:
    """What of a model's `config.json` decides how much memory a sequence takes, and how long it may be."""

    architecture: str
    vocabulary: int
    max_sequence: int
    layers: int
    heads: int
    kv_heads: int
    head_size: int
    hidden: int
    intermediate: int
    tied: bool
    """The last layer's weights are the embeddings'."""
    gated: bool
    """The feed-forward part has three matrices, not two."""

    @property
    def attention_tokens(self) -> int:
        """How many tokens before it cost a token as much again as the layers' matrices do: each takes two products of
        the width of all heads.
        """
        heads, kv_heads = self.heads * self.head_size, self.kv_heads * self.head_size
        matrices = self.hidden * (2 * heads + 2 * kv_heads + (3 if self.gated else 2) * self.intermediate)
        return max(LEAST_ATTENTION_TOKENS, matrices // (2 * heads))


ALLOWED = {
    "GPT2LMHeadModel": "GPT-2",
    "GemmaForCausalLM": "Gemma",
    "Gemma2ForCausalLM": "Gemma 2",
    "Gemma3ForCausalLM": "Gemma 3, text only",
    "LlamaForCausalLM": "Llama",
    "MistralForCausalLM": "Mistral",
    "Qwen2ForCausalLM": "Qwen2",
    "Qwen3ForCausalLM": "Qwen3",
}
"""Class of `config.json` -> what people call it."""

TIED_BY_DEFAULT = ("GPT2LMHeadModel", "GemmaForCausalLM", "Gemma2ForCausalLM", "Gemma3ForCausalLM")


def architecture_name(folder: Path) -> str:
    """The class that the `config.json` of a folder names, allowed or not; empty if it names none."""
    try:
        named = json.loads((folder / "config.json").read_text())["architectures"][0]
    except (OSError, ValueError, KeyError, IndexError, TypeError):
        return ""
    return str(named)


def architecture_of(config: Mapping[str, Any]) -> str:
    """The class that `config.json` names. Raises `UnknownArchitecture`, with what to do."""
    named = config.get("architectures") or ["none"]
    name = str(named[0])
    if name not in ALLOWED:
        text = f"config.json names the architecture {name}; the engine on torch runs {', '.join(sorted(ALLOWED))}"
        raise UnknownArchitecture(f"{text}. Use VLLM(...) for others.")
    if config.get("quantization_config"):
        raise UnknownArchitecture("the weights are quantised; the engine on torch runs plain ones. Use VLLM(...).")
    if config.get("use_bidirectional_attention") or config.get("add_cross_attention"):
        raise UnknownArchitecture(f"this {name} does not look back only, as it has to here. Use VLLM(...).")
    return name


def shape_of(config: Mapping[str, Any]) -> ModelShape:
    """The shape by `config.json`, as the file of the architecture has it. Raises `UnknownArchitecture`."""
    name = architecture_of(config)
    try:
        return _gpt2_shape(name, config) if name == "GPT2LMHeadModel" else _llama_like_shape(name, config)
    except (KeyError, TypeError, ValueError) as error:
        raise UnknownArchitecture(f"config.json of this {name} lacks {error}, or it is no number") from error


def _gpt2_shape(name: str, config: Mapping[str, Any]) -> ModelShape:
    hidden, heads = int(config["n_embd"]), int(config["n_head"])
    return ModelShape(
        architecture=name,
        vocabulary=int(config["vocab_size"]),
        max_sequence=int(config["n_positions"]),
        layers=int(config["n_layer"]),
        heads=heads,
        kv_heads=heads,
        head_size=hidden // heads,
        hidden=hidden,
        intermediate=int(config.get("n_inner") or 4 * hidden),
        tied=bool(config.get("tie_word_embeddings", True)),
        gated=False,
    )


def _llama_like_shape(name: str, config: Mapping[str, Any]) -> ModelShape:
    hidden, heads = int(config["hidden_size"]), int(config["num_attention_heads"])
    return ModelShape(
        architecture=name,
        vocabulary=int(config["vocab_size"]),
        max_sequence=int(config["max_position_embeddings"]),
        layers=int(config["num_hidden_layers"]),
        heads=heads,
        kv_heads=int(config.get("num_key_value_heads") or heads),
        head_size=int(config.get("head_dim") or hidden // heads),
        hidden=hidden,
        intermediate=int(config["intermediate_size"]),
        tied=bool(config.get("tie_word_embeddings", name in TIED_BY_DEFAULT)),
        gated=True,
    )
