"""A login's token is renewed before it ends, once, and never sent when it is over."""

from __future__ import annotations

import asyncio
import fcntl
import threading
import time
from dataclasses import replace as replace_answer
from pathlib import Path
from urllib.parse import parse_qs

import pytest
from msgspec.structs import replace

from pilotlight.client.login.device_flow import begin_device_flow, poll_device_flow
from pilotlight.client.login.issued_tokens import login_of
from pilotlight.client.login.issuer_client import IssuerClient, IssuerUnreachable, LoginFailed
from pilotlight.client.login.login_keeper import EARLY_S, LoginKeeper
from pilotlight.client.login.saved_login import SavedLogin, load_login, remove_login, save_login
from pilotlight_core.model.api.issuer_api import LoginInfo
from tests.fixtures.identity_provider import IdentityProvider
from tests.sdk.client.login.test_saved_login import LOGIN
from tests.sdk.scripted import Answer, ScriptedPlatform, answer
from tests.waiting import until


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "login.json"


def kept(file: Path, platform: ScriptedPlatform, **changed: object) -> SavedLogin:
    login = replace(LOGIN, **{"token_endpoint": f"{platform.url}/token", "expires_at": 1_000.0} | changed)
    save_login(file, login)
    return login


async def test_a_good_token_is_sent_as_it_is(file: Path, platform: ScriptedPlatform) -> None:
    """Nobody is asked anything; the file is read once."""
    kept(file, platform)
    keeper = LoginKeeper(file, LOGIN.url, lambda: 1_000.0 - EARLY_S - 1)
    assert await keeper.bearer() == "secret-token"
    remove_login(file)
    assert await keeper.bearer() == "secret-token"
    assert platform.requests == []


async def test_it_is_renewed_shortly_before_its_end(file: Path, platform: ScriptedPlatform) -> None:
    """Once, however many ask; the file has what comes of it, with the refresh token that follows."""
    kept(file, platform)
    fresh = {"access_token": "fresh", "refresh_token": "r2", "expires_in": 300}
    platform.will("POST", "/token", answer(fresh))
    keeper = LoginKeeper(file, LOGIN.url, lambda: 1_000.0 - EARLY_S)
    assert set(await asyncio.gather(*(keeper.bearer() for _ in range(20)))) == {"fresh"}
    assert len(platform.requests) == 1
    sent = parse_qs(platform.requests[0].body.decode())
    assert (sent["grant_type"], sent["refresh_token"], sent["client_id"]) == (["refresh_token"], ["r1"], ["cli"])
    saved = load_login(file)
    assert saved is not None
    assert (saved.token, saved.refresh_token, saved.expires_at) == ("fresh", "r2", 1_270.0)


async def test_what_another_process_has_renewed_is_taken(file: Path, platform: ScriptedPlatform) -> None:
    """Also while this one waits for the lock."""
    login = kept(file, platform)
    keeper = LoginKeeper(file, LOGIN.url, lambda: 1_000.0)
    with file.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        waiting = asyncio.ensure_future(keeper.bearer())
        await asyncio.sleep(0)
        save_login(file, replace(login, token="of another", expires_at=2_000.0))
    assert await waiting == "of another"
    assert platform.requests == []


@pytest.mark.parametrize("anew", [True, False])
async def test_who_logs_out_or_in_has_the_last_word(file: Path, platform: ScriptedPlatform, anew: bool) -> None:
    """A renewal that is under way brings back nobody, and writes over no other login."""
    login = kept(file, platform)
    other = replace(login, id="l2", token="of another", expires_at=2_000.0)

    go_on = threading.Event()
    fresh = answer({"access_token": "fresh", "refresh_token": "r2", "expires_in": 300})
    platform.will("POST", "/token", replace_answer(fresh, wait_for=go_on))
    asking = asyncio.ensure_future(LoginKeeper(file, LOGIN.url, lambda: 1_000.0).bearer())
    await until(lambda: bool(platform.requests))
    if anew:
        save_login(file, other)
    else:
        remove_login(file)
    go_on.set()
    if anew:
        assert await asking == "of another"
    else:
        with pytest.raises(LoginFailed, match="logged in"):
            await asking
    assert load_login(file) == (other if anew else None)


async def test_another_platforms_login_is_not_sent(file: Path, platform: ScriptedPlatform) -> None:
    """Whoever logs in elsewhere meanwhile is nobody here any more; neither token is renewed for it."""
    kept(file, platform)
    keeper = LoginKeeper(file, LOGIN.url, lambda: 1_000.0)
    for ends in (1_000.0, 2_000.0):
        kept(file, platform, url="https://other.example.com", token="of the other", expires_at=ends)
        with pytest.raises(LoginFailed, match=r"logged in at https://other\.example\.com now"):
            await keeper.bearer()
    assert platform.requests == []


async def test_a_silent_issuer_ends_no_good_token(file: Path, platform: ScriptedPlatform) -> None:
    """Until it is over."""
    kept(file, platform)
    platform.will("POST", "/token", Answer(status=502))
    assert await LoginKeeper(file, LOGIN.url, lambda: 999.0).bearer() == "secret-token"
    with pytest.raises(IssuerUnreachable, match="502"):
        await LoginKeeper(file, LOGIN.url, lambda: 1_000.0).bearer()


async def test_a_login_ends(file: Path, platform: ScriptedPlatform) -> None:
    """At its issuer, without a refresh token, or here."""
    kept(file, platform)
    platform.will("POST", "/token", answer({"error": "invalid_grant"}, 400))
    with pytest.raises(LoginFailed, match="does not renew it"):
        await LoginKeeper(file, LOGIN.url, lambda: 1_000.0).bearer()
    kept(file, platform, refresh_token="")
    assert await LoginKeeper(file, LOGIN.url, lambda: 999.0).bearer() == "secret-token"
    with pytest.raises(LoginFailed, match="expired"):
        await LoginKeeper(file, LOGIN.url, lambda: 1_000.0).bearer()
    remove_login(file)
    with pytest.raises(LoginFailed, match="logged in"):
        await LoginKeeper(file, LOGIN.url, lambda: 1_000.0).bearer()


@pytest.mark.variant
async def test_a_real_provider_renews(
    file: Path, identity_provider: IdentityProvider, issuer: IssuerClient, info: LoginInfo
) -> None:
    """Again and again, each time by the refresh token that it gave last."""
    endpoints = await issuer.find_endpoints(info.url)
    code = await begin_device_flow(issuer, endpoints, info)

    async def agree(_: float) -> None:
        await asyncio.to_thread(identity_provider.visit, code.whole_url, "ada:acme-corp:engineers")

    answer_ = await poll_device_flow(issuer, endpoints, info, code, agree)
    login = login_of(answer_, info, endpoints, url=LOGIN.url, ca_file="", at=time.time())
    tokens = {login.token}
    for _ in range(3):
        save_login(file, replace(load_login(file) or login, expires_at=0.0))
        tokens.add(await LoginKeeper(file, LOGIN.url).bearer())
    assert len(tokens) == 4
