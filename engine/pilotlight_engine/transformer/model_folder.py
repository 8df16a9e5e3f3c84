"""A model in a folder: `config.json`, weights as safetensors, and what ends a text by `generation_config.json`."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path

import torch
import transformers

from pilotlight_engine.architectures import ModelShape, UnknownArchitecture, shape_of
from pilotlight_engine.model_files import CONFIG_FILE, GENERATION_FILE, end_ids_of, read_object
from pilotlight_engine.transformer.paged_attention import NAME, register_attention

DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}


@dataclass(frozen=True, kw_only=True, slots=True)
class ModelFolder:
    """What a folder says of its model, before the weights are read."""

    folder: Path
    shape: ModelShape
    eos_ids: frozenset[int]
    dtype: torch.dtype
    version: str
    """Of its configuration and of its files' sizes."""

    def load(self, device: torch.device) -> torch.nn.Module:
        """The model on a device, with the attention of this engine."""
        register_attention()
        of_architecture = getattr(transformers, self.shape.architecture)
        model: torch.nn.Module = of_architecture.from_pretrained(
            self.folder,
            dtype=self.dtype,
            attn_implementation=NAME,
            local_files_only=True,
            use_safetensors=True,
            trust_remote_code=False,
        )
        model.requires_grad_(requires_grad=False)
        return model.to(device).eval()


def read_model_folder(folder: Path, dtype: str = "auto") -> ModelFolder:
    """What a folder says of its model. Raises `UnknownArchitecture` with what is wrong."""
    config = read_object(folder / CONFIG_FILE)
    if config is None:
        raise UnknownArchitecture(f"there is no config.json in {folder.name}/, or it is no JSON object")
    weights = sorted(folder.glob("*.safetensors"))
    if not weights:
        raise UnknownArchitecture(f"there are no *.safetensors in {folder.name}/; weights in other forms are not read")
    named = config.get("dtype") or config.get("torch_dtype") or "float32" if dtype == "auto" else dtype
    if not isinstance(named, str) or named not in DTYPES:
        raise UnknownArchitecture(f"dtype is one of {', '.join(DTYPES)}, not {named}")
    digest = hashlib.sha256((folder / CONFIG_FILE).read_bytes())
    for path in weights:
        digest.update(f"{path.name} {path.stat().st_size}\n".encode())
    return ModelFolder(
        folder=folder,
        shape=shape_of(config),
        eos_ids=end_ids_of(config, read_object(folder / GENERATION_FILE) or {}),
        dtype=DTYPES[str(named)],
        version=digest.hexdigest(),
    )
