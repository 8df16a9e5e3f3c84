"""`pilotlight weights`: what is printed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from pilotlight.cli.commands.models import weights
from pilotlight.cli.main import app
from pilotlight.packing.folder_signing import FolderSigner
from pilotlight_core.host.supply.tenant_signatures import verify_folder
from pilotlight_core.model.supply.signed_folders import SignedPart
from tests.builders.supply import AT, key_file, laid_out, trusting
from tests.sdk.scripted import ScriptedPlatform, answer, problem

DIGEST = "a" * 64
REVISION: dict[str, Any] = {
    "digest": DIGEST, "files": 1, "size": 12_000, "pushed_at": 0.0, "pushed_by": "k1", "pickles": ["m.bin"],
    "functions": ["shop.hello"],
}  # fmt: skip


def run(*words: str) -> Result:
    return CliRunner().invoke(app, ["weights", *words])


@pytest.fixture(autouse=True)
def _there(platform: ScriptedPlatform) -> None:
    platform.will("PUT", "/v1/weights/m", answer({"name": "m", "digest": DIGEST, "size": 2}))
    platform.will("GET", "/v1/weights", answer({"weights": [{"name": "m", "revisions": [REVISION]}]}))
    contents = [{"path": "m.bin", "size": 12_000, "parts": 1}]
    platform.will("GET", "/v1/weights/m", answer({"name": "m", "revision": REVISION, "contents": contents}))
    platform.will("DELETE", "/v1/weights/m", answer({"name": "m", "digests": [DIGEST]}))


def test_a_push_says_how_a_function_has_them(tmp_path: Path) -> None:
    """And in JSON what was pushed."""
    (tmp_path / "m.json").write_text("{}")
    done = run("push", "m", str(tmp_path))
    assert done.stdout.startswith("Pushed: m@aaaaaaaaaaaa, 1 file, 2 B.\n")
    assert 'weights=["m"]' in done.stdout
    told = json.loads(run("push", "m", str(tmp_path), "--json").stdout)
    assert told == {"name": "m", "digest": DIGEST, "files": 1, "size": 2}


def test_a_push_that_is_broken_off_says_that_it_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is there stays there."""
    (tmp_path / "m.json").write_text("{}")

    def broken(work: Any) -> None:
        work.close()
        raise KeyboardInterrupt

    monkeypatch.setattr(weights, "ask", broken)
    done = run("push", "m", str(tmp_path))
    assert done.exit_code == 130
    assert "run the command again to go on" in done.output


def test_they_are_listed_and_shown() -> None:
    """With what uses them, and that they have pickles."""
    listed = run("list")
    assert "m@aaaaaaaaaaaa" in listed.stdout
    assert "shop.hello" in listed.stdout
    assert json.loads(run("list", "--json").stdout)[0]["revisions"][0]["digest"] == DIGEST
    shown = run("show", f"m@{DIGEST[:8]}")
    assert f"m@{DIGEST}" in shown.stdout
    assert "used by shop.hello; has pickles: m.bin" in shown.stdout
    assert "\nnot signed\n" in shown.stdout
    assert json.loads(run("show", "m", "--json").stdout)["name"] == "m"


def test_a_push_signs_or_sends_a_signature_that_was_made_before(platform: ScriptedPlatform, tmp_path: Path) -> None:
    """Over the files as they are sent; and says by whose key they are signed."""
    folder = laid_out(tmp_path, {"m/m.json": b"{}"}) / "m"
    by = {"key": "0123", "name": "release", "counts": True, "why": ""}
    platform.will("PUT", "/v1/weights/m", answer({"name": "m", "digest": DIGEST, "size": 2, "signed": by}))
    signer = FolderSigner.load(key_file(tmp_path / "key"))

    done = run("push", "m", str(folder), "--sign", str(tmp_path / "key"))

    assert "They are signed by release (0123)." in done.stdout
    sent = json.loads(platform.asked("/v1/weights/m")[-1].body)
    parts = [SignedPart(one["path"], one["sha256"], one["size"]) for one in sent["parts"]]
    assert verify_folder("m", sent["signature"].encode(), parts, trusting(signer), AT).pem == signer.pem

    (tmp_path / "sig").write_text("theirs")
    told = run("push", "m", str(folder), "--signature", str(tmp_path / "sig"), "--json")
    assert json.loads(told.stdout)["signed"] == by
    assert json.loads(platform.asked("/v1/weights/m")[-1].body)["signature"] == "theirs"
    both = run("push", "m", str(folder), "--signature", str(tmp_path / "sig"), "--sign", str(tmp_path / "key"))
    assert "name one of them" in both.output
    assert both.exit_code == 1


def test_what_is_signed_is_shown_with_how_the_key_stands(platform: ScriptedPlatform) -> None:
    """In the list in a word."""
    by = {"key": "0123", "name": "release", "counts": False, "why": "was revoked on a day"}
    revision = REVISION | {"signed": by}
    platform.will("GET", "/v1/weights", answer({"weights": [{"name": "m", "revisions": [revision]}]}))
    platform.will("GET", "/v1/weights/m", answer({"name": "m", "revision": revision, "contents": []}))

    assert "signed by release (0123), which was revoked on a day" in run("show", "m").stdout
    assert json.loads(run("list", "--json").stdout)[0]["revisions"][0]["signed"] == by


def test_what_is_removed_is_named(platform: ScriptedPlatform) -> None:
    """And why it is not."""
    assert run("rm", "m").stdout == "Removed m@aaaaaaaaaaaa.\n"
    assert json.loads(run("rm", "m", "--json").stdout)["digests"] == [DIGEST]
    platform.will("DELETE", "/v1/weights/m", problem("conflict", detail="m is used by shop.hello"))
    assert "m is used by shop.hello" in run("rm", "m").output


@pytest.mark.parametrize("words", [("show", "m@x"), ("rm", "../m"), ("push", "a/b", ".")])
def test_what_is_no_name_is_refused_here(words: tuple[str, ...]) -> None:
    """Without asking the platform."""
    assert run(*words).exit_code == 1
