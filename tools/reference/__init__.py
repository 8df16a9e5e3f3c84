"""Reference pages made from the code: `python -m tools.reference` writes them into `docs/reference`, before a build."""

from __future__ import annotations

FOLDER = "docs/reference"
PAGES = ("sdk.md", "cli.md", "http.md", "settings.md", "decisions.md")
