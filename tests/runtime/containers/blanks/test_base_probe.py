"""Running an interpreter once, to see whether it can be a base environment."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from pilotlight_runtime.containers.blanks import base_probe
from pilotlight_runtime.containers.blanks.base_probe import OWN_PACKAGES, CannotProbe, probe
from pilotlight_runtime.guest.frames import FRAMES


def fake_python(folder: Path, script: str) -> Path:
    path = folder / "python"
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return path


def test_it_says_what_its_guest_is() -> None:
    """The version of its frames, the platform's packages, and the files that it imports."""
    found = probe(Path(sys.executable))

    assert found.frames == FRAMES
    assert set(found.packages) == set(OWN_PACKAGES)
    assert found.packages["pilotlight_runtime"] / "guest" / "frames.py" in found.files
    assert any(file.parent.name == "msgspec" for file in found.files)


@pytest.mark.parametrize(
    ("script", "why"),
    [
        ("echo 'Traceback' >&2; echo 'ModuleNotFoundError: pilotlight' >&2; exit 1", "ModuleNotFoundError: pilotlight"),
        ("exit 3", "it ended with 3"),
        ("echo hello", "what it says cannot be read: "),
        ("exec sleep 1000", "it was not ready after 0.2 s"),
    ],
)
def test_what_is_wrong_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str, why: str) -> None:
    """In its own last words, and within a bound."""
    monkeypatch.setattr(base_probe, "PROBE_S", 0.2 if "sleep" in script else 60.0)
    with pytest.raises(CannotProbe, match=why):
        probe(fake_python(tmp_path, script))


def test_what_is_no_program_is_told(tmp_path: Path) -> None:
    """By the system's error."""
    (tmp_path / "python").write_text("")
    with pytest.raises(CannotProbe, match="Permission denied"):
        probe(tmp_path / "python")
