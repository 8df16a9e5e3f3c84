"""Which folders an interpreter needs."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from pilotlight_runtime.sandbox.interpreter import interpreter_mounts
from pilotlight_runtime.sandbox.sandbox_errors import SandboxUnavailable
from pilotlight_runtime.sandbox.sandbox_spec import Mount


def _installation(root: Path) -> Path:
    (root / "lib" / "python3.11").mkdir(parents=True)
    (root / "lib" / "python3.11" / "os.py").touch()
    (root / "bin").mkdir()
    (root / "bin" / "python3.11").touch()
    (root / "bin" / "python3").symlink_to("python3.11")
    return root / "bin" / "python3"


def _venv(root: Path, real: Path) -> Path:
    (root / "bin").mkdir(parents=True)
    (root / "pyvenv.cfg").write_text(f"home = {real.parent}\n")
    (root / "bin" / "python").symlink_to(real)
    return root / "bin" / "python"


def test_a_venv_needs_itself_and_the_real_installation(tmp_path: Path) -> None:
    """Each at its own path."""
    python = _venv(tmp_path / "venv", _installation(tmp_path / "real"))

    assert interpreter_mounts(python) == tuple(
        Mount(source=tmp_path / name, target=tmp_path / name) for name in ("venv", "real")
    )


def test_an_installation_that_is_reached_through_a_linked_folder_is_shown_under_both_names(tmp_path: Path) -> None:
    """As uv lays them out: cpython-3.11 -> cpython-3.11.7."""
    _installation(tmp_path / "cpython-3.11.7")
    (tmp_path / "cpython-3.11").symlink_to("cpython-3.11.7")
    python = _venv(tmp_path / "venv", tmp_path / "cpython-3.11" / "bin" / "python3.11")

    names = {mount.target.name for mount in interpreter_mounts(python)}

    assert names == {"venv", "cpython-3.11", "cpython-3.11.7"}


def test_a_link_in_a_folder_of_other_things_is_refused(tmp_path: Path) -> None:
    """Showing ~/.local, because ~/.local/bin/python is on the way, would show far more."""
    (tmp_path / "local" / "bin").mkdir(parents=True)
    (tmp_path / "local" / "bin" / "python").symlink_to(_installation(tmp_path / "real"))
    python = _venv(tmp_path / "venv", tmp_path / "local" / "bin" / "python")

    with pytest.raises(SandboxUnavailable, match=r"local/bin/python, which is in no Python installation.*real/bin"):
        interpreter_mounts(python)


def test_the_systems_own_needs_nothing() -> None:
    """/usr is always there."""
    python = next(path for path in (Path("/usr/bin/python3"), Path(sys.executable)) if path.exists())

    assert not [mount for mount in interpreter_mounts(python) if mount.source.is_relative_to("/usr")]


def test_no_interpreter(tmp_path: Path) -> None:
    """It is refused, rather than shown as an empty folder."""
    with pytest.raises((FileNotFoundError, SandboxUnavailable)):
        interpreter_mounts(tmp_path / "bin" / "python")
