"""Base environments: the interpreter and the packages that functions run with, as a sandbox sees them."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from pilotlight_core.model.errors import BadInput
from pilotlight_core.model.ids import check_name
from pilotlight_core.model.spec import DEFAULT_BASE
from pilotlight_runtime.containers.blanks.base_probe import BaseProbe, CannotProbe, own_packages, probe
from pilotlight_runtime.guest.frames import FRAMES
from pilotlight_runtime.sandbox.interpreter import USR, interpreter_mounts
from pilotlight_runtime.sandbox.sandbox_errors import SandboxUnavailable
from pilotlight_runtime.sandbox.sandbox_spec import Mount

PREIMPORT = "PL_PREIMPORT"
"""The variable with the modules that a blank imports."""
NO_MODULE = "none"
"""In place of modules, since an empty variable stands for the default."""
SHARED_HOST = {"OMP_NUM_THREADS": "1", "OMP_WAIT_POLICY": "PASSIVE", "TOKENIZERS_PARALLELISM": "false"}
"""For the numeric libraries: one thread until the spec says how many cores there are, and threads that wait for each
other leave the processors to others. Where they spin, a call on a busy host takes twenty times as long."""
GUEST_ARGV = ("-I", "-m", "pilotlight_runtime.guest")
MOST_OTHERS = 32
"""Base environments beside the agent's own: each keeps blanks."""


@dataclass(frozen=True, kw_only=True)
class BaseEnvironment:
    name: str
    python: Path
    read_only: tuple[Mount, ...]
    env: Mapping[str, str] = field(default_factory=dict)


def own_environment(preimport: str) -> BaseEnvironment:
    """The environment "default": the virtual environment in which the agent itself runs.

    Args:
        preimport: modules, comma-separated, that a blank imports; it saves seconds of a first call. "none": no module.

    Raises:
        SandboxUnavailable: if its interpreter cannot be shown without showing too much, or has no guest to run.
    """
    python = Path(sys.executable)
    mounts = interpreter_mounts(python)
    try:
        folders = own_packages(python).values()
    except CannotProbe as error:
        raise SandboxUnavailable(f"{python} cannot run guests: {error}") from error
    return BaseEnvironment(
        name=DEFAULT_BASE, python=python, read_only=(*mounts, *_editable(mounts, folders)), env=_env(preimport)
    )


def other_environments(bases: Iterable[str], preimport: str, *, walled: bool) -> list[BaseEnvironment]:
    """The environments of `--base NAME=PATH`, each of which is run once.

    Args:
        bases: each a name, "=", and the folder of a virtual environment.
        preimport: as `own_environment`.
        walled: whether sandboxes have a file system of their own, which shows that folder and the interpreter alone.

    Raises:
        BadInput: naming the setting and the environment, if it cannot run guests.
    """
    found: dict[str, BaseEnvironment] = {}
    for text in bases:
        name, _, path = text.partition("=")
        if not path:
            raise BadInput(f"--base {text}: expected NAME=PATH, the folder of a virtual environment.", field="base")
        check_name(name, "--base")
        if name == DEFAULT_BASE:
            raise BadInput(f"--base {text}: {name!r} is the environment in which the agent itself runs.", field="base")
        if name in found:
            raise BadInput(f"--base {text}: there are two of this name.", field="base")
        found[name] = _other_environment(name, Path(path).expanduser(), preimport, walled=walled)
    if len(found) > MOST_OTHERS:
        raise BadInput(f"--base: {len(found)} are more than {MOST_OTHERS}.", field="base")
    return list(found.values())


def _other_environment(name: str, folder: Path, preimport: str, *, walled: bool) -> BaseEnvironment:
    python = Path(f"{folder.absolute()}/bin/python")
    try:
        mounts = interpreter_mounts(python)
        seen = probe(python)
    except FileNotFoundError:
        raise BadInput(f"--base {name}: there is no interpreter {python}.", field="base") from None
    except SandboxUnavailable as error:
        raise BadInput(f"--base {name}: {error}.", field="base") from None
    except CannotProbe as error:
        raise BadInput(
            f"--base {name}: {python} cannot run guests: {error}. Install the agent's release of pilotlight in it.",
            field="base",
        ) from None
    mounts = (*mounts, *_editable(mounts, seen.packages.values()))
    _check(name, seen, mounts if walled else ())
    return BaseEnvironment(name=name, python=python, read_only=mounts, env=_env(preimport))


def _check(name: str, seen: BaseProbe, mounts: tuple[Mount, ...]) -> None:
    """Refuse a guest that agents of this release do not understand, or that imports what `mounts` (if any) hide."""
    if seen.frames[0] != FRAMES[0]:
        theirs, ours = (".".join(map(str, version)) for version in (seen.frames, FRAMES))
        raise BadInput(
            f"--base {name}: its guest speaks version {theirs} of the frames, this agent {ours}: install the agent's "
            "release of pilotlight in it.",
            field="base",
        )
    seen_from = (USR, *(mount.target for mount in mounts))
    hidden = [file for file in seen.files if not any(file.is_relative_to(folder) for folder in seen_from)]
    if mounts and hidden:
        raise BadInput(
            f"--base {name}: it imports {hidden[0]}, which lies outside of it, where no sandbox sees it: install it "
            "in the environment.",
            field="base",
        )


def _env(preimport: str) -> Mapping[str, str]:
    modules = "" if preimport == NO_MODULE else preimport
    return {PREIMPORT: modules, **SHARED_HOST}


def _editable(mounts: tuple[Mount, ...], folders: Iterable[Path]) -> list[Mount]:
    """The platform's packages in a development checkout."""
    return [
        Mount(source=folder, target=folder)
        for folder in folders
        if not any(folder.is_relative_to(mount.target) for mount in mounts)
    ]


def main() -> int:
    """Print what is wrong with the environments after the kind of sandbox; 0 if nothing is."""
    try:
        other_environments(sys.argv[2:], NO_MODULE, walled=sys.argv[1] != "process")
    except BadInput as error:
        print(error.detail, file=sys.stderr)  # noqa: T201 - it is what the command is for
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
