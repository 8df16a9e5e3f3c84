"""The files of the dashboard: ours are small, the one library is as it was published."""

from __future__ import annotations

import gzip
import hashlib
import json
import re
from pathlib import Path

from pilotlight_gateway.dashboard.asset_files import FOLDER, AssetFiles

OURS = 20_000
"""Bytes that all of our modules may have."""


def test_the_library_is_the_one_that_the_manifest_names() -> None:
    """By digest, with its licence; and nothing else lies there."""
    folder = FOLDER / "vendor"
    named = json.loads((folder / "manifest.json").read_text())
    for library in named:
        assert set(library) == {"name", "version", "licence", "source", "files"}
        for name, digest in library["files"].items():
            assert hashlib.sha256((folder / name).read_bytes()).hexdigest() == digest
    files = {name for library in named for name in library["files"]}
    assert {path.name for path in folder.iterdir()} == files | {"manifest.json"}


def test_our_modules_are_small_and_load_nothing_from_elsewhere() -> None:
    """No markup out of text, no code out of text, no address of another host."""
    modules = sorted(FOLDER.glob("*.js"))
    assert sum(path.stat().st_size for path in modules) < OURS
    for path in modules:
        text = path.read_text()
        for forbidden in ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "new Function"):
            assert forbidden not in text
        assert not re.search(r"https?://|\.style\.", text)
    assert not re.search(r"url\(|@import|https?://", (FOLDER / "look.css").read_text())


def test_a_change_of_any_file_is_another_address(tmp_path: Path) -> None:
    """So that browsers may keep what they have."""
    (tmp_path / "a.css").write_text("a { }")
    (tmp_path / "b.js").write_text("// b\n" * 200)
    (tmp_path / "c.txt").write_text("no asset")
    before = AssetFiles(tmp_path)
    large, small = before.find("b.js"), before.find("a.css")
    assert large is not None
    assert large.packed is not None
    assert gzip.decompress(large.packed) == large.plain
    assert small is not None
    assert small.packed is None
    assert before.find("c.txt") is before.find("../a.css") is None
    (tmp_path / "a.css").write_text("a {}")
    assert AssetFiles(tmp_path).base != before.base
    assert before.base.startswith("/ui/static/")
