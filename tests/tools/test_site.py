"""The site has every page, each at one place."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tools import reference

ROOT = Path(__file__).parents[2]


def pages_of(nav: list[Any]) -> Iterator[str]:
    """The pages of a navigation, in order."""
    for entry in nav:
        for inside in entry.values():
            yield from (inside,) if isinstance(inside, str) else pages_of(inside)


def test_every_page_is_in_the_navigation_once() -> None:
    """Decisions are listed on a page that is made; reference pages are made, too."""
    known = {path.relative_to(ROOT / "docs").as_posix() for path in (ROOT / "docs").rglob("*.md")}
    made = {f"{reference.FOLDER}/{name}".removeprefix("docs/") for name in reference.PAGES}
    found = list(pages_of(tomllib.loads((ROOT / "zensical.toml").read_text())["project"]["nav"]))

    assert len(found) == len(set(found))
    assert {page for page in known if not page.startswith("decisions/")} | made == set(found)
