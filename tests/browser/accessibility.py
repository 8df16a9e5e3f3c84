"""What axe-core finds wrong with a page, as a browser shows it. It lies here as it was published (`manifest.json`)."""

from __future__ import annotations

import gzip
import hashlib
import json
from functools import cache
from pathlib import Path
from typing import Any

from tools.headless_browser import Tab

FOLDER = Path(__file__).parent
RULES = ("wcag2a", "wcag2aa", "wcag21aa", "wcag22aa", "best-practice")
RUN = (
    "axe.run(document, {runOnly: RULES}).then(found => found.violations.map("
    "one => ({id: one.id, impact: one.impact, where: one.nodes.map(node => node.html.slice(0, 200))})))"
)


@cache
def axe_source() -> str:
    """The library, whose digest is the manifest's."""
    packed = gzip.decompress((FOLDER / "axe.min.js.gz").read_bytes())
    manifest = json.loads((FOLDER / "manifest.json").read_text())
    assert hashlib.sha256(packed).hexdigest() == manifest["unpacked"]["axe.min.js"]
    return packed.decode()


async def violations(tab: Tab) -> list[dict[str, Any]]:
    """What is wrong with the page for who reads it by ear, by keyboard, or with few colours."""
    await tab.evaluate(axe_source())
    found: list[dict[str, Any]] = await tab.evaluate(RUN.replace("RULES", json.dumps(RULES)))
    return found
