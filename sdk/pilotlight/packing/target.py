"""Reads the argument of `pilotlight deploy`: a file, a folder with an app.py, or a module."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import msgspec

from pilotlight.definitions.errors import Misuse

SEPARATOR = "::"


class DeployTarget(msgspec.Struct, frozen=True, kw_only=True):
    """A module to deploy.

    A module in a package is packed with its package, any other with its folder.
    """

    module: str
    """The name by which a container imports it."""
    root: Path
    """The folder of imports, and of paths in the bundle."""
    folder: Path
    """The packed folder: the root, or the package in it."""
    function: str | None = None


def find_target(text: str, *, within: Path) -> DeployTarget:
    """Return the DeployTarget of `text`, which may end in `::function`; relative paths and modules are in `within`.

    Raises:
        Misuse: naming what was not found.
    """
    place, separator, function = text.partition(SEPARATOR)
    if separator and not function:
        raise Misuse(f"{text!r} ends in {SEPARATOR}: expected the name of a function behind it.", field="target")
    file = _file(place, within)
    return _of_file(file.resolve(), function or None)


def _file(place: str, within: Path) -> Path:
    path = within / place
    if path.is_dir():
        for name in ("app.py", "__init__.py"):
            if (path / name).is_file():
                return path / name
        raise Misuse(f"{place} is a folder without an app.py: name the file.", field="target")
    if path.is_file():
        if path.suffix != ".py":
            raise Misuse(f"{place} is not a Python file.", field="target")
        return path
    if place.endswith(".py") or "/" in place:
        raise Misuse(f"There is no file {path}.", field="target")
    return _file_of_module(place, within)


def _file_of_module(module: str, within: Path) -> Path:
    parts = module.split(".")
    if all(part.isidentifier() for part in parts):
        below = within.joinpath(*parts)
        for path in (below.with_suffix(".py"), below / "__init__.py"):
            if path.is_file():
                return path
        if (found := _installed(module)) is not None:
            return found
    raise Misuse(f"There is no file or module {module!r} in {within}.", field="target")


def _installed(module: str) -> Path | None:
    try:
        found = importlib.util.find_spec(module)
    except (ImportError, ValueError):
        return None
    return Path(found.origin) if found is not None and found.origin and found.origin.endswith(".py") else None


def _of_file(file: Path, function: str | None) -> DeployTarget:
    folder = file.parent
    parts = [] if file.stem == "__init__" else [file.stem]
    while (folder / "__init__.py").is_file():
        parts.insert(0, folder.name)
        folder = folder.parent
    for part in parts:
        if not part.isidentifier():
            raise Misuse(f"{file} cannot be imported: {part!r} is no Python name.", field="target")
    in_package = folder != file.parent
    return DeployTarget(
        module=".".join(parts), root=folder, folder=folder / parts[0] if in_package else folder, function=function
    )
