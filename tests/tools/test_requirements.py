"""The requirements page cannot promise what is not there, nor lose a row."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools.requirements import IDS, Row, faults, long_parts, not_run, read_rows


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A tree with one module and one test."""
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "limits.py").touch()
    (tmp_path / "test_limits.py").write_text("class TestLimits:\n    async def test_it_holds(self): ...\n")
    return tmp_path


def rows_with(implements: str, shows: str) -> list[Row]:
    """A complete page whose first row says this."""
    planned = [Row(id=id_, implements="planned", shows="planned") for id_ in IDS[1:]]
    return [Row(id=IDS[0], implements=implements, shows=shows), *planned]


def test_rows_are_read_from_any_table_of_the_page() -> None:
    """Headings, rules and prose are passed over; the last two cells are the ones that count."""
    page = "# Page\n| id | what | implemented by | shown by |\n|---|---|---|---|\n| B4 | fair | `a.py` | `b.py` |\n"

    assert read_rows(page) == [Row(id="B4", implements="`a.py`", shows="`b.py`")]


@pytest.mark.parametrize("shows", ["`test_limits.py`", "`test_limits.py::test_it_holds`, by `src`", "planned"])
def test_what_exists_is_accepted(root: Path, shows: str) -> None:
    """Files, folders and tests, sync or async; `planned` in both cells."""
    implements = "planned" if shows == "planned" else "`src/limits.py`"

    assert faults(rows_with(implements, shows), root) == []


@pytest.mark.parametrize(
    ("implements", "shows", "fault"),
    [
        ("`src/other.py`", "`test_limits.py`", "src/other.py does not exist"),
        ("`src/limits.py`", "`test_limits.py::test_gone`", "test_limits.py::test_gone does not exist"),
        ("`src/limits.py`", "by hand", "names no file"),
        ("planned", "`test_limits.py`", "names no file"),
    ],
)
def test_what_does_not_exist_is_named(root: Path, implements: str, shows: str, fault: str) -> None:
    """The sentence begins with the row."""
    assert faults(rows_with(implements, shows), root) == [f"{IDS[0]}: {fault}"]


def test_every_requirement_has_exactly_one_row(root: Path) -> None:
    """Missing, doubled and unknown rows are all found."""
    rows = [
        *rows_with("planned", "planned")[1:],
        *(Row(id=i, implements="planned", shows="planned") for i in ("B1", "Z9")),
    ]

    assert faults(rows, root) == ["A1: no row", "B1: unknown or twice", "Z9: unknown or twice"]


@pytest.mark.parametrize("shows", ["tests/limits", "tests/limits/test_rate.py", "tests/limits/test_rate.py::test_a"])
def test_tests_that_are_named_have_passed(shows: str) -> None:
    """The test itself, with any parameters, or one of the file or folder."""
    rows = rows_with("`src/limits.py`", f"`{shows}`, `benchmarks/limits.py`")

    assert not_run(rows, ["tests/limits/test_rate.py::test_a[1-x]"], []) == []
    assert not_run(rows, ["tests/limits_too/test_rate.py::test_b"], []) == [
        f"{IDS[0]}: {shows} did not run, or did not pass"
    ]


def test_what_has_long_tests_alone_is_not_in_the_run(tmp_path: Path) -> None:
    """A file with one other test is; a row needs something that the run shows."""
    (tmp_path / "tests").mkdir()
    long = "@pytest.mark.long\n@pytest.mark.timeout(9)\ndef test_days(): ...\n"
    (tmp_path / "tests" / "test_long.py").write_text(f"def helper(): ...\n{long}")
    (tmp_path / "tests" / "test_both.py").write_text(f"{long}def test_short(): ...\n")
    mixed = rows_with("`src`", "`tests/test_long.py`, `tests/test_both.py`, `tests/test_both.py::test_days`")
    alone = rows_with("`src`", "`tests/test_long.py`")
    passed = ["tests/test_both.py::test_short"]

    assert long_parts(mixed, tmp_path) == ["tests/test_long.py", "tests/test_both.py::test_days"]
    assert not_run(mixed, passed, long_parts(mixed, tmp_path)) == []
    assert not_run(mixed, [], long_parts(mixed, tmp_path)) == [
        f"{IDS[0]}: tests/test_both.py did not run, or did not pass"
    ]
    assert not_run(alone, passed, long_parts(alone, tmp_path)) == [f"{IDS[0]}: only long tests show it"]
