"""LoRA adapters of tiny models, written by PEFT itself."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from peft import LoraConfig, PeftModel, get_peft_model

from tests.engine.transformer.tiny_models import reference

TARGETS = {"gpt2": ["c_attn", "c_proj", "c_fc"]}
DEFAULT = ["q_proj", "v_proj", "o_proj", "down_proj"]


def save_adapter(model_folder: Path, kind: str, folder: Path, seed: int, **changed: Any) -> Path:
    """An adapter with random weights, none of them zero."""
    torch.manual_seed(seed)
    asked = {"r": 4, "lora_alpha": 16, "target_modules": TARGETS.get(kind, DEFAULT), "init_lora_weights": False}
    config = LoraConfig(**{**asked, "fan_in_fan_out": kind == "gpt2", **changed})
    get_peft_model(reference(model_folder), config).save_pretrained(folder)
    return folder


def with_adapter(model_folder: Path, folder: Path) -> torch.nn.Module:
    """The model with an adapter, as PEFT runs it."""
    model: torch.nn.Module = PeftModel.from_pretrained(reference(model_folder), folder)
    return model.eval()
