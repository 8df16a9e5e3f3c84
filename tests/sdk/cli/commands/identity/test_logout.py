"""`pilotlight logout`: the issuer is told, and nothing is left here."""

from __future__ import annotations

import asyncio
import threading
from dataclasses import replace as replace_answer
from pathlib import Path

import pytest
from msgspec.structs import replace

from pilotlight.client.login.login_keeper import LoginKeeper
from pilotlight.client.login.saved_login import load_login, save_login
from tests.sdk.cli.shell import invoke, run
from tests.sdk.client.login.test_saved_login import LOGIN
from tests.sdk.scripted import Answer, ScriptedPlatform, answer
from tests.waiting import until


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


async def test_it_waits_for_a_renewal(platform: ScriptedPlatform, file: Path) -> None:
    """Or the renewal would bring the login back; what the issuer is told to end is what it has given last."""
    go_on = threading.Event()
    login = replace(LOGIN, token_endpoint=f"{platform.url}/token", revocation_endpoint=f"{platform.url}/revoke")
    save_login(file, login)
    fresh = answer({"access_token": "fresh", "refresh_token": "r2", "expires_in": 300})
    platform.will("POST", "/token", replace_answer(fresh, wait_for=go_on))
    platform.will("POST", "/revoke", Answer(status=200))
    asking = asyncio.ensure_future(LoginKeeper(file, LOGIN.url).bearer())
    await until(lambda: bool(platform.requests))
    logging_out = asyncio.ensure_future(asyncio.to_thread(run, "logout"))
    go_on.set()
    assert (await asking, await logging_out) == ("fresh", "Logged out.\n")
    assert b"token=r2" in platform.requests[-1].body
    assert load_login(file) is None
