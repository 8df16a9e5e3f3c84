"""The interpreter, its packages, and the base environments that functions are to run in."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from shlex import quote

from pilotlight.cli.platform_commands import missing_requirements
from pilotlight_supervisor.doctor.bounded_process import run_bounded
from pilotlight_supervisor.doctor.finding import Finding, Health, judged

PACKAGE = "pilotlight"
OLDEST = (3, 11)
TRIAL_S = 20.0
"""An environment that needs longer to import the guest would have every first call wait."""


@dataclass(frozen=True, kw_only=True)
class BaseTrial:
    """What came of running an environment once."""

    name: str
    path: str
    release: str
    """Of pilotlight in it; "": none was found."""
    problem: str
    """Why guests cannot run in it; "": they can."""


@dataclass(frozen=True, kw_only=True)
class PythonFacts:
    version: tuple[int, int, int]
    release: str
    missing: Mapping[str, tuple[str, ...]]
    """Packages that are not there, by the extra that brings them."""
    bases: tuple[BaseTrial, ...] = ()


def read_python(extras: Iterable[str], bases: Sequence[str], sandbox: str) -> PythonFacts:
    """Of this interpreter; each of `bases` (NAME=PATH) is run once, for a bounded time."""
    try:
        found = distribution(PACKAGE)
        release, missing = found.version, {each: tuple(missing_requirements(found, [each])) for each in extras}
    except PackageNotFoundError:
        release, missing = "", {"server": (PACKAGE,)}
    return PythonFacts(
        version=sys.version_info[:3],
        release=release,
        missing={extra: names for extra, names in missing.items() if names},
        bases=tuple(_try(base, sandbox) for base in bases),
    )


def _try(base: str, sandbox: str) -> BaseTrial:
    name, _, path = base.partition("=")
    command = [sys.executable, "-m", "pilotlight_runtime.containers.blanks.base_environment", sandbox, base]
    try:
        done = run_bounded(command, TRIAL_S)
        problem = (done.complaint.strip() or f"it ended with {done.returncode}") if done.returncode else ""
    except TimeoutError:
        problem = f"it was not ready after {TRIAL_S:g} s"
    return BaseTrial(name=name, path=path, release=_release(Path(path).expanduser()), problem=problem)


def _release(folder: Path) -> str:
    found = (
        re.search(r"-([^-]+)\.dist-info$", str(each)) for each in folder.glob(f"lib/python3*/site-packages/{PACKAGE}-*")
    )
    return next((each[1] for each in found if each), "")


def python_findings(facts: PythonFacts) -> Iterator[Finding]:
    """Whether processes of the platform can run by it."""
    oldest = ".".join(map(str, OLDEST))
    yield judged(
        "Python", ".".join(map(str, facts.version)), f"{oldest} or newer", ok=facts.version[:2] >= OLDEST,
        todo=f"apt-get install -y python{oldest}-venv    # and make the environment anew with it",
    )  # fmt: skip
    missing = ", ".join(name for names in facts.missing.values() for name in names)
    extras = ",".join(facts.missing)
    yield judged(
        "packages", f"missing: {missing}" if missing else f"{PACKAGE} {facts.release}, and all that it needs",
        "all that the role needs", ok=not missing, todo=f"pip install '{PACKAGE}[{extras}]'",
    )  # fmt: skip
    for base in facts.bases:
        install = f"{quote(f'{base.path}/bin/pip')} install {PACKAGE}=={facts.release}"
        yield judged(
            f"base environment {base.name}", base.problem or f"{base.path}, with {PACKAGE} {base.release or '?'}",
            f"guests run in it, of {PACKAGE} {facts.release}", ok=not base.problem and base.release == facts.release,
            otherwise=Health.FAIL if base.problem else Health.WARN, todo=install,
        )  # fmt: skip
