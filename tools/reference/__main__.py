"""Write the reference pages."""

from __future__ import annotations

from pathlib import Path

from tools.reference import FOLDER, PAGES
from tools.reference.cli import cli_page
from tools.reference.decisions import decisions_page
from tools.reference.http import http_page
from tools.reference.sdk import sdk_page
from tools.reference.settings import settings_page


def main() -> None:
    """Write them anew; the folder holds nothing else."""
    folder = Path(__file__).parents[2] / FOLDER
    folder.mkdir(exist_ok=True)
    made = (sdk_page(), cli_page(), http_page(), settings_page(), decisions_page())
    for name, page in zip(PAGES, made, strict=True):
        (folder / name).write_text(page)


if __name__ == "__main__":
    main()
