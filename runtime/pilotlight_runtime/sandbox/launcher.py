"""The launchers by the name an operator gives: `--sandbox bubblewrap` (the default) or `--sandbox process`."""

from __future__ import annotations

from pilotlight_runtime.sandbox.bubblewrap import BubblewrapLauncher
from pilotlight_runtime.sandbox.errors import SandboxUnavailable
from pilotlight_runtime.sandbox.port import Guarantees, Launcher, Sandbox, SandboxExit
from pilotlight_runtime.sandbox.process import ProcessLauncher

__all__ = ["BubblewrapLauncher", "Guarantees", "Launcher", "ProcessLauncher", "Sandbox", "SandboxExit", "launcher"]


def launcher(name: str) -> Launcher:
    """The launcher called `name`; raises `SandboxUnavailable` if there is none, or this node cannot run it."""
    if name == "bubblewrap":
        return BubblewrapLauncher()
    if name == "process":
        return ProcessLauncher()
    raise SandboxUnavailable(f"no sandbox is called {name!r}: bubblewrap (the default) or process")
