"""`pilotlight node check`."""

from __future__ import annotations

import msgspec
import pytest
from typer.testing import CliRunner

from pilotlight.cli.main import app


def test_a_check_is_a_process_of_its_own(capfd: pytest.CaptureFixture[str]) -> None:
    """Options and the exit code are those of the other process."""
    done = CliRunner().invoke(app, ["node", "check", "--no-such-option"])
    assert done.exit_code == 2
    assert "--no-such-option" in capfd.readouterr().err


def test_a_check_prints_its_findings(capfd: pytest.CaptureFixture[str]) -> None:
    """With --json they are a document, and the exit code is 1 if a check fails."""
    done = CliRunner().invoke(app, ["node", "check", "--json", "--sandbox", "process"])
    checks = msgspec.json.decode(capfd.readouterr().out)
    assert checks
    assert done.exit_code == (0 if all(check["ok"] for check in checks) else 1)
