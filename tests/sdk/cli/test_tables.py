"""Tables: whole where no terminal is, and never wider than one."""

from __future__ import annotations

from pathlib import Path

import pytest

from pilotlight.cli.tables import fitting, print_table, width_of
from tests.sdk.cli.every_command import CONTAINER, WORDS, make_folder, script
from tests.sdk.cli.seeing_answers import JOB
from tests.sdk.cli.shell import ESCAPE, cells, on_terminal
from tests.sdk.scripted import ScriptedPlatform, answer

LISTS = [
    "job list", "app list", "app history", "app shares", "app shared", "container list", "batch list", "webhook list",
    "webhook deliveries", "profile", "usage", "tenant list", "key list", "quota show", "quota tiers",
]  # fmt: skip


@pytest.fixture
def folder(platform: ScriptedPlatform, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    script(platform)
    monkeypatch.setattr("pilotlight.cli.commands.run.token", lambda _length: "abc123")
    return make_folder(tmp_path / "code")


def test_a_table_is_aligned_and_an_empty_one_is_a_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    """Cells are not cut without a terminal, and numbers stand on the right."""
    print_table(("name", "n"), [("a" * 150, 5), ("b", 12)], empty="none", right=("n",), less=("n",))
    print_table(("name",), [], empty="No names.")
    shown = capsys.readouterr()
    assert shown.out.splitlines() == [f"{'name':150}   n", f"{'a' * 150}   5", f"{'b':150}  12"]
    assert shown.err == "No names.\n"


@pytest.mark.parametrize(
    ("room", "kept"), [(15, [0, 1, 2]), (14, [0, 2]), (9, [0, 2]), (8, [0]), (1, [0])], ids=lambda value: str(value)
)
def test_columns_are_left_out_one_after_the_other(room: int, kept: list[int]) -> None:
    """As few as possible, in the order of their importance; those that are not named stay."""
    columns, lines = ("id", "note", "n"), [["abcd", "xyz", "100"]]

    assert width_of([columns, *lines]) == 15
    assert fitting(columns, lines, ("note", "n"), room) == kept


@pytest.mark.parametrize("name", LISTS)
def test_no_list_is_wider_than_80_columns(folder: Path, name: str) -> None:
    """With names as long as real ones; only a value that is longer by itself, such as an address, goes beyond."""
    lines = ESCAPE.sub("", on_terminal(*WORDS[name].split(), cwd=folder, columns=80)).splitlines()

    assert len(lines) > 1
    for line in lines:
        longest = max((len(word) for word in line.split("  ")), default=0)
        assert len(line) <= 80 or longest > 50, line


def test_what_is_left_out_is_named(folder: Path) -> None:
    """The rest is whole, so that it can be copied."""
    shown = ESCAPE.sub("", on_terminal("job", "list", cwd=folder, columns=80))
    assert JOB in shown
    assert "; a wider window shows more, --json all." in shown
    assert "Left out" not in on_terminal("job", "list", cwd=folder, columns=200)


def test_a_table_that_does_not_fit_at_all_is_blocks(folder: Path) -> None:
    """Each cell on a line of its own, and each whole."""
    shown = ESCAPE.sub("", on_terminal("container", "list", cwd=folder, columns=40)).splitlines()
    assert shown[0].split() == ["container", CONTAINER]
    assert [line.split()[0] for line in shown[1:3]] == ["function", "state"]


def test_a_table_has_a_bold_head_on_a_terminal(platform: ScriptedPlatform) -> None:
    """The cells are the same as without a terminal."""
    tenant = {"name": "acme", "tier": "paid", "weight": 1.5, "created_at": 0.0, "disabled": False}
    platform.will("GET", "/v1/tenants", answer({"tenants": [tenant]}))
    shown = on_terminal("tenant", "list")
    assert "\x1b[1m" in shown
    assert cells(ESCAPE.sub("", shown))[1] == ["acme", "paid", "1.5", "-", "active", "none"]
