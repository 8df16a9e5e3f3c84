"""Where a function finds its weights."""

from __future__ import annotations

from pathlib import Path

import pytest

import pilotlight
from pilotlight.definitions.errors import Misuse


@pytest.fixture(autouse=True)
def _nowhere(monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in ("PILOTLIGHT_MODELS", "PILOTLIGHT_WEIGHTS"):
        monkeypatch.delenv(variable, raising=False)


@pytest.mark.parametrize("variable", ["PILOTLIGHT_MODELS", "PILOTLIGHT_WEIGHTS"])
def test_they_are_a_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, variable: str) -> None:
    """In a container, and elsewhere below a folder of one's own."""
    (tmp_path / "m").mkdir()
    monkeypatch.setenv(variable, str(tmp_path))
    assert pilotlight.weights("m") == tmp_path / "m"


def test_elsewhere_it_says_what_to_set() -> None:
    """There is no folder to guess."""
    with pytest.raises(Misuse, match=r"set PILOTLIGHT_WEIGHTS to a folder that has m/ in it"):
        pilotlight.weights("m")


@pytest.mark.parametrize("name", ["n", "", "..", ".", "m/../m", "/etc"])
def test_what_is_not_there_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, name: str) -> None:
    """With what is."""
    (tmp_path / "m").mkdir()
    monkeypatch.setenv("PILOTLIGHT_MODELS", str(tmp_path))
    with pytest.raises(Misuse, match=r"there are none of that name here \(there are: m\)"):
        pilotlight.weights(name)
