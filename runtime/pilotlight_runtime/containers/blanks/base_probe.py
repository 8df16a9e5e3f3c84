"""What an interpreter says of its base environment, when it is run once at the agent's start."""

from __future__ import annotations

import functools
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import TypeVar

import msgspec

PROBE_S = 60.0
"""Importing the guest takes 0.3 s; a disk that nobody has read from yet takes longer."""
OWN_PACKAGES = ("pilotlight", "pilotlight_core", "pilotlight_engine", "pilotlight_runtime")
"""The platform's packages that a guest imports; those of an older release are fewer."""
SAID = 400
"""Characters of an interpreter's last words that are told."""
CODE = f"""
import importlib, importlib.util, json, os, sys
for name in ("pilotlight", "pilotlight_runtime.guest.guest_process", "pilotlight_runtime.guest.async_server"):
    importlib.import_module(name)
from pilotlight_runtime.guest import frames
own = [name for name in {OWN_PACKAGES!r} if importlib.util.find_spec(name)]
folders = {{name: os.path.dirname(importlib.import_module(name).__file__) for name in own}}
files = [module.__file__ for module in list(sys.modules.values()) if getattr(module, "__file__", None)]
version = getattr(frames, "FRAMES", (0, 0))
print("\\n" + json.dumps({{"frames": version, "packages": folders, "files": sorted(set(files))}}))
"""


FIND = f"""
import importlib.util, json, os
found = [(name, importlib.util.find_spec(name)) for name in {OWN_PACKAGES!r}]
folders = {{name: os.path.dirname(spec.origin) for name, spec in found if spec}}
print("\\n" + json.dumps(folders))
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


def _path(kind: type[Path], value: str) -> Path:
    return kind(value)


_probed = msgspec.json.Decoder(BaseProbe, dec_hook=_path)
_found = msgspec.json.Decoder(dict[str, Path], dec_hook=_path)
Answer = TypeVar("Answer")


def probe(python: Path) -> BaseProbe:
    """Run an interpreter, which must import the guest; takes `PROBE_S` at most.

    Raises:
        CannotProbe: it cannot.
    """
    return _answer(python, CODE, _probed)


@functools.cache
def own_packages(python: Path) -> Mapping[str, Path]:
    """The folders in which guests that run `python` find `OWN_PACKAGES`; imports none of them.

    The agent may find others: PYTHONPATH, which guests ignore, leads it to compiled modules.

    Raises:
        CannotProbe: it does not find them.
    """
    return _answer(python, FIND, _found)


def _answer(python: Path, code: str, decoder: msgspec.json.Decoder[Answer]) -> Answer:
    try:
        done = subprocess.run(
            [str(python), "-I", "-B", "-c", code], capture_output=True, text=True, timeout=PROBE_S, check=False, cwd="/"
        )
    except subprocess.TimeoutExpired:
        raise CannotProbe(f"it was not ready after {PROBE_S:g} s") from None
    except OSError as error:
        raise CannotProbe(str(error)) from None
    if done.returncode:
        raise CannotProbe((_last_line(done.stderr) or f"it ended with {done.returncode}")[-SAID:])
    try:
        return decoder.decode(_last_line(done.stdout))
    except msgspec.DecodeError as error:
        raise CannotProbe(f"what it says cannot be read: {error}") from None


def _last_line(text: str) -> str:
    return text.strip().rpartition("\n")[2]
