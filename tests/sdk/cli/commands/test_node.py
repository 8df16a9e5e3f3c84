"""`pilotlight node`."""

from __future__ import annotations

import msgspec
import pytest
from typer.testing import CliRunner

from pilotlight.cli.main import app
from tests.sdk.cli.shell import cells, invoke, run
from tests.sdk.scripted import ScriptedPlatform, answer


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
