"""The guide and the README: every block of code is run, in the order of its page, and prints what the page shows."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from tests.command_line import program
from tests.system.support.page_blocks import BlockKind, blocks_of, difference
from tests.system.support.page_reader import ELSEWHERE, PageReader
from tests.system.support.platform import ROOT, Platform

PAGES = [ROOT / "README.md", *sorted((ROOT / "docs" / "guide").glob("*.md"))]


@pytest.fixture
def reader(platform: Platform, tmp_path: Path) -> PageReader:
    """Somebody with a shell in an empty folder, on the machine on which the platform is up."""
    (bin_folder := tmp_path / "bin").mkdir()
    path = f"{program(bin_folder).parent}:{Path(sys.executable).parent}:{os.environ['PATH']}"
    env = {
        "HOME": str(tmp_path), "PATH": path, "PILOTLIGHT_HOME": str(platform.client_file.parent), "NO_COLOR": "1"
    }  # fmt: skip
    folder = tmp_path / "deploying"
    folder.mkdir()
    return PageReader(folder=folder, state=tmp_path / "variables", env=env, url=platform.url)


def apps_of(platform: Platform) -> set[str]:
    return {app["app"] for app in platform.http.get("/v1/apps").json()["apps"]}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_page_does_what_it_says(platform: Platform, reader: PageReader, page: Path) -> None:
    """What it deployed is deleted after it, so that the next page finds all slots free."""
    before = apps_of(platform)
    try:
        reader.follow(page.read_text(), page.name)
    finally:
        for app in apps_of(platform) - before:
            platform.http.delete(f"/v1/apps/{app}")
    assert reader.commands


def test_what_is_not_run_is_on_a_page() -> None:
    """An exception that nobody needs is taken out."""
    said = "".join(page.read_text() for page in PAGES)

    assert [command for command in ELSEWHERE if f"$ {command}\n" not in said] == []


@pytest.mark.parametrize(
    "page",
    [
        "```console\n$ echo one\ntwo\n```",
        "```console\n$ false\n```",
        "```console\n$ echo error:\nerror:\n```",
        "```python\nprint(1)\n```\n```text\n2\n```",
        "```python\nraise ValueError\n```",
        "```console\n$ cat there.txt\n```",
    ],
)
def test_a_page_that_is_wrong_is_found(reader: PageReader, page: str) -> None:
    """Another output, a command or program that fails, one that should fail, a file that is not there."""
    with pytest.raises(AssertionError, match="page:1"):
        reader.follow(page, "page")


def test_files_and_variables_last_to_the_end_of_a_page(reader: PageReader) -> None:
    """A block goes on where the one before it ended."""
    page = '```text title="a/b.txt"\nhere\n```\n```console\n$ FOUND=$(cat a/b.txt)\n```\n```console\n$ echo $FOUND \\\n'
    reader.follow(f"{page}    there\nhere there\n```", "page")

    assert reader.commands == 2


@pytest.mark.parametrize("block", ["```\nx\n```", "```json\n{}\n```", "```text\nx\n```", "    indented\n"])
def test_a_block_that_nothing_runs_is_refused(block: str) -> None:
    """Neither skipped nor guessed at: it says its line."""
    with pytest.raises(ValueError, match="line 3: nothing runs"):
        blocks_of(f"# Page\n\n{block}")


def test_a_program_has_the_output_that_follows_it() -> None:
    [block] = blocks_of("```python\nprint(1)\n```\n```text\n1\n```")

    assert (block.kind, block.text, block.shown) == (BlockKind.PROGRAM, "print(1)\n", "1\n")


@pytest.mark.parametrize(
    ("shown", "printed"),
    [
        (["a", "b"], ["a", "", "b "]),
        (["a … c"], ["a b c"]),
        (["…", "b"], ["a", "a", "b"]),
        (["x: a", "…", "x: a", "y"], ["x: a", "x: a", "z", "x: a", "y"]),
        (["a", "…"], ["a"]),
        (["note", "a"], ["a"]),
    ],
)
def test_an_output_that_is_shown(shown: list[str], printed: list[str]) -> None:
    """`…` stands for any characters or lines; blank lines do not count; notes are shown or not."""
    assert difference(shown, printed, ["note", "another"]) is None


@pytest.mark.parametrize(
    ("shown", "printed", "wrong"),
    [
        (["a"], ["a", "b"], "printed, but not shown: b"),
        (["a", "b"], ["a"], "shown, but not printed: b"),
        (["b", "a"], ["a", "b"], "shown, but not printed: b"),
        (["a.c"], ["abc"], "shown, but not printed: a.c"),
        (["…", "c"], ["a", "b"], "shown, but not printed: c"),
        ([], ["a"], "printed, but not shown: a"),
    ],
)
def test_an_output_that_is_another(shown: list[str], printed: list[str], wrong: str) -> None:
    """The first line that differs is said."""
    assert difference(shown, printed) == wrong
