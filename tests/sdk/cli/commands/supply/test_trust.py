"""Commands about a tenant's own keys: the private one goes nowhere."""

from __future__ import annotations

import time
from pathlib import Path

import model_signing
import pytest
from typer.testing import CliRunner, Result

from pilotlight.cli.main import app
from tests.sdk.cli.supply_commands import TRUSTED
from tests.sdk.scripted import ScriptedPlatform, answer


def run(*words: str) -> Result:
    return CliRunner().invoke(app, ["trust", *words])


def test_a_key_is_made_and_its_public_half_put_on_record(platform: ScriptedPlatform, tmp_path: Path) -> None:
    """With an end, if it is given one."""
    platform.will("PUT", "/v1/trusted-keys/release", answer(TRUSTED))
    key = tmp_path / "release.key"
    assert "Keep it" in run("new", str(key)).stdout
    done = run("add", "release", f"{key}.pub", "--days", "10")

    assert "release (875ab38dfa0d77c1) is on record." in done.stdout
    (request,) = platform.requests
    assert request.json["pem"] == Path(f"{key}.pub").read_text()
    assert request.json["not_after"] == pytest.approx(time.time() + 864_000, abs=60)
    assert "PRIVATE" not in str(request.json)
    assert "cannot be read" in run("add", "release", str(tmp_path / "nowhere")).stderr


def test_a_folder_of_weights_is_signed_as_the_standard_tool_verifies_it(tmp_path: Path) -> None:
    """Beside the folder, unless it is told where."""
    (tmp_path / "llama").mkdir()
    (tmp_path / "llama" / "m.safetensors").write_bytes((2).to_bytes(8, "little") + b"{}")
    run("new", str(tmp_path / "key"))
    done = run("sign", str(tmp_path / "llama"), "--key", str(tmp_path / "key"))

    assert "llama.sig: 1 file, signed by" in done.stdout
    judge = model_signing.verifying.Config().use_elliptic_key_verifier(public_key=tmp_path / "key.pub")
    judge.verify(tmp_path / "llama", tmp_path / "llama.sig")


def test_keys_are_listed_with_their_state_and_revoked_with_a_reason(platform: ScriptedPlatform) -> None:
    """The sentence is the platform's."""
    gone = TRUSTED | {"counts": False, "why": "was revoked on 2026-11-27 08:00 UTC: lost"}
    platform.will("GET", "/v1/trusted-keys", answer({"keys": [TRUSTED, gone]}))
    platform.will("POST", "/v1/trusted-keys/release/revoke", answer(gone))

    assert "was revoked on 2026-11-27" in run("list").stdout
    assert run("revoke", "release", "--reason", "lost").stdout.startswith("release (875ab38dfa0d77c1) was revoked")
    assert platform.requests[-1].json == {"reason": "lost"}
