"""The engine that a function names, of what its container finds."""

from __future__ import annotations

from pathlib import Path

import pytest

from pilotlight_core.model.engines.engine_spec import EngineKind, EngineSpec
from pilotlight_engine.serving.engine_opening import MODELS_VARIABLE, adapter_sources, open_engine, weights_folder
from pilotlight_engine.text.text_tokenizer import END, tokenizer_of
from tests.engine.text.small_tokenizer import small_tokenizer

SIM = EngineSpec(kind=EngineKind.SIM)


def test_weights_are_below_the_folder_that_the_container_has(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(MODELS_VARIABLE, raising=False)
    with pytest.raises(ValueError, match="PILOTLIGHT_MODELS is not set"):
        weights_folder("tiny")
    monkeypatch.setenv(MODELS_VARIABLE, str(tmp_path))
    with pytest.raises(ValueError, match="there are no weights 'tiny'"):
        weights_folder("tiny")
    (tmp_path / "tiny").mkdir()
    assert weights_folder("tiny") == tmp_path / "tiny"
    assert weights_folder("") is None
    named = adapter_sources(EngineSpec(kind=EngineKind.TORCH, weights="base", adapters=("tiny",)))
    assert [(one.name, one.folder) for one in named] == [("tiny", tmp_path / "tiny")]


def test_a_simulated_engine_has_the_bounds_that_its_function_says(tmp_path: Path) -> None:
    spec = EngineSpec(kind=EngineKind.SIM, max_sequences=3, max_sequence=100, kv_bytes=64 * 1024, prefix_cache=False)
    able = open_engine(spec, tokenizer_of(None)).capabilities()

    assert (able.max_running, able.max_sequence, able.kv_tokens, able.prefix_cache) == (3, 100, 64, False)
    assert able.eos_ids == {END}
    small_tokenizer(tmp_path)
    assert not open_engine(SIM, tokenizer_of(tmp_path)).capabilities().eos_ids


def test_one_without_weights_is_refused() -> None:
    with pytest.raises(ValueError, match="the engine torch has no weights"):
        open_engine(EngineSpec(kind=EngineKind.TORCH), tokenizer_of(None))
