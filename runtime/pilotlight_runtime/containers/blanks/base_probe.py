"""What an interpreter says of its base environment, when it is run once at the agent's start."""

from __future__ import annotations

import subprocess
from pathlib import Path

import msgspec

PROBE_S = 60.0
"""Importing the guest takes 0.3 s; a disk that nobody has read from yet takes longer."""
OWN_PACKAGES = ("pilotlight", "pilotlight_core", "pilotlight_runtime")
"""The platform's packages that a guest imports."""
SAID = 400
"""Characters of an interpreter's last words that are told."""
CODE = f"""
import importlib, json, os, sys
for name in ("pilotlight", "pilotlight_runtime.guest.guest_process", "pilotlight_runtime.guest.async_server"):
    importlib.import_module(name)
from pilotlight_runtime.guest import frames
folders = {{name: os.path.dirname(importlib.import_module(name).__file__) for name in {OWN_PACKAGES!r}}}
files = [module.__file__ for module in list(sys.modules.values()) if getattr(module, "__file__", None)]
version = getattr(frames, "FRAMES", (0, 0))
print("\\n" + json.dumps({{"frames": version, "packages": folders, "files": sorted(set(files))}}))
"""


class BaseProbe(msgspec.Struct, frozen=True, kw_only=True):
    """The findings of a probe."""

    frames: tuple[int, int]
    """The version of its guest's frames."""
    packages: dict[str, Path]
    """The folders of `OWN_PACKAGES`."""
    files: tuple[Path, ...]
    """Whatever its guest imports at its start."""


class CannotProbe(Exception):
    """The interpreter does not run, or cannot import the guest; the message is its own."""


_decoder = msgspec.json.Decoder(BaseProbe, dec_hook=lambda kind, value: kind(value))


def probe(python: Path) -> BaseProbe:
    """Run an interpreter, which must import the guest; takes `PROBE_S` at most.

    Raises:
        CannotProbe: it cannot.
    """
    try:
        done = subprocess.run(
            [str(python), "-I", "-B", "-c", CODE], capture_output=True, text=True, timeout=PROBE_S, check=False, cwd="/"
        )
    except subprocess.TimeoutExpired:
        raise CannotProbe(f"it was not ready after {PROBE_S:g} s") from None
    except OSError as error:
        raise CannotProbe(str(error)) from None
    if done.returncode:
        raise CannotProbe((_last_line(done.stderr) or f"it ended with {done.returncode}")[-SAID:])
    try:
        return _decoder.decode(_last_line(done.stdout))
    except msgspec.DecodeError as error:
        raise CannotProbe(f"what it says cannot be read: {error}") from None


def _last_line(text: str) -> str:
    return text.strip().rpartition("\n")[2]
