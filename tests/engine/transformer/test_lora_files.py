"""Adapters from their files: what cannot be applied exactly is refused by name."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import save_file

from pilotlight_engine.engine_port import AdapterSource, EngineRefusal
from pilotlight_engine.transformer.lora_files import known_adapter, read_adapter

MODULES = {"model.layers.0.self_attn.q_proj": (8, 6)}
KEY = "base_model.model.model.layers.0.self_attn.q_proj"


def _write(folder: Path, config: Any = None, **tensors: torch.Tensor) -> AdapterSource:
    folder.mkdir(exist_ok=True)
    (folder / "adapter_config.json").write_text(json.dumps({"peft_type": "LORA", "lora_alpha": 8, **(config or {})}))
    named = {
        f"{KEY}.lora_A.weight": torch.ones(2, 8),
        f"{KEY}.lora_B.weight": torch.ones(6, 2),
        **tensors,
    }
    save_file(named, folder / "adapter_model.safetensors")
    return AdapterSource(name="mine", folder=folder)


def _read(source: AdapterSource) -> Any:
    return read_adapter(source, MODULES, torch.float32, torch.device("cpu"))


@pytest.mark.parametrize(
    ("config", "scale"),
    [
        ({}, 4.0),
        ({"use_rslora": True}, 8 / 2**0.5),
        ({"alpha_pattern": {"q_proj": 2}}, 1.0),
        ({"alpha_pattern": {"layers.0.self_attn.q_proj": 2}}, 1.0),
        ({"alpha_pattern": {"j": 2}}, 4.0),
    ],
)
def test_the_scale_is_peft_s(config: dict[str, Any], scale: float, tmp_path: Path) -> None:
    """It is part of the second matrix."""
    weights = _read(_write(tmp_path, config))

    assert weights.up["model.layers.0.self_attn.q_proj"][0, 0] == pytest.approx(scale)
    assert weights.down["model.layers.0.self_attn.q_proj"].shape == (2, 8)


@pytest.mark.parametrize(
    ("config", "why"),
    [
        ({"peft_type": "IA3"}, "does not say peft_type LORA"),
        ({"use_dora": True}, "has use_dora"),
        ({"modules_to_save": ["lm_head"]}, "has modules_to_save"),
        ({"bias": "all"}, "trained biases"),
        ({"lora_alpha": "many"}, "no number as lora_alpha"),
        ({"alpha_pattern": ["q_proj"]}, "no numbers as alpha_pattern"),
        ({"alpha_pattern": {"q_proj": "8"}}, "no numbers as alpha_pattern"),
    ],
)
def test_what_is_not_plain_lora_is_refused(config: dict[str, Any], why: str, tmp_path: Path) -> None:
    """With the field."""
    with pytest.raises(EngineRefusal, match=f"adapter 'mine': .*{why}") as refused:
        _read(_write(tmp_path, config))

    assert (refused.value.kind, refused.value.field) == ("no_adapter", "adapter")


@pytest.mark.parametrize(
    ("name", "shape", "why"),
    [
        ("base_model.model.lm_head.lora_A.weight", (2, 8), "changes base_model.model.lm_head"),
        (f"{KEY}.lora_magnitude_vector", (2,), "changes"),
        (f"{KEY}.lora_A.weight", (2, 7), "8 inputs and 6 outputs"),
        (f"{KEY}.lora_A.weight", (16,), "8 inputs and 6 outputs"),
        (f"{KEY}.lora_A.weight", (0, 8), "8 inputs and 6 outputs"),
        (f"{KEY}.lora_B.weight", (6, 3), "8 inputs and 6 outputs"),
    ],
)
def test_matrices_have_to_fit_the_model(name: str, shape: tuple[int, ...], why: str, tmp_path: Path) -> None:
    """Each of them."""
    with pytest.raises(EngineRefusal, match=why):
        _read(_write(tmp_path, **{name: torch.ones(shape)}))


def test_half_an_adapter_is_refused(tmp_path: Path) -> None:
    """As is one that is no files at all, or files of something else."""
    source = _write(tmp_path / "half")
    save_file({f"{KEY}.lora_A.weight": torch.ones(2, 8)}, source.folder / "adapter_model.safetensors")
    with pytest.raises(EngineRefusal, match="no lora_B"):
        _read(source)
    (source.folder / "adapter_model.safetensors").write_bytes(b"no tensors")
    with pytest.raises(EngineRefusal, match="cannot be read"):
        _read(source)
    with pytest.raises(EngineRefusal, match="cannot both be read"):
        known_adapter(AdapterSource(name="mine", folder=tmp_path / "nowhere"))


def test_what_is_known_of_an_adapter_is_its_content(tmp_path: Path, model_folder: Callable[[str], Path]) -> None:
    """Unless whoever names it says so."""
    first, same = known_adapter(_write(tmp_path / "a")), known_adapter(_write(tmp_path / "b"))
    other = known_adapter(_write(tmp_path / "c", {"lora_alpha": 9}))
    told = known_adapter(AdapterSource(name="mine", folder=tmp_path / "a", digest="told"))

    assert first.digest == same.digest != other.digest
    assert told.digest == "told"
    assert first.bytes == (tmp_path / "a" / "adapter_model.safetensors").stat().st_size
