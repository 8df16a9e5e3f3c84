"""Which modules need a test of their own, and how one is asked for."""

from __future__ import annotations

import ast
from pathlib import Path

from tools.mirror import faults, mirror_of, statements


def test_a_test_lies_where_its_module_does() -> None:
    """Below the product's folder, without the package's name."""
    assert mirror_of(Path("core/pilotlight_core/bus/kv.py")) == Path("tests/core/bus/test_kv.py")
    assert mirror_of(Path("sdk/pilotlight/app.py")) == Path("tests/sdk/test_app.py")


def test_records_and_protocols_have_no_behaviour() -> None:
    """Docstrings and bodies that say nothing do not count; nested functions do."""
    code = '''
from typing import Protocol
LIMIT = 3
class Row:
    value: int = 0
class Port(Protocol):
    def ask(self) -> int:
        """What it is."""
        return 1
class Real:
    def ask(self) -> int:
        """What it is."""
        async def inner() -> None: ...
        return LIMIT
'''
    assert statements(ast.parse(code)) == 2


def test_a_missing_test_is_named_unless_it_says_where_it_is(tmp_path: Path) -> None:
    """And a line that is not needed any more is named too."""
    one, two = Path("core/p/a.py"), Path("core/p/b.py")
    (tmp_path / "tests/core").mkdir(parents=True)
    (tmp_path / "tests/core/test_a.py").touch()

    assert faults([one, two], tmp_path, {}) == ["core/p/b.py: no tests/core/test_b.py"]
    assert faults([one, two], tmp_path, {"core/p/b.py": "by test_a"}) == []
    assert faults([one], tmp_path, {"core/p/a.py": "by test_b"}) == ["core/p/a.py: needs no line in ELSEWHERE"]
