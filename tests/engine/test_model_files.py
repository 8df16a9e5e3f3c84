"""Files beside weights."""

from __future__ import annotations

from pathlib import Path

import pytest

from pilotlight_engine.model_files import end_ids_in, end_ids_of, read_object


@pytest.mark.parametrize("text", ["[1]", "{", "", "[" * 100_000])
def test_what_is_no_object_is_none(text: str, tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(text)

    assert read_object(tmp_path / "config.json") is None
    assert read_object(tmp_path / "missing.json") is None
    assert end_ids_in(tmp_path) == frozenset()


def test_the_configuration_of_generation_goes_first() -> None:
    assert end_ids_of({"eos_token_id": 1}, {"eos_token_id": [2, 3, -1, "4", None]}) == {2, 3}
    assert end_ids_of({"eos_token_id": 1}, {}) == {1}
    assert end_ids_of({"eos_token_id": 1}, {"eos_token_id": None}) == frozenset()
