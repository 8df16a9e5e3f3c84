"""Which modules the wheel carries compiled: `python -m tools.compiled_modules` lists them, and what stands against one.

The list is `[tool.pilotlight.compiled]` in pyproject.toml: every module of its rooms but those under `plain`, which
stand there below the reason. It needs the standard library alone: the build reads it before anything is installed.
"""

# ruff: noqa: T201 - it is a command; printing is what it does

from __future__ import annotations

import ast
import shutil
import sys
import sysconfig
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

PURE = "PILOTLIGHT_PURE"
"""The variable that asks for a wheel of plain Python."""
NOT_COMPILED = ("__init__.py", "__main__.py")
"""A package is found, and a program is started, by its file; neither is called often."""
STRUCTS = ("Struct", "Message")
"""Base classes that read their subclass's annotations, of which the compiler leaves too little."""
WAITLESS = ("timeout", "timeout_at", "bound")
"""What makes contexts whose end does not wait."""
CACHED = "cached_property"
"""A native class has no `__dict__` to keep it in: mypyc makes a property of it."""


@dataclass(frozen=True, kw_only=True)
class CompiledModules:
    """The list. Paths are relative to the root, with slashes."""

    rooms: tuple[str, ...]
    """Folders, with all below them, and single files."""
    plain: Mapping[str, Sequence[str]]
    """Reason -> files and folders that stay plain Python."""

    def files(self, root: Path) -> list[str]:
        """The modules to compile, sorted."""
        found = {path.relative_to(root).as_posix() for room in self.rooms for path in _modules(root / room)}
        plain = tuple(chain(*self.plain.values()))
        return sorted(file for file in found if not _is_in(file, plain))

    def stale(self, root: Path) -> list[str]:
        """What the list names without need: rooms and exceptions that do not exist, exceptions in no room."""
        plain = list(chain(*self.plain.values()))
        said = [f"{name}: does not exist" for name in (*self.rooms, *plain) if not (root / name).exists()]
        return said + [f"{name}: is plain, but in no compiled room" for name in plain if not _is_in(name, self.rooms)]


def read_list(root: Path) -> CompiledModules:
    """The list of the tree at `root`."""
    said = tomllib.loads((root / "pyproject.toml").read_text())["tool"]["pilotlight"]["compiled"]
    return CompiledModules(rooms=tuple(said["rooms"]), plain=said["plain"])


def why_pure(environ: Mapping[str, str], version: str) -> str:
    """Why a wheel is built of plain Python; empty if it is compiled.

    Args:
        environ: the environment of the build.
        version: hatchling's, "editable" for an editable install, whose edited sources no compiled module may hide.
    """
    if version == "editable":
        return "an editable install"
    if environ.get(PURE, "0") not in ("", "0"):
        return f"{PURE} is set"
    if sys.implementation.name != "cpython":
        return f"{sys.implementation.name} is not CPython"
    compiler = (environ.get("CC") or sysconfig.get_config_var("CC") or "cc").split()[0]
    if shutil.which(compiler, path=environ.get("PATH")) is None:
        return f"there is no C compiler ({compiler})"
    if not Path(sysconfig.get_path("include"), "Python.h").is_file():
        return "the headers of Python are missing (Debian: python3-dev)"
    return ""


def obstacles(file: str, source: str) -> list[str]:
    """What mypyc cannot compile in a module, each as `file:line: what, and what to do`."""
    return [f"{file}:{line}: {what}" for line, what in sorted(_obstacles(ast.parse(source)))]


def _obstacles(tree: ast.Module) -> Iterator[tuple[int, str]]:
    elsewhere = "; move it to a module of its own, and name that under [tool.pilotlight.compiled.plain]"
    for node in ast.walk(tree):
        if isinstance(node, ast.AsyncFunctionDef) and _yields(node):
            yield node.lineno, f"mypyc has no async generators: {node.name}{elsewhere}"
        elif isinstance(node, ast.ClassDef) and any(_last_name(base) in STRUCTS for base in node.bases):
            yield node.lineno, f"msgspec reads the annotations of {node.name}, which mypyc does not keep{elsewhere}"
        if isinstance(node, ast.FunctionDef) and any(_last_name(each) == CACHED for each in node.decorator_list):
            yield node.lineno, f"compiled, {node.name} is worked out at each look; keep it in an attribute"
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and (name := _misplaced(node.args)):
            yield node.lineno, f"mypyc crashes at {node.name}: {name} has no default; put it before those that have one"
        if line := _waits_in_error(node):
            yield line, f"compiled, an await while an error is handled loses the error or the process{elsewhere}"
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.args.posonlyargs and node.args.kwarg:
            yield node.lineno, f"mypyc knows no `/`: ** of {node.name} may name what stands before; hand in a mapping"


def _yields(function: ast.AsyncFunctionDef) -> bool:
    left: list[ast.AST] = list(function.body)
    while left:
        node = left.pop()
        if isinstance(node, ast.Yield):
            return True
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            left += ast.iter_child_nodes(node)
    return False


def _waits_in_error(node: ast.AST) -> int:
    """The line of the first await of a handler or `finally`, or of a block whose end may wait; 0 if there is none.

    The end of a lock, a semaphore or a timeout does not wait, nor has a block without an await an error to handle that
    another coroutine could meet.
    """
    if isinstance(node, ast.Try):
        return next((_await_in(part) for part in (*node.handlers, *node.finalbody) if _await_in(part)), 0)
    if isinstance(node, ast.AsyncWith) and any(_await_in(part) for part in node.body):
        called = [item.context_expr.func for item in node.items if isinstance(item.context_expr, ast.Call)]
        return node.lineno if any(_last_name(function) not in WAITLESS for function in called) else 0
    return 0


def _await_in(node: ast.AST) -> int:
    waits = (ast.Await, ast.AsyncWith, ast.AsyncFor)
    return next((found.lineno for found in ast.walk(node) if isinstance(found, waits)), 0)


def _last_name(base: ast.expr) -> str:
    return base.attr if isinstance(base, ast.Attribute) else base.id if isinstance(base, ast.Name) else ""


def _misplaced(arguments: ast.arguments) -> str:
    """The first keyword-only parameter without default behind one with default; empty if there is none."""
    optional = False
    for parameter, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True):
        if default is None and optional:
            return parameter.arg
        optional = optional or default is not None
    return ""


def _is_in(file: str, names: Sequence[str]) -> bool:
    return any(file == name or file.startswith(f"{name}/") for name in names)


def _modules(room: Path) -> Iterator[Path]:
    files = room.rglob("*.py") if room.is_dir() else [room]
    return (path for path in files if path.name not in NOT_COMPILED)


def check(root: Path) -> list[str]:
    """Everything that stands against compiling the list of `root`; empty if nothing does."""
    listed = read_list(root)
    return listed.stale(root) + [
        said for file in listed.files(root) for said in obstacles(file, (root / file).read_text())
    ]


def main() -> int:
    """List the modules; 1 if one of them cannot be compiled."""
    root = Path(__file__).resolve().parents[1]
    wrong = check(root)
    print("\n".join(wrong or read_list(root).files(root)))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
