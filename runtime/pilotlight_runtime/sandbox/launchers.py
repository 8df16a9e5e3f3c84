"""The launchers by name: `--sandbox bubblewrap` (the default) or `--sandbox process`."""

from __future__ import annotations

from pilotlight_runtime.sandbox.bubblewrap import BubblewrapLauncher
from pilotlight_runtime.sandbox.plain_process import ProcessLauncher
from pilotlight_runtime.sandbox.sandbox_errors import SandboxUnavailable
from pilotlight_runtime.sandbox.sandbox_port import Launcher


def launcher(name: str) -> Launcher:
    """The launcher called `name`; raises `SandboxUnavailable` if there is none, or this node cannot run it."""
    if name == "bubblewrap":
        return BubblewrapLauncher()
    if name == "process":
        return ProcessLauncher()
    raise SandboxUnavailable(f"no sandbox is called {name!r}: bubblewrap (the default) or process")
