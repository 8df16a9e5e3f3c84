"""Base environments: the interpreter and the packages that functions run with, as a sandbox sees them."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from pilotlight_runtime.sandbox.interpreter import interpreter_mounts
from pilotlight_runtime.sandbox.sandbox_spec import Mount

PREIMPORT = "PL_PREIMPORT"
"""The variable with the modules that a blank imports."""
DEFAULT = "default"
GUEST_ARGV = ("-I", "-m", "pilotlight_runtime.guest")
OWN_PACKAGES = ("pilotlight", "pilotlight_core", "pilotlight_runtime")
"""The platform's packages that a guest imports."""


@dataclass(frozen=True, kw_only=True)
class BaseEnvironment:
    name: str
    python: Path
    read_only: tuple[Mount, ...]
    env: Mapping[str, str] = field(default_factory=dict)


def own_environment(preimport: str) -> BaseEnvironment:
    """The environment "default": the virtual environment in which the agent itself runs.

    Args:
        preimport: modules, comma-separated, that a blank imports; it saves seconds of a first call.

    Raises:
        SandboxUnavailable: if its interpreter cannot be shown without showing too much.
    """
    python = Path(sys.executable)
    mounts = interpreter_mounts(python)
    # One thread for the numeric libraries until the spec says how many cores there are.
    env = {PREIMPORT: preimport, "OMP_NUM_THREADS": "1", "TOKENIZERS_PARALLELISM": "false"}
    return BaseEnvironment(name=DEFAULT, python=python, read_only=(*mounts, *_editable(mounts)), env=env)


def _editable(mounts: tuple[Mount, ...]) -> list[Mount]:
    """The platform's packages in a development checkout."""
    found = []
    for name in OWN_PACKAGES:
        spec = importlib.util.find_spec(name)
        if spec is None or spec.origin is None:
            raise ImportError(f"the package {name} has no folder")
        folder = Path(spec.origin).parent
        if not any(folder.is_relative_to(mount.target) for mount in mounts):
            found.append(Mount(source=folder, target=folder))
    return found
