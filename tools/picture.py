"""Turn the demo's SVG into the README's picture: `python -m tools.picture demo.svg docs/demo.png` (needs chromium)."""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from pathlib import Path

WIDTH = 1000
"""Pixels."""


def main() -> None:
    """Render the first argument into the second."""
    source, target = Path(sys.argv[1]), Path(sys.argv[2])
    drawing = re.sub(r"@font-face \{[^}]*\}", "", source.read_text())  # fonts from elsewhere are not fetched
    width, height = (float(number) for number in re.findall(r'viewBox="0 0 ([\d.]+) ([\d.]+)"', drawing)[0])
    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder) / "page.html"
        (Path(folder) / "demo.svg").write_text(drawing)
        page.write_text(f'<body style="margin:0"><img src="demo.svg" style="width:{WIDTH}px">')
        size = f"--window-size={WIDTH},{int(height * WIDTH / width)}"
        options = ["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", size]
        subprocess.run(["chromium", *options, f"--screenshot={target.resolve()}", page.as_uri()], check=True)


if __name__ == "__main__":
    main()
