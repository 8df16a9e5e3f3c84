"""Lengths are measured as people count them, and exceptions do not outlive their reason."""

from __future__ import annotations

import ast

from tools.lengths import MAX_BODY, MAX_FILE, Length, faults, functions, quantile

CODE = '''
class Box:
    def open(
        self,
    ) -> None:
        """A docstring

        is not counted."""
        first = 1

        async def inner() -> None:
            return None
'''


def test_body_lines_leave_out_signature_and_docstring() -> None:
    """Blank lines and nested functions count; what comes before the first statement does not."""
    found = {length.name: length.lines for length in functions(ast.parse(CODE), "box.py::")}

    assert found == {"box.py::Box.open": 4, "box.py::Box.open.inner": 1}


def test_too_long_fails_unless_named() -> None:
    """One sentence each for a file and a function; a named one is let pass."""
    files = [Length(name="a.py", lines=MAX_FILE + 1), Length(name="b.py", lines=MAX_FILE)]
    found = [Length(name="b.py::f", lines=MAX_BODY + 1)]

    assert faults(files, found, {}) == ["a.py: 501 lines, 500 allowed", "b.py::f: 81 body lines, 80 allowed"]
    assert faults(files, found, {"a.py": "one idea", "b.py::f": "a table"}) == []


def test_an_exception_that_is_not_needed_fails() -> None:
    """ALLOWED shrinks with the code."""
    assert faults([Length(name="a.py", lines=10)], [], {"a.py": "was long"}) == [
        "a.py: allowed to be long, but is not; remove it from ALLOWED"
    ]


def test_quantile_is_a_value_that_was_measured() -> None:
    """Nearest rank, without interpolation."""
    assert [quantile([4, 1, 3, 2], percent) for percent in (50, 90, 100)] == [2, 4, 4]
    assert quantile([], 50) == 0
