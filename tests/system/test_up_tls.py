"""`pilotlight up` with a certificate: its API is https, and the command line believes it by its file alone."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from tests.builders.certificates import a_server, an_authority
from tests.command_line import run_command
from tests.system.support.platform import platform as run_platform
from tests.system.support.sample_apps import APPS

pytestmark = pytest.mark.system


def test_the_first_clients_file_has_all_that_a_client_needs(tmp_path: Path) -> None:
    """Address, key and authority: a deploy and a call work with nothing else set."""
    authority, files = an_authority(tmp_path / "ca"), a_server(tmp_path / "ca")
    flags = ("--tls-cert", str(files.certificate), "--tls-key", str(files.key), "--ca-file", str(authority))
    folder = tmp_path / "up"
    folder.mkdir()
    with run_platform(folder, "--cpu-slots", "2", "--blanks", "1", *flags) as running:
        told = json.loads((folder / "client.json").read_text())
        env = {name: value for name, value in os.environ.items() if not name.startswith("PILOTLIGHT_")}
        env |= {"PILOTLIGHT_HOME": str(folder), "NO_COLOR": "1"}
        deployed = run_command(["deploy", str(APPS / "calls" / "app.py")], env=env)
        called = run_command(["call", "calls.echo", "value=hello"], env=env)

        assert running.urls == [told["url"]]
        assert told["url"].startswith("https://127.0.0.1:")
        assert told["ca_file"] == str(authority)
        assert deployed.returncode == 0, deployed.stderr
        assert "hello" in called.stdout, called.stderr
