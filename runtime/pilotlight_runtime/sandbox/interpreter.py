"""What an interpreter needs of the host: its virtual environment and the real one below it."""

from __future__ import annotations

import os
from pathlib import Path

from pilotlight_runtime.sandbox.sandbox_errors import SandboxUnavailable
from pilotlight_runtime.sandbox.sandbox_spec import Mount

USR = Path("/usr")


def interpreter_mounts(python: Path) -> tuple[Mount, ...]:
    """The mounts that `python`, e.g. `<venv>/bin/python`, needs; /usr is always there.

    Follows the links from a venv to the real interpreter, as the program inside does. Raises `FileNotFoundError` if
    there is no such interpreter, and `SandboxUnavailable` if a link on the way lies outside of every Python
    installation: the folder around it would show too much.
    """
    roots: dict[Path, None] = {}
    for hop in _hops(python):
        root = hop.parent.parent
        if hop.is_relative_to(USR):
            continue
        if not _is_installation(root):
            raise SandboxUnavailable(
                f"{python} leads through {hop}, which is in no Python installation: "
                f"make the virtual environment with {python.resolve()}"
            )
        roots[root] = None
    return tuple(Mount(source=root, target=root) for root in roots)


def _hops(python: Path) -> list[Path]:
    """`python` and each path that its links lead through, the fully resolved one last."""
    hops = [python]
    while hops[-1].is_symlink():
        hops.append(Path(os.path.normpath(hops[-1].parent / hops[-1].readlink())))
    return [*hops, python.resolve(strict=True)]


def _is_installation(root: Path) -> bool:
    return (root / "pyvenv.cfg").is_file() or any(root.glob("lib/python3*/os.py"))
