"""An interpreter that imports an earlier release's packages, with the libraries of this one."""

from __future__ import annotations

import os
import sys
import sysconfig
from pathlib import Path

PACKAGES = ("core", "gateway", "placement", "engine", "autoscaler", "runtime", "supervisor", "sdk")


def old_python(tree: Path, folder: Path) -> Path:
    """The interpreter of a virtual environment that is made in `folder`, for the release whose source is in `tree`.

    Its guests see the libraries only without a sandbox of their own (`--sandbox process`).
    """
    site = folder / "lib" / f"python{sys.version_info.major}.{sys.version_info.minor}" / "site-packages"
    site.mkdir(parents=True)
    base = Path(os.path.realpath(sys.executable))
    (folder / "pyvenv.cfg").write_text(f"home = {base.parent}\ninclude-system-site-packages = false\n")
    # Lines of a .pth file are folders; those in the .pth files of these folders are not read.
    lines = (*(tree / package for package in PACKAGES), sysconfig.get_paths()["purelib"])
    (site / "release.pth").write_text("".join(f"{line}\n" for line in lines))
    python = folder / "bin" / "python"
    python.parent.mkdir()
    python.symlink_to(base)
    return python
