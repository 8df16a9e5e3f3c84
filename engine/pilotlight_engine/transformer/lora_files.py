"""A LoRA adapter in PEFT's format, from its folder: `adapter_config.json` and `adapter_model.safetensors`.

What this engine cannot apply exactly as PEFT does is refused by name: DoRA, trained biases, whole modules, embeddings.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file

from pilotlight_engine.engine_port import AdapterSource, EngineRefusal
from pilotlight_engine.scheduling.adapter_shelf import KnownAdapter

CONFIG = "adapter_config.json"
WEIGHTS = "adapter_model.safetensors"
PREFIX = "base_model.model."
KEY = re.compile(r"(?P<module>.+)\.lora_(?P<side>[AB])\.weight")
READ = 1 << 20


@dataclass(frozen=True, kw_only=True, slots=True)
class LoraWeights:
    """One adapter: for each module that it changes two matrices, the second times the adapter's scale."""

    down: dict[str, torch.Tensor]
    """`[rank, inputs]` by the module's path."""
    up: dict[str, torch.Tensor]
    """`[outputs, rank]`."""


def known_adapter(source: AdapterSource) -> KnownAdapter:
    """What a shelf has to know of an adapter before it is loaded. Raises `EngineRefusal`."""
    weights = source.folder / WEIGHTS
    try:
        size = weights.stat().st_size
        digest = source.digest or _digest_of((source.folder / CONFIG, weights))
    except OSError as error:
        raise _refusal(source.name, f"{CONFIG} and {WEIGHTS} cannot both be read: {error.strerror}") from error
    return KnownAdapter(source=source, digest=digest, bytes=size)


def read_adapter(
    source: AdapterSource, modules: Mapping[str, tuple[int, int]], dtype: torch.dtype, device: torch.device
) -> LoraWeights:
    """An adapter for a model whose linear modules have these inputs and outputs. Raises `EngineRefusal`."""
    try:
        config = json.loads((source.folder / CONFIG).read_text())
        tensors = load_file(source.folder / WEIGHTS)
    except Exception as error:
        raise _refusal(source.name, f"its files cannot be read: {error}") from error
    _check_config(source.name, config)
    sides: dict[str, dict[str, torch.Tensor]] = {"A": {}, "B": {}}
    for name, tensor in tensors.items():
        match = KEY.fullmatch(name.removeprefix(PREFIX))
        if match is None or match["module"] not in modules:
            raise _refusal(source.name, f"it changes {name}, which is no linear layer between a model's embeddings")
        sides[match["side"]][match["module"]] = tensor
    if set(sides["A"]) != set(sides["B"]):
        raise _refusal(source.name, "some lora_A has no lora_B, or the other way round")
    for path, down in sides["A"].items():
        inputs, outputs = modules[path]
        up = sides["B"][path]
        if not down.ndim or down.shape != (down.shape[0] or -1, inputs) or up.shape != (outputs, down.shape[0]):
            shapes = f"{tuple(down.shape)} and {tuple(up.shape)}"
            raise _refusal(source.name, f"{path} has {inputs} inputs and {outputs} outputs; its matrices are {shapes}")
    return LoraWeights(
        down={path: down.to(device, dtype) for path, down in sides["A"].items()},
        up={
            path: (up.float() * _scale_of(config, path, sides["A"][path].shape[0])).to(device, dtype)
            for path, up in sides["B"].items()
        },
    )


def _check_config(name: str, config: Any) -> None:
    if not isinstance(config, dict) or config.get("peft_type") != "LORA":
        raise _refusal(name, f"{CONFIG} does not say peft_type LORA")
    refused = ("use_dora", "modules_to_save", "trainable_token_indices", "target_parameters", "alora_invocation_tokens")
    for field in refused:
        if config.get(field):
            raise _refusal(name, f"{CONFIG} has {field}; adapters are plain LoRA here")
    if config.get("bias", "none") != "none" or config.get("lora_bias"):
        raise _refusal(name, f"{CONFIG} has trained biases; adapters are plain LoRA here")
    if not isinstance(config.get("lora_alpha", 8), int | float):
        raise _refusal(name, f"{CONFIG} has no number as lora_alpha")
    pattern = config.get("alpha_pattern") or {}
    if not isinstance(pattern, dict) or not all(isinstance(each, int | float) for each in pattern.values()):
        raise _refusal(name, f"{CONFIG} has no numbers as alpha_pattern")


def _scale_of(config: Mapping[str, Any], path: str, rank: int) -> float:
    """PEFT's: alpha over the rank, or over its root."""
    alpha = float(config.get("lora_alpha", 8))
    for pattern, value in (config.get("alpha_pattern") or {}).items():
        if path == pattern or path.endswith(f".{pattern}"):
            alpha = float(value)
    return alpha / (rank**0.5 if config.get("use_rslora") else rank)


def _digest_of(paths: tuple[Path, ...]) -> str:
    digest = hashlib.sha256()
    for path in paths:
        with path.open("rb") as file:
            while piece := file.read(READ):
                digest.update(piece)
    return digest.hexdigest()


def _refusal(name: str, why: str) -> EngineRefusal:
    return EngineRefusal("no_adapter", f"adapter {name!r}: {why}", "adapter")
