"""What a library's internals look like in the installed release, for tests of the modules that stand on them."""

from __future__ import annotations

import ast
import hashlib
import inspect
import textwrap
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

REPOSITORY = Path(__file__).parents[1]
PRODUCT = ("sdk", "gateway", "placement", "engine", "autoscaler", "runtime", "core", "supervisor")


def names_in(kind: type) -> set[str]:
    """What a class has: in itself and its bases, and what its methods assign to `self`."""
    names = set(dir(kind))
    for base in kind.__mro__:
        if base.__module__ != "builtins" and not base.__module__.startswith("asyncio"):
            tree = ast.parse(textwrap.dedent(inspect.getsource(base)))
            names |= {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute) and _is_set(node)}
    return names


def digest(function: Callable[..., Any]) -> str:
    """Of its signature and body as they are written, white space aside."""
    return hashlib.sha256(" ".join(inspect.getsource(function).split()).encode()).hexdigest()[:12]


def missing(used: Mapping[type, set[str]]) -> dict[str, set[str]]:
    """Of the names used of each class those that it has not."""
    found = {kind.__name__: names - names_in(kind) for kind, names in used.items()}
    return {name: gone for name, gone in found.items() if gone}


def changed(known: Mapping[Callable[..., Any], str]) -> dict[str, str]:
    """The functions that are not as they were when `known` was noted, with their digests now."""
    return {function.__qualname__: now for function, was in known.items() if (now := digest(function)) != was}


def importers(package: str) -> set[str]:
    """The modules of the product that import something of `package`, or the module of that name."""
    files = (path for root in PRODUCT for path in (REPOSITORY / root).rglob("*.py"))
    return {str(path.relative_to(REPOSITORY)) for path in files if _imports(path, package)}


def _imports(path: Path, package: str) -> bool:
    if package not in (text := path.read_text()):
        return False
    for node in ast.walk(ast.parse(text)):
        names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        if isinstance(node, ast.ImportFrom) and not node.level:
            names = [node.module or ""]
        if any(f"{name}.".startswith(f"{package}.") for name in names):
            return True
    return False


def _is_set(node: ast.Attribute) -> bool:
    return isinstance(node.ctx, ast.Store) and isinstance(node.value, ast.Name) and node.value.id == "self"
