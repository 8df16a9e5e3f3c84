"""A virtual environment as operators make them for `--base`, without installing anything."""

from __future__ import annotations

import importlib.util
import os
import shutil
import sys
from collections.abc import Iterable
from pathlib import Path

GUEST_NEEDS = ("msgspec",)
"""The libraries that a guest imports at its start."""


def base_venv(folder: Path, *, libraries: Iterable[str] = GUEST_NEEDS, **modules: str) -> Path:
    """The folder of a virtual environment with copies of `libraries`, this checkout's packages, and `modules`.

    Each of `modules` is a module's source by its name.
    """
    site = folder / "lib" / f"python{sys.version_info.major}.{sys.version_info.minor}" / "site-packages"
    site.mkdir(parents=True)
    real = Path(os.path.realpath(sys.executable))
    (folder / "pyvenv.cfg").write_text(f"home = {real.parent}\ninclude-system-site-packages = false\n")
    for name in libraries:
        shutil.copytree(_package(name), site / name)
    roots = {_package(name).parent for name in ("pilotlight", "pilotlight_core", "pilotlight_runtime")}
    (site / "checkout.pth").write_text("".join(f"{root}\n" for root in sorted(roots)))
    for name, source in modules.items():
        (site / f"{name}.py").write_text(source)
    (folder / "bin").mkdir()
    (folder / "bin" / "python").symlink_to(real)
    return folder


def _package(name: str) -> Path:
    spec = importlib.util.find_spec(name)
    assert spec is not None
    assert spec.origin is not None
    return Path(spec.origin).parent
