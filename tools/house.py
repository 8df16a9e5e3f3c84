"""Measure the house, and hold it: `python -m tools.house`.

A *room* is a folder of product code, an *arrow* an import between two rooms. Imports under `TYPE_CHECKING` count: who
reads a file has to know them too. What fails: a folder with over `MAX_FLAT` files, modules that import each other in a
circle, and an arrow that points up, which is one of a circle of rooms: without any, rooms stand on floors. `--words`
counts those of docstrings and comments too. `--root` measures another checkout, such as that of an earlier commit.
"""

# ruff: noqa: T201 - it is a command; printing is what it does

from __future__ import annotations

import argparse
import ast
import io
import sys
import tokenize
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from tools.syntax import parse, parsed, walk

SOURCE = ("core", "sdk", "placement", "engine", "runtime", "autoscaler", "gateway", "supervisor")
MAX_FLAT = 20
ENTRIES = ("__init__", "__main__")
"""Files of a folder that do not count as flat: each says what is in it, or starts it."""
DEFINITIONS = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)

Graph = Mapping[str, set[str]]


@dataclass(frozen=True, kw_only=True)
class Module:
    """One file: its dotted name, and whether it is its package's `__init__`."""

    name: str
    path: Path
    is_package: bool

    @property
    def room(self) -> str:
        """The folder, as a dotted name."""
        return self.name if self.is_package else self.name.rpartition(".")[0]


def modules(root: Path) -> dict[str, Module]:
    """The product's modules below `root`, by name."""
    found = {}
    for folder in SOURCE:
        for path in sorted((root / folder).rglob("*.py")):
            parts = path.relative_to(root / folder).with_suffix("").parts
            package = parts[-1] == "__init__"
            name = ".".join(parts[:-1] if package else parts)
            found[name] = Module(name=name, path=path, is_package=package)
    return found


def imports(known: Mapping[str, Module]) -> dict[str, set[str]]:
    """Which modules each module imports, at its head, within functions and for type checkers alike."""
    return {name: set(_imported(parsed(module.path), known)) - {name} for name, module in known.items()}


def _imported(tree: ast.Module, known: Mapping[str, Module]) -> Iterator[str]:
    for node in walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in known)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            for alias in node.names:
                whole = f"{node.module}.{alias.name}"
                yield from (
                    name for name in (whole, node.module) if name in known and (name == whole or whole not in known)
                )


def between_rooms(graph: Graph, known: Mapping[str, Module]) -> dict[str, set[str]]:
    """The arrows: which rooms each room imports."""
    arrows: dict[str, set[str]] = {module.room: set() for module in known.values()}
    for name, targets in graph.items():
        arrows[known[name].room] |= {known[target].room for target in targets} - {known[name].room}
    return arrows


def circles(graph: Graph) -> list[list[str]]:
    """The strongly connected components of more than one node (Tarjan, "Depth-first search and linear graph
    algorithms", SIAM J. Comput. 1972), without recursion.
    """
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    found: list[list[str]] = []
    for start in graph:
        work = [] if start in index else [(start, iter(sorted(graph[start])))]
        while work:
            node, targets = work[-1]
            if node not in index:
                index[node] = low[node] = len(index)
                stack.append(node)
            target = next((t for t in targets if t in graph and (t not in index or t in stack)), None)
            if target is not None and target not in index:
                work.append((target, iter(sorted(graph[target]))))
            elif target is not None:
                low[node] = min(low[node], index[target])
            else:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[node])
                if low[node] == index[node]:
                    cut = stack.index(node)
                    found += [sorted(stack[cut:])] if len(stack) - cut > 1 else []
                    del stack[cut:]
    return found


def pointing_up(arrows: Graph) -> list[tuple[str, str]]:
    """The arrows that have to go until no circle is left: each goes against the arrows of the rest of its circle.

    The rooms of a circle are put on floors, first whoever is imported by more of it than it imports (Eades, Lin and
    Smyth, "A fast and effective heuristic for the feedback arc set problem", Information Processing Letters 1993).
    """
    found = []
    for circle in circles(arrows):
        rest = set(circle)
        floor: dict[str, int] = {}
        while rest:
            out = {room: len(arrows[room] & rest - {room}) for room in rest}
            into = Counter(target for room in rest for target in arrows[room] & rest if target != room)
            room = min(rest, key=lambda r: (out[r] - into[r], r))
            floor[room] = len(floor)
            rest.remove(room)
        found += [(a, b) for a in circle for b in arrows[a] if b in floor and floor[b] > floor[a]]
    return sorted(found)


def classes_twice(known: Iterable[Module]) -> list[str]:
    """The public class names that more than one class has."""
    trees = (parsed(module.path) for module in known)
    names = Counter(n.name for tree in trees for n in walk(tree) if isinstance(n, ast.ClassDef))
    return sorted(name for name, times in names.items() if times > 1 and not name.startswith("_"))


def words(text: str) -> tuple[int, int]:
    """How many words a file has in docstrings (those of attributes too), and how many in comments."""
    strings = 0
    for node in walk(parse(text)):
        for statement in node.body if isinstance(node, DEFINITIONS) else ():
            if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant):
                strings += len(str(statement.value.value).split())
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    return strings, sum(len(token.string.split()) - 1 for token in tokens if token.type == tokenize.COMMENT)


def main() -> int:
    """Print the figures, and what is wrong; 1 if anything is."""
    parser = argparse.ArgumentParser(prog="python -m tools.house", description="Measure the rooms of the product.")
    parser.add_argument("--root", type=Path, default=Path(__file__).parents[1], help="the checkout to measure")
    parser.add_argument("--words", action="store_true", help="count words")
    asked = parser.parse_args()
    known = modules(asked.root)
    graph = imports(known)
    arrows = between_rooms(graph, known)
    flat = Counter(m.room for m in known.values() if m.name.rpartition(".")[2] not in ENTRIES and not m.is_package)

    wrong = [
        f"{room}: {files} flat files, {MAX_FLAT} allowed" for room, files in flat.most_common() if files > MAX_FLAT
    ]
    wrong += [f"arrow up: {a} -> {b}" for a, b in pointing_up(arrows)]
    wrong += [f"circle: {' '.join(circle)}" for circle in circles(graph)]
    twice = classes_twice(known.values())

    ((fullest, files),) = flat.most_common(1)
    print(f"rooms      {len(arrows)}: {sum(map(len, arrows.values()))} arrows, {len(pointing_up(arrows))} of them up")
    print(f"flat files at most {files} ({fullest})")
    print(f"circles    {len(circles(graph))} of modules, TYPE_CHECKING counted")
    print(f"classes    {len(twice)} public names that stand for more than one")
    if asked.words:
        counted = [words(module.path.read_text()) for module in known.values()]
        print(f"words      {sum(a for a, _ in counted)} in docstrings, {sum(b for _, b in counted)} in comments")
    for sentence in wrong:
        print(f"error      {sentence}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
