"""`pilotlight sbom` prints a document, or writes it."""

from __future__ import annotations

import json
from pathlib import Path

from typer.testing import CliRunner

from pilotlight.cli.main import app
from tests.sdk.scripted import ScriptedPlatform, answer


def test_a_document_is_printed_or_written(platform: ScriptedPlatform, tmp_path: Path) -> None:
    """The bill of materials, or the provenance."""
    platform.will("GET", "/v1/functions/shop.rank@v3/sbom", answer({"components": [{}, {}]}))
    platform.will("GET", "/v1/functions/shop.rank/provenance", answer({"payload": "x"}))
    written = CliRunner().invoke(app, ["sbom", "shop.rank@v3", "-o", str(tmp_path / "sbom.json")])
    printed = CliRunner().invoke(app, ["sbom", "shop.rank", "--provenance"])

    assert json.loads((tmp_path / "sbom.json").read_text()) == {"components": [{}, {}]}
    assert "2 components" in written.stderr
    assert json.loads(printed.stdout) == {"payload": "x"}
