"""`pilotlight backup`: what is typed reaches the platform's command, which does it."""

from __future__ import annotations

from pathlib import Path

import msgspec

from tests.sdk.cli.shell import invoke


def test_what_is_no_platform_is_refused(tmp_path: Path) -> None:
    """By its reason, as JSON too."""
    done = invoke("backup", str(tmp_path / "copy"), "--state-dir", str(tmp_path), "--no-keys", "--json")

    assert done.exit_code == 1
    assert "is no platform's folder" in msgspec.json.decode(done.stdout)["error"]["detail"]


def test_its_help_has_examples() -> None:
    """Of what operators type."""
    assert "pilotlight backup /var/backups/pilotlight-2026-11-27" in invoke("backup", "--help").stdout
