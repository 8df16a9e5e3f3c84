"""`pilotlight ca`: what is typed reaches the platform's command, which does it."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from tests.sdk.cli.shell import invoke


def test_an_authority_and_what_it_issues(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Files in the folder that was named, or in `ca`; a second time is refused."""
    monkeypatch.chdir(tmp_path)
    made = invoke("ca", "init", "--days", "100", "--name", "Acme", "--json")
    words = ("ca", "issue", "gw-1", "--host", "gw-1.example.com", "--ip", "10.0.0.5", "--days", "9", "--json")
    issued, again, renewed = invoke(*words), invoke(*words), invoke(*words, "--replace")

    assert msgspec.json.decode(made.stdout)["certificate"] == "ca/ca.pem"
    assert msgspec.json.decode(issued.stdout)["hosts"] == ["gw-1.example.com"]
    assert (tmp_path / "ca" / "gw-1.key").is_file()
    assert (again.exit_code, renewed.exit_code) == (1, 0)
    assert "would be overwritten" in msgspec.json.decode(again.stdout)["error"]["detail"]


def test_its_help_has_examples() -> None:
    """Of both commands."""
    assert "pilotlight ca init ~/pilotlight-ca --days 1825" in invoke("ca", "init", "--help").stdout
    assert "pilotlight ca issue reports --client --days 30" in invoke("ca", "issue", "--help").stdout
