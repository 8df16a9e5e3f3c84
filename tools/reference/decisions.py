"""The list of decisions, from their pages' titles."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

FOLDER = Path(__file__).parents[2] / "docs" / "decisions"
HEAD = """# Decisions

Why it is so: [one short page](../decisions/README.md) for each choice that somebody will ask about.
"""


def decisions_page() -> str:
    """The page."""
    return listing({path.name: path.read_text() for path in sorted(FOLDER.glob("0*.md"))})


def listing(pages: Mapping[str, str]) -> str:
    """The page that lists these, by file name."""
    entries = [
        f"- {name.partition('-')[0]}: [{text.partition(chr(10))[0].lstrip('# ')}](../decisions/{name})"
        for name, text in pages.items()
    ]
    return HEAD + "\n" + "\n".join(entries) + "\n"
