"""Imports a target for its functions, and unloads it."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import msgspec

from pilotlight.app import Registered, collecting
from pilotlight.definitions.artifact_options import Artifact
from pilotlight.definitions.errors import Misuse, PilotlightError
from pilotlight.definitions.requirement_options import read_requirements
from pilotlight.packing.target import DeployTarget
from pilotlight_core.model.spec import FunctionSpec


class LoadedFunction(msgspec.Struct, frozen=True, kw_only=True):
    """A function as its module defines it."""

    spec: FunctionSpec
    artifacts: tuple[Artifact, ...] = ()
    weights: tuple[str, ...] = ()
    """Of those that were pushed."""
    folder: Path
    """Of its module."""


@dataclass(frozen=True, kw_only=True)
class LoadedApp:
    """An app of a target."""

    base: str
    """The base environment that it names."""
    requirements: tuple[str, ...] = ()
    """The packages that its functions find beside those of it."""
    functions: dict[str, LoadedFunction]
    """By their names, those whose code is packed."""

    @property
    def specs(self) -> dict[str, FunctionSpec]:
        """Of its functions."""
        return {name: one.spec for name, one in self.functions.items()}


LoadedApps = dict[str, LoadedApp]
"""By their names."""


def load_apps(target: DeployTarget) -> LoadedApps:
    """Import a target; return its apps in order, with the functions whose code is packed.

    Raises:
        Misuse: if it cannot be imported, or has no function to deploy.
    """
    with _importable(target.root, target.module), collecting() as registered:
        _import(target)
        apps = _apps_of(registered, target.root)
    if not apps:
        raise Misuse(f"{target.module} has no @gpu_function: there is nothing to deploy.", field="target")
    if target.function is not None and not any(target.function in one.functions for one in apps.values()):
        known = ", ".join(name for one in apps.values() for name in one.functions)
        raise Misuse(f"{target.module} has no function {target.function!r}; it has {known}.", field="target")
    return apps


def _import(target: DeployTarget) -> None:
    try:
        importlib.import_module(target.module)
    except PilotlightError:
        raise
    except Exception as error:
        error_at = _where(error, target.root)
        raise Misuse(f"{target.module} cannot be imported: {type(error).__name__}: {error}{error_at}") from error


def _where(error: Exception, root: Path) -> str:
    """Return the last line of the tenant's code in the error's traceback."""
    trace, place = error.__traceback__, ""
    while trace is not None:
        file = Path(trace.tb_frame.f_code.co_filename)
        if file.is_relative_to(root):
            place = f" ({file.relative_to(root)}:{trace.tb_lineno})"
        trace = trace.tb_next
    return place


def _apps_of(registered: Registered, root: Path) -> LoadedApps:
    apps: LoadedApps = {}
    for app, function in registered:
        spec = function.spec
        source = function.source_module or spec.module
        file = getattr(sys.modules.get(source), "__file__", None)
        if file is None or not Path(file).resolve().is_relative_to(root):
            continue
        if "<locals>" in spec.qualname:
            raise Misuse(f"{spec.qualname} is defined inside a function, where no container finds it: move it out.")
        requirements = read_requirements(app.requirements, root)
        found = apps.setdefault(app.name, LoadedApp(base=app.base, requirements=requirements, functions={}))
        if found.base != app.base:
            raise Misuse(
                f"the app {app.name!r} has two base environments, {found.base!r} and {app.base!r}: give its App one.",
                field="base",
            )
        if found.requirements != requirements:
            raise Misuse(
                f"the app {app.name!r} is made twice, with other requirements=: give its App one list.",
                field="requirements",
            )
        functions = found.functions
        known = functions.get(spec.name)
        if known is not None:
            first = known.spec.module
            where = f"in {first} and {spec.module}" if first != spec.module else f"both in {spec.module}"
            raise Misuse(
                f"the app {app.name!r} has two functions called {spec.name!r}, {where}: give one of them name=.",
                field="name",
            )
        functions[spec.name] = LoadedFunction(
            spec=spec,
            artifacts=function.artifacts,
            weights=function.weights,
            folder=Path(file).resolve().parent,
        )
    return apps


@contextmanager
def _importable(root: Path, module: str) -> Iterator[None]:
    """Import from `root` first, and unload afterwards what came from there."""
    top = module.partition(".")[0]
    hidden = {name: sys.modules.pop(name) for name in list(sys.modules) if name.partition(".")[0] == top}
    before, writes = set(sys.modules), sys.dont_write_bytecode
    sys.path.insert(0, str(root))
    sys.dont_write_bytecode = True  # a deploy leaves nothing beside the code
    importlib.invalidate_caches()
    try:
        yield
    finally:
        sys.dont_write_bytecode = writes
        sys.path.remove(str(root))
        for name in set(sys.modules) - before:
            file = getattr(sys.modules[name], "__file__", None)
            if name.partition(".")[0] == top or (file and Path(file).is_relative_to(root)):
                del sys.modules[name]
        sys.modules.update(hidden)
