"""`pilotlight restore`: what is typed reaches the platform's command, which does it."""

from __future__ import annotations

from pathlib import Path

import msgspec

from tests.sdk.cli.shell import invoke


def test_what_is_no_backup_is_refused(tmp_path: Path) -> None:
    """By its reason, as JSON too."""
    words = ("--state-dir", str(tmp_path / "new"), "--replicas", "3", "--keep-ledger", "--check", "--json")
    done = invoke("restore", str(tmp_path), *words)

    assert done.exit_code == 1
    assert "is no backup" in msgspec.json.decode(done.stdout)["error"]["detail"]


def test_its_help_has_examples() -> None:
    """Of what operators type."""
    assert "pilotlight restore /var/backups/pilotlight-2026-11-27 --check" in invoke("restore", "--help").stdout
