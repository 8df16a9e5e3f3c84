"""`pilotlight logout`: the issuer is told, and nothing is left here."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace

from pilotlight.client.login.saved_login import save_login
from tests.sdk.cli.shell import invoke, run
from tests.sdk.client.login.test_saved_login import LOGIN
from tests.sdk.scripted import Answer, ScriptedPlatform


@pytest.fixture
def file(platform: ScriptedPlatform, tmp_path: Path) -> Path:
    """A login at an issuer that the platform's server stands for."""
    found = tmp_path / "home" / "login.json"
    save_login(found, replace(LOGIN, revocation_endpoint=f"{platform.url}/revoke"))
    return found


def test_the_issuer_is_told(platform: ScriptedPlatform, file: Path) -> None:
    """So that the refresh token is worth nothing any more."""
    platform.will("POST", "/revoke", Answer(status=200))
    assert run("logout") == "Logged out.\n"
    assert not file.exists()
    assert b"token=r1" in platform.requests[0].body
    assert run("logout") == "Nobody was logged in.\n"


@pytest.mark.parametrize("content", [None, b"{"])
def test_it_is_forgotten_in_any_case(platform: ScriptedPlatform, file: Path, content: bytes | None) -> None:
    """Whether the issuer hears it or not, and whatever is in the file."""
    if content is not None:
        file.write_bytes(content)
    platform.will("POST", "/revoke", Answer(status=502))
    done = invoke("logout")
    assert (done.exit_code, done.stdout) == (0, "Logged out.\n")
    assert "ends by itself" in done.stderr
    assert not file.exists()
