"""`pilotlight node`."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from typer.testing import CliRunner

from pilotlight.cli.main import app
from pilotlight_core.model.api.join_text import parse_join_text
from pilotlight_core.model.versions.public_keys import public_pem
from tests.sdk.cli.every_command import NODE
from tests.sdk.cli.shell import cells, invoke, run
from tests.sdk.scripted import ScriptedPlatform, answer

JOIN_TOKEN = f"pl_join_{8 * 't'}_{40 * 'x'}"


def test_a_check_is_a_process_of_its_own(capfd: pytest.CaptureFixture[str]) -> None:
    """Options and the exit code are those of the other process."""
    done = CliRunner().invoke(app, ["node", "check", "--no-such-option"])
    assert done.exit_code == 2
    assert "--no-such-option" in capfd.readouterr().err


def test_a_check_prints_its_findings() -> None:
    """With --json they are a document, and the exit code is 1 if a check fails."""
    done = CliRunner().invoke(app, ["node", "check", "--json", "--sandbox", "process"])
    checks = msgspec.json.decode(done.stdout)
    assert checks
    assert done.exit_code == (0 if all(check["ok"] for check in checks) else 1)


PAGE = {
    "items": [
        {"id": 7, "at": 1_790_035_200.0, "node": "n1", "reason": "bad_time", "text": "UsageEvent(" + "x" * 500},
        {"id": 3, "at": 1_790_035_199.0, "node": "", "reason": "bad_part", "text": "old"},
    ],
    "counts": [
        {"node": "", "reason": "bad_part", "events": 1}, {"node": "n1", "reason": "bad_time", "events": 5_000},
    ],
}  # fmt: skip


def test_the_quarantine_is_counted_and_shown(platform: ScriptedPlatform) -> None:
    """The newest first, each on a line; with --json as it was answered."""
    platform.will("GET", "/v1/usage/quarantine", *[answer(PAGE)] * 2, answer({"items": [], "counts": []}))

    lines = cells(run("node", "quarantine"))
    assert lines[:3] == [["node", "reason", "events"], ["-", "bad_part", "1"], ["n1", "bad_time", "5000"]]
    assert lines[4][:3] == ["2026-09-22 00:00:00", "n1", "bad_time"]
    assert lines[4][3].startswith("UsageEvent(x")
    assert len(lines[4][3]) == 120
    assert msgspec.json.decode(run("node", "quarantine", "--node", "n1", "-n", "5", "--json")) == PAGE
    assert platform.requests[1].query == "limit=5&node=n1"
    assert invoke("node", "quarantine").stderr == "Nothing is in quarantine.\n"


def test_nodes_are_listed_with_their_labels(platform: ScriptedPlatform) -> None:
    """And what each guarantees, and a clock that is off."""
    own = NODE | {"node": "n2", "joined": False, "clock_s": 0.5, "expires_at": None, "pool": "", "guarantees": {}}
    platform.will("GET", "/v1/nodes", *[answer({"nodes": [NODE, own]})] * 2)

    first, second = cells(run("node", "list"))[1:3]
    assert first == ["n1", "up", "open", "eu-1", "h100", "spot", "3", "-2.5 s"]
    assert second == ["n2", "up", "open", "eu-1", "-", "spot", "3", "ok"]
    wide = cells(run("node", "list", "--wide"))
    assert wide[0][8:] == ["sandbox", "host", "devices", "identity"]
    assert wide[1][8:11] == ["bubblewrap", "32 cores, 256.0 GiB", "2xH100:mig"]
    assert wide[2][8:] == ["-", "-", "-", "static"]


def test_a_node_is_shown(platform: ScriptedPlatform) -> None:
    """Line by line."""
    platform.will("GET", "/v1/nodes/n1", answer(NODE))
    shown = dict(line[:2] for line in cells(run("node", "show", "n1"))[1:])
    assert (shown["zone"], shown["sandbox"], shown["features"]) == ("eu-1", "bubblewrap", "shm")


def test_a_token_is_on_stdout_alone(platform: ScriptedPlatform) -> None:
    """So that it can be passed on."""
    platform.will("POST", "/v1/nodes/tokens", answer({"token": JOIN_TOKEN}))
    assert run("node", "token", "--pool", "h100", "--spot", "--expires", "1h") == f"{JOIN_TOKEN}\n"
    sent = platform.requests[0].json
    assert (sent["pool"], sent["purchase"], sent["expires_in_s"]) == ("h100", "spot", 3600.0)


def test_keys_are_put_behind_a_token_here(platform: ScriptedPlatform, tmp_path: Path) -> None:
    """The platform hears nothing of them; a file without any is said to be so, before a token is made."""
    platform.will("POST", "/v1/nodes/tokens", answer({"token": JOIN_TOKEN}))
    key, file = bytes(range(32)), tmp_path / "operator.pub"
    refused = invoke("node", "token", "--trusted-keys", str(file))
    assert (refused.exit_code, platform.requests) == (1, [])
    assert "there are no public keys in" in refused.stderr.replace("\n", " ")

    file.write_bytes(public_pem(key))

    text = run("node", "token", "--trusted-keys", str(file)).strip()
    assert parse_join_text(text) == (JOIN_TOKEN, (key,))
    assert "trusted" not in platform.requests[0].json


EVIL = "A" * 43


@pytest.mark.parametrize(
    "said", [f"{JOIN_TOKEN}.{EVIL}", f"pl_join_x_y.{EVIL}", f"{JOIN_TOKEN}\n", f"\x1b[2J{JOIN_TOKEN}", "", None, 7]
)
@pytest.mark.parametrize("flags", [(), ("--json",), ("--trusted-keys", "operator.pub")])
def test_a_gateway_puts_no_key_behind_a_token(
    platform: ScriptedPlatform, tmp_path: Path, said: object, flags: tuple[str, ...]
) -> None:
    """Whom agents trust is not its to say: what is no bare token ends it, and is not shown."""
    file = tmp_path / "operator.pub"
    file.write_bytes(public_pem(bytes(range(32))))
    platform.will("POST", "/v1/nodes/tokens", answer({"id": "t", "token": said}))
    refused = invoke("node", "token", *(str(file) if flag == file.name else flag for flag in flags))

    assert refused.exit_code == 1
    assert "what the gateway answers is none" in refused.output.replace("\n", " ")
    assert EVIL not in refused.output
    assert JOIN_TOKEN not in refused.output


def test_a_node_is_not_revoked_by_accident(platform: ScriptedPlatform) -> None:
    """Where nobody can be asked, the word is needed."""
    platform.will("POST", "/v1/nodes/n1/revoke", answer(NODE))
    refused = invoke("node", "revoke", "n1")
    assert refused.exit_code == 1
    assert "--yes" in refused.stderr
    assert platform.requests == []
    assert invoke("node", "revoke", "n1", "--yes").exit_code == 0
