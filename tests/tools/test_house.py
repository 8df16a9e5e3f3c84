"""Rooms, arrows and circles are counted as a reader meets them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools.house import (
    SOURCE,
    between_rooms,
    circles,
    classes_twice,
    imports,
    modules,
    pointing_up,
    words,
)


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """Two rooms that import each other, one of them for type checkers alone."""
    files = {
        "p/__init__.py": "",
        "p/low/__init__.py": "",
        "p/low/a.py": "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from p.high.c import C\nclass A: ...\n",
        "p/low/b.py": "from p.low import a\nclass B: ...\n",
        "p/high/__init__.py": "",
        "p/high/c.py": "def f() -> None:\n    from p.low.b import B\nclass C: ...\nclass A: ...\nclass _B: ...\n",
        "p/high/d.py": "import p.low.a\nimport json\n",
    }
    for name, text in files.items():
        path = tmp_path / SOURCE[0] / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return tmp_path


def test_imports_are_found_wherever_they_are(tree: Path) -> None:
    """Under TYPE_CHECKING, within functions, of a module by its package or by its name; others are nobody's."""
    found = imports(modules(tree))

    assert {name: found[name] for name in ("p.low.a", "p.low.b", "p.high.c", "p.high.d")} == {
        "p.low.a": {"p.high.c"},
        "p.low.b": {"p.low.a"},
        "p.high.c": {"p.low.b"},
        "p.high.d": {"p.low.a"},
    }


def test_a_circle_of_modules_is_named(tree: Path) -> None:
    """With everyone in it."""
    assert circles(imports(modules(tree))) == [["p.high.c", "p.low.a", "p.low.b"]]


def test_one_of_two_rooms_that_import_each_other_points_up(tree: Path) -> None:
    """And none does once that arrow is gone."""
    known = modules(tree)
    arrows = between_rooms(imports(known), known)

    ((a, b),) = pointing_up(arrows)

    assert {a, b} == {"p.low", "p.high"}
    arrows[a].remove(b)
    assert pointing_up(arrows) == []


def test_a_long_chain_is_no_circle_and_no_recursion() -> None:
    """It may be deeper than Python's stack."""
    chain = {str(number): {str(number + 1)} for number in range(5000)} | {"5000": set[str]()}

    assert circles(chain) == []
    assert len(circles(chain | {"5000": {"0"}})[0]) == 5001


def test_public_names_stand_for_one_class(tree: Path) -> None:
    """What begins with an underscore is its file's own affair."""
    assert classes_twice(modules(tree).values()) == ["A"]


def test_words_of_docstrings_and_comments_are_counted_apart() -> None:
    """Docstrings of attributes are docstrings too; other strings are not."""
    text = '"""One two."""\nx = 1  # three four five\n"""six"""\ny = "no words"\n\ndef f() -> None:\n    """seven"""\n'

    assert words(text) == (4, 3)
