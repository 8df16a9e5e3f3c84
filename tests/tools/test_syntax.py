"""Which statements stand in which."""

from __future__ import annotations

import ast
from pathlib import Path

from tools.syntax import inner, parsed, walk

TEXT = """
def f():
    try:
        a = [lambda: 1]
    except E:
        for b in c:
            pass
        else:
            d
    else:
        while e:
            break
    finally:
        with g:
            class H: ...
match i:
    case j if k:
        async def l(): return (yield)
if m: import n
elif o: from p import q
"""


def test_every_statement_is_found_once() -> None:
    """As in a walk over all nodes, within any other."""
    tree = ast.parse(TEXT)
    kinds = (ast.stmt, ast.excepthandler, ast.match_case)
    statements = {node for node in ast.walk(tree) if isinstance(node, kinds)}

    found = list(walk(tree))

    assert len(found) == len(set(found))
    assert set(found) == statements | {tree}
    assert [type(node).__name__ for node in inner(tree)] == ["FunctionDef", "Match", "If"]


def test_a_file_is_read_once(tmp_path: Path) -> None:
    """However many ask for its tree."""
    file = tmp_path / "a.py"
    file.write_text("a = 1\n")

    assert parsed(file) is parsed(file)
    assert isinstance(parsed(file).body[0], ast.Assign)
