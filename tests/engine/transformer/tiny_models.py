"""Tiny models with random weights, as folders: one for each architecture that the engine runs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import torch
import transformers

VOCABULARY = 128
COMMON = {
    "vocab_size": VOCABULARY,
    "hidden_size": 32,
    "intermediate_size": 64,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 512,
    "bos_token_id": None,
    "eos_token_id": None,
    "pad_token_id": None,
}
WINDOW = 24
"""Shorter than most sequences of the tests."""

CONFIGS: dict[str, tuple[str, dict[str, Any]]] = {
    "llama": ("LlamaForCausalLM", COMMON),
    "qwen2": (
        "Qwen2ForCausalLM",
        {**COMMON, "use_sliding_window": True, "sliding_window": WINDOW, "max_window_layers": 1},
    ),
    "qwen3": ("Qwen3ForCausalLM", {**COMMON, "head_dim": 16, "tie_word_embeddings": True}),
    "mistral": ("MistralForCausalLM", {**COMMON, "sliding_window": WINDOW}),
    "gemma": ("GemmaForCausalLM", {**COMMON, "head_dim": 16, "num_key_value_heads": 1}),
    "gemma2": (
        "Gemma2ForCausalLM",
        {
            **COMMON,
            "head_dim": 16,
            "sliding_window": WINDOW,
            "attn_logit_softcapping": 5.0,
            "query_pre_attn_scalar": 16,
        },
    ),
    "gemma3": (
        "Gemma3ForCausalLM",
        {
            **COMMON,
            "head_dim": 16,
            "sliding_window": WINDOW,
            "query_pre_attn_scalar": 16,
            "layer_types": ["sliding_attention", "full_attention", "sliding_attention"],
        },
    ),
    "gpt2": (
        "GPT2LMHeadModel",
        {
            "vocab_size": VOCABULARY,
            "n_embd": 32,
            "n_layer": 3,
            "n_head": 4,
            "n_positions": 512,
            "bos_token_id": None,
            "eos_token_id": None,
        },
    ),
}
SHARP = 6.0
"""Layers' weights are so much wider than usual: with the usual ones random models say much the same everywhere."""
FAINT = 0.3
"""Embeddings are narrower: where they are the last layer too, a model would only repeat its input."""


def save_model(kind: str, folder: Path, seed: int = 0, **changed: Any) -> Path:
    """Write a model of random weights to a folder, as its users would have it."""
    name, config = CONFIGS[kind]
    model = getattr(transformers, name)
    torch.manual_seed(seed)
    made = model(model.config_class(**{**config, **changed}))
    with torch.no_grad():
        for path, parameter in made.named_parameters():
            if parameter.dim() > 1:
                parameter.mul_(FAINT if "embed_tokens" in path or "wte" in path else SHARP)
    made.save_pretrained(folder)
    (folder / "generation_config.json").unlink(missing_ok=True)
    return folder


def reference(folder: Path) -> torch.nn.Module:
    """The same model, as transformers runs it."""
    named = json.loads((folder / "config.json").read_text())["architectures"][0]
    loaded: torch.nn.Module = getattr(transformers, named).from_pretrained(folder, attn_implementation="eager")
    return loaded.eval()


@torch.no_grad()
def greedy(model: Any, prompt: tuple[int, ...], count: int) -> list[int]:
    """What `generate()` makes of a prompt."""
    ids = torch.tensor([prompt])
    made = model.generate(
        ids, attention_mask=torch.ones_like(ids), max_new_tokens=count, do_sample=False, pad_token_id=0
    )
    return [int(token) for token in made[0, len(prompt) :]]


@torch.no_grad()
def logprobs_after(model: Any, prompt: tuple[int, ...], tokens: list[int]) -> torch.Tensor:
    """The distribution before each of `tokens`, from one pass over everything, without anything stored."""
    logits = model(torch.tensor([[*prompt, *tokens]]), use_cache=False).logits[0]
    return torch.log_softmax(logits[len(prompt) - 1 : -1].float(), dim=-1)
