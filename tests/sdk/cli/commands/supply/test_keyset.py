"""Commands about the platform's keys: sets are published as they were signed, and versions signed again to the end."""

from __future__ import annotations

import json
from pathlib import Path

from typer.testing import CliRunner, Result

from pilotlight.cli.main import app
from tests.sdk.cli.supply_commands import SIGNING
from tests.sdk.scripted import ScriptedPlatform, answer


def run(*words: str) -> Result:
    return CliRunner().invoke(app, ["keyset", *words])


def test_a_set_is_published_from_its_file_or_the_operators_folder(platform: ScriptedPlatform, tmp_path: Path) -> None:
    """As it is: nobody but the operator's key could change it."""
    platform.will("PUT", "/v1/signing-keys", answer(SIGNING))
    signed = {"root": "AA==", "key_set": "gg==", "signature": "AA=="}
    (tmp_path / "key-set.json").write_text(json.dumps(signed))
    for place in (tmp_path, tmp_path / "key-set.json"):
        done = run("publish", str(place))
        assert "has expired on" in done.stdout

    assert [request.json for request in platform.requests] == [signed, signed]
    assert "cannot be read" in run("publish", str(tmp_path / "nowhere")).stderr
    (tmp_path / "key-set.json").write_text("{")
    assert "is no set of keys" in run("publish", str(tmp_path)).stderr


def test_versions_are_signed_again_to_the_end_and_what_is_not_is_named(platform: ScriptedPlatform) -> None:
    """Page by page; exit code 1 if something is left."""
    refused = {"version": "ver_2", "tenant": "acme", "ref": "shop.f@v2", "why": "Its key was revoked."}
    pages = [
        {"looked_at": 2, "signed": 1, "refused": [refused], "next": "ver_2"},
        {"looked_at": 1, "signed": 1, "refused": [], "next": ""},
    ]
    platform.will("POST", "/v1/signing-keys/resign", *map(answer, pages))
    done = run("resign")

    assert done.exit_code == 1
    assert "3 versions looked at, 2 signed again, 1 not." in done.stdout
    assert "acme: shop.f@v2: Its key was revoked." in done.stdout
    assert [request.json for request in platform.requests] == [{"after": after, "most": 100} for after in ("", "ver_2")]


def test_one_key_for_all_is_said(platform: ScriptedPlatform) -> None:
    """With what would make it a set."""
    platform.will("GET", "/v1/signing-keys", answer(SIGNING | {"serial": 0}))
    assert "'pilotlight keyset vouch' makes it a set" in run("list").stderr
