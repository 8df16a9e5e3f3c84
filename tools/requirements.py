"""Hold `docs/requirements.md` to the truth: `python -m tools.requirements [--passed FILE]`.

Each row says `| id | what | what implements it | what shows it |`. The last two cells name files in backticks, tests as
`path::test_name`; what they name must exist. A row that is not built yet says `planned` in both. Every requirement has
exactly one row.

FILE lists the tests that passed, one id a line, as `make test` and `make test-crash` write it where PILOTLIGHT_PASSED
says: then each test that is named must be among them, and of each named file or folder of tests at least one. What has
long tests alone is not in that run (`make test-long` runs it): such parts are listed, and no row may name nothing else.
"""

# ruff: noqa: T201 - it is a command; printing is what it does

from __future__ import annotations

import argparse
import ast
import re
import sys
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

COUNTS = {"A": 12, "B": 11, "C": 14, "D": 4, "E": 4, "F": 7, "G": 10, "H": 3, "I": 4, "J": 7, "K": 4}
"""How many requirements each chapter has, so that a row cannot get lost at the end of one."""
IDS = [f"{chapter}{number}" for chapter, count in COUNTS.items() for number in range(1, count + 1)]

ROW = re.compile(r"\|\s*([A-Z]\d+)\s*\|(.*)\|\s*")
NAMED = re.compile(r"`([^`\s]+)`")
PLANNED = "planned"
LONG = "pytest.mark.long"
FUNCTION = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True, kw_only=True)
class Row:
    """One requirement: what implements it and what shows it, as written."""

    id: str
    implements: str
    shows: str

    @property
    def is_planned(self) -> bool:
        """Whether it is still to be built."""
        return self.implements == self.shows == PLANNED


def read_rows(text: str) -> list[Row]:
    """The rows of every table in a Markdown page whose first cell is an id."""
    rows = []
    for found in filter(None, map(ROW.fullmatch, text.splitlines())):
        cells = [cell.strip() for cell in found[2].split("|")]
        rows.append(Row(id=found[1], implements=cells[-2] if len(cells) > 1 else "", shows=cells[-1]))
    return rows


def missing_parts(cell: str, root: Path) -> list[str]:
    """What a cell names and the tree does not have; a cell that names nothing misses everything."""
    named = NAMED.findall(cell)
    if not named:
        return ["names no file"]
    return [f"{part} does not exist" for part in named if not exists(part, root)]


def exists(part: str, root: Path) -> bool:
    """Whether `path` or `path::test_name` is there."""
    path, _, test = part.partition("::")
    file = root / path
    if not test or not file.is_file():
        return file.exists() and not test
    names = (node.name for node in ast.walk(ast.parse(file.read_text())) if isinstance(node, FUNCTION))
    return test.partition("[")[0] in names


def faults(rows: list[Row], root: Path) -> list[str]:
    """A sentence for each thing that is wrong with the page."""
    ids = [row.id for row in rows]
    wrong = [f"{id_}: no row" for id_ in IDS if id_ not in ids]
    wrong += [f"{id_}: unknown or twice" for id_ in sorted(set(ids)) if id_ not in IDS or ids.count(id_) > 1]
    for row in rows:
        if not row.is_planned:
            wrong += [f"{row.id}: {what}" for cell in (row.implements, row.shows) for what in missing_parts(cell, root)]
    return wrong


def not_run(rows: list[Row], passed: Iterable[str], long: Collection[str]) -> list[str]:
    """A sentence for each test that a row names and that did not pass in the run that is told of.

    `long` says which of them that run leaves out; a row that names only such ones is not shown by it.
    """
    ids = {part for test in passed for part in ancestors(test)}
    wrong = []
    for row in rows:
        tests = tests_of(row)
        missed = [part for part in tests if part.rstrip("/") not in ids and part not in long]
        wrong += [f"{row.id}: {part} did not run, or did not pass" for part in missed]
        if tests and all(part in long for part in tests):
            wrong.append(f"{row.id}: only long tests show it")
    return wrong


def tests_of(row: Row) -> list[str]:
    """The tests, files and folders of tests that a row names."""
    return [part for part in NAMED.findall(row.shows) if part.startswith("tests/")]


def long_parts(rows: list[Row], root: Path) -> list[str]:
    """The named tests, and files of tests, of which each is marked `long`."""
    return [part for part in dict.fromkeys(chain.from_iterable(map(tests_of, rows))) if is_long(part, root)]


def is_long(part: str, root: Path) -> bool:
    """Whether `path` or `path::test_name` has tests that are marked `long`, and no other."""
    path, _, name = part.partition("::")
    file = root / path
    if not file.is_file():
        return False
    wanted = name.partition("[")[0]
    tests = (node for node in ast.walk(ast.parse(file.read_text())) if isinstance(node, FUNCTION))
    meant = [test for test in tests if (test.name == wanted if wanted else test.name.startswith("test_"))]
    return bool(meant) and all(LONG in map(ast.unparse, test.decorator_list) for test in meant)


def ancestors(test: str) -> set[str]:
    """A test's id, without its parameters too, its file, and the folders of it."""
    path, _, name = test.partition("::")
    return {test, f"{path}::{name.partition('[')[0]}", path, *map(str, Path(path).parents)}


def main() -> int:
    """Print how far the project is and what is wrong with the page; 1 if anything is."""
    parser = argparse.ArgumentParser(prog="python -m tools.requirements", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--passed", type=Path, metavar="FILE", help="the tests that passed, one id a line")
    options = parser.parse_args()
    root = Path(__file__).parents[1]
    rows = read_rows((root / "docs" / "requirements.md").read_text())
    print(f"requirements {len(IDS)}: {sum(not row.is_planned for row in rows)} shown, the rest planned")
    wrong = faults(rows, root)
    if options.passed:
        long = long_parts(rows, root)
        wrong += not_run(rows, options.passed.read_text().splitlines(), long)
        for part in long:
            print(f"note: {part} is shown by `make test-long` alone")
    for sentence in wrong:
        print(f"error: docs/requirements.md: {sentence}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
