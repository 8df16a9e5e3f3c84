"""Where the driver's libraries are, and what a sandbox needs to find `libcuda.so.1`.

The right ones are beside the loaded NVML library. Another libcuda may be earlier on the linker's path (a toolkit brings
one for compatibility) and would not work.
"""

from __future__ import annotations

import os
import platform
import re
import subprocess
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from pilotlight_runtime.sandbox.bubblewrap import SYSTEM
from pilotlight_runtime.sandbox.sandbox_spec import Mount

LIBCUDA = "libcuda.so.1"
NVML = "libnvidia-ml.so"
FOLDERS = ("/usr/local/nvidia/lib64", "/usr/local/nvidia/lib", "/run/opengl-driver/lib")
"""Where clusters and NixOS put the driver, outside of every search path."""
MACHINES = {"x86_64": "x86-64", "aarch64": "AArch64"}
"""Machine -> its name in the linker's cache."""
LDCONFIG_S = 10.0
_CACHED = re.compile(rf"^\s*{re.escape(LIBCUDA)} \(([^)]*)\) => (/.*)$", re.MULTILINE)


@dataclass(frozen=True, kw_only=True)
class Libraries:
    """Without `libcuda` (None), no program can use a GPU here."""

    libcuda: Path | None
    env: Mapping[str, str]
    read_only: tuple[Mount, ...]


def find_libraries() -> Libraries:
    """Find this host's, once NVML has been loaded. Blocks while the linker's cache is read."""
    loaded = loaded_folder(Path("/proc/self/maps").read_text())
    folders = [*os.environ.get("LD_LIBRARY_PATH", "").split(":"), *FOLDERS]
    absolute = [Path(folder) for folder in folders if folder.startswith("/")]
    return choose(cached_libcuda(_linker_cache(), platform.machine()), [loaded, *absolute] if loaded else absolute)


def choose(cached: Path | None, folders: Iterable[Path]) -> Libraries:
    """Those in the first of `folders` that has any, else those of `cached`, which the linker finds by itself."""
    found = next((folder / LIBCUDA for folder in folders if _is_there(folder / LIBCUDA)), cached)
    if found is None or not _is_there(found):
        return Libraries(libcuda=None, env={}, read_only=())
    # Only where it must be: this variable goes before the folders in which torch's own libraries look for each other.
    by_itself = cached is not None and _is_there(cached) and cached.samefile(found)
    shown = cached if by_itself and cached else found
    outside = {folder for folder in (shown.parent, shown.resolve().parent) if not _is_shown(folder)}
    return Libraries(
        libcuda=shown,
        env={} if by_itself else {"LD_LIBRARY_PATH": str(found.parent)},
        read_only=tuple(Mount(source=folder, target=folder) for folder in sorted(outside)),
    )


def loaded_folder(maps: str) -> Path | None:
    """The folder of the NVML library in a process's `/proc/…/maps`; None if it has none."""
    paths = (line.split(maxsplit=5)[-1] for line in maps.splitlines() if f"/{NVML}" in line)
    return next((Path(path).parent for path in paths), None)


def cached_libcuda(cache: str, machine: str) -> Path | None:
    """libcuda in the output of `ldconfig -p`, for this machine's processors."""
    kind = MACHINES.get(machine, machine)
    return next((Path(path) for flags, path in _CACHED.findall(cache) if kind in flags), None)


def _linker_cache() -> str:
    command = ["ldconfig", "-p"]
    env = {"PATH": "/usr/sbin:/sbin:/usr/bin:/bin", "LC_ALL": "C"}
    try:
        return subprocess.run(command, env=env, capture_output=True, text=True, timeout=LDCONFIG_S, check=False).stdout
    except (OSError, subprocess.TimeoutExpired):
        return ""


def _is_there(path: Path) -> bool:
    try:
        return path.exists()
    except OSError:
        return False


def _is_shown(folder: Path) -> bool:
    return any(folder.is_relative_to(path) for path in SYSTEM)
