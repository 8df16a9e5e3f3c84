"""A model in a folder."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from pilotlight_engine.architectures import UnknownArchitecture
from pilotlight_engine.transformer.model_folder import read_model_folder


@pytest.fixture
def folder(model_folder: Callable[[str], Path], tmp_path: Path) -> Path:
    """One to change."""
    return Path(shutil.copytree(model_folder("llama"), tmp_path / "model"))


def _change(path: Path, **fields: Any) -> None:
    path.write_text(json.dumps({**(json.loads(path.read_text()) if path.exists() else {}), **fields}))


def test_what_ends_a_text_is_in_either_file(folder: Path) -> None:
    """One for generating goes first, and may name several."""
    assert read_model_folder(folder).eos_ids == frozenset()
    _change(folder / "config.json", eos_token_id=3)
    assert read_model_folder(folder).eos_ids == {3}
    _change(folder / "generation_config.json", eos_token_id=[4, 5])
    assert read_model_folder(folder).eos_ids == {4, 5}
    (folder / "generation_config.json").write_text("[]")
    assert read_model_folder(folder).eos_ids == {3}


def test_the_precision_is_the_model_s_or_another(folder: Path) -> None:
    """If it is one that is known."""
    assert read_model_folder(folder).dtype == torch.float32
    loaded = read_model_folder(folder, "bfloat16").load(torch.device("cpu"))
    assert {parameter.dtype for parameter in loaded.parameters()} == {torch.bfloat16}
    assert not any(parameter.requires_grad for parameter in loaded.parameters())
    with pytest.raises(UnknownArchitecture, match="dtype is one of float32, bfloat16, float16, not int4"):
        read_model_folder(folder, "int4")


def test_another_configuration_is_another_version(folder: Path) -> None:
    """As are other weights."""
    first = read_model_folder(folder).version
    assert read_model_folder(folder).version == first
    _change(folder / "config.json", rms_norm_eps=0.1)
    second = read_model_folder(folder).version
    (folder / "more.safetensors").write_bytes(b"")

    assert len({first, second, read_model_folder(folder).version}) == 3


def test_a_folder_without_a_model_says_what_is_missing(folder: Path) -> None:
    """By the name of the folder, not its path."""
    for weights in folder.glob("*.safetensors"):
        weights.rename(weights.with_suffix(".bin"))
    with pytest.raises(UnknownArchitecture, match=r"no \*\.safetensors in model/"):
        read_model_folder(folder)
    for text in ("no json", "[]"):
        (folder / "config.json").write_text(text)
        with pytest.raises(UnknownArchitecture, match=r"no config\.json in model/"):
            read_model_folder(folder)
