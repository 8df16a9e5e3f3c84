"""Hold files and functions to the lengths that make them readable: `python -m tools.lengths`.

A file is one noun: over 500 lines fails. A function over 80 body lines fails, and so does a code base in which more
than 5 % of the functions have over 40. Body lines are a function's length less its signature and docstring. What is
allowed to be longer is named in ALLOWED with its reason; an entry that is no longer needed fails too.
"""

# ruff: noqa: T201 - it is a command; printing is what it does

from __future__ import annotations

import ast
import statistics
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from tools.syntax import inner, parsed, read_tree

SOURCE = (
    "sdk",
    "gateway",
    "placement",
    "engine",
    "autoscaler",
    "runtime",
    "core",
    "supervisor",
    "tools",
    "examples",
    "benchmarks",
)
TESTS = ("tests",)

MAX_FILE = 500
MAX_BODY = 80
LONG_BODY = 40
MAX_LONG_SHARE = 0.05
TARGETS = {"median": 150, "p90": 300}
"""Of file lengths; missing one is shown, not refused."""

ALLOWED: dict[str, str] = {
    "tests/runtime/sandbox/test_bubblewrap.py": "everything that one sandbox must hold, on the one that holds it",
}
"""`path` or `path::function` -> why it reads better whole."""


@dataclass(frozen=True, kw_only=True)
class Length:
    """One measured file (`path`) or function (`path::qualified.name`)."""

    name: str
    lines: int


def body_lines(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Lines from the first statement after the docstring to the end."""
    body = function.body[1:] if ast.get_docstring(function, clean=False) is not None else function.body
    return (function.end_lineno or 0) - body[0].lineno + 1 if body else 0


def functions(tree: ast.AST, prefix: str) -> Iterator[Length]:
    """Every function below `tree`, nested ones too."""
    for node in inner(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield Length(name=f"{prefix}{node.name}", lines=body_lines(node))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield from functions(node, f"{prefix}{node.name}.")
        else:
            yield from functions(node, prefix)


def measure(
    root: Path, folders: tuple[str, ...], tree_of: Callable[[Path], ast.Module] = parsed
) -> tuple[list[Length], list[Length]]:
    """The files (empty ones apart) and the functions under `folders`."""
    files: list[Length] = []
    found: list[Length] = []
    for path in sorted(path for folder in folders for path in (root / folder).rglob("*.py")):
        text = path.read_text()
        if text:
            name = path.relative_to(root).as_posix()
            files.append(Length(name=name, lines=len(text.splitlines())))
            found += functions(tree_of(path), f"{name}::")
    return files, found


def faults(files: list[Length], found: list[Length], allowed: dict[str, str]) -> list[str]:
    """A sentence for each file and function that is too long and not named in `allowed`, and for each stale name."""
    too_long = {f.name: f"{f.name}: {f.lines} lines, {MAX_FILE} allowed" for f in files if f.lines > MAX_FILE}
    too_long |= {f.name: f"{f.name}: {f.lines} body lines, {MAX_BODY} allowed" for f in found if f.lines > MAX_BODY}
    stale = [f"{name}: allowed to be long, but is not; remove it from ALLOWED" for name in allowed.keys() - too_long]
    return [sentence for name, sentence in too_long.items() if name not in allowed] + sorted(stale)


def long_share(found: list[Length]) -> float:
    """The share of functions with more than LONG_BODY body lines."""
    return sum(f.lines > LONG_BODY for f in found) / max(1, len(found))


def quantile(values: list[int], percent: int) -> int:
    """The smallest value that `percent` of the values do not exceed."""
    return sorted(values)[max(0, -(-len(values) * percent // 100) - 1)] if values else 0


def report(files: list[Length], found: list[Length], test_files: list[Length]) -> None:
    """Print the figures, and which targets they miss."""
    lines, bodies = [f.lines for f in files], [f.lines for f in found]
    measured = {"median": round(statistics.median(lines)), "p90": quantile(lines, 90)}
    print(f"files      {len(files)}: median {measured['median']}, p90 {measured['p90']}, max {max(lines)} lines")
    for name, target in TARGETS.items():
        if measured[name] > target:
            print(f"note       the {name} of the files is over its target of {target}")
    median, p95, longest = quantile(bodies, 50), quantile(bodies, 95), max(bodies)
    print(
        f"functions  {len(found)}: median {median}, p95 {p95}, max {longest} body lines; {long_share(found):.1%} long"
    )
    print(f"tests      {sum(f.lines for f in test_files)} lines to {sum(lines)} of source")


def main() -> int:
    """Print what was measured and what is wrong; 1 if anything is."""
    root = Path(__file__).parents[1]
    files, found = measure(root, SOURCE)
    test_files, test_functions = measure(root, TESTS, read_tree)  # which nobody else reads
    report(files, found, test_files)

    wrong = faults(files + test_files, found + test_functions, ALLOWED)
    if long_share(found) > MAX_LONG_SHARE:
        wrong.append(f"more than {MAX_LONG_SHARE:.0%} of the functions have over {LONG_BODY} body lines")
    for sentence in wrong:
        print(f"error      {sentence}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
