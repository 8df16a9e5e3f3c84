"""`pilotlight doctor`: what is typed reaches the platform's command, which does it."""

from __future__ import annotations

from pathlib import Path

import msgspec

from tests.sdk.cli.shell import invoke


def test_a_host_is_checked(tmp_path: Path) -> None:
    """For the role that was named, with the options of the platform's command."""
    done = invoke("doctor", "--for", "bus", "--json", "--state-dir", str(tmp_path), "--port", "0")
    told = msgspec.json.decode(done.stdout)

    assert (told["for"], done.exit_code) == ("bus", 1 if told["health"] == "fail" else 0)
    assert {"state folder", "nats-server", "port 0"} <= {each["name"] for each in told["findings"]}


def test_a_role_that_is_none_is_refused() -> None:
    """Before anything is checked."""
    done = invoke("doctor", "--for", "toaster")

    assert done.exit_code == 2
    assert "toaster" in done.stderr


def test_its_help_has_examples() -> None:
    """And says where the other options are."""
    text = " ".join(invoke("doctor", "--help").stdout.split())

    assert "sudo pilotlight doctor --url" in text
    assert "pilotlight doctor -- --help" in text
