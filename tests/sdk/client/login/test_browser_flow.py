"""Logging in by a browser, at a certified provider; and what else may come to the listener on loopback."""

from __future__ import annotations

import asyncio
import os
import shutil
from urllib.parse import parse_qs, urlencode, urlsplit

import httpx
import pytest

from pilotlight.client.login.browser_flow import authorization_url, log_in_by_browser, new_code_request, read_code
from pilotlight.client.login.issued_tokens import read_claims
from pilotlight.client.login.issuer_client import IssuerAnswer, IssuerClient, IssuerEndpoints, LoginFailed
from pilotlight_core.model.api.issuer_api import LoginInfo
from tests.fixtures.identity_provider import API, IdentityProvider
from tests.sdk.scripted import ScriptedPlatform, answer

REQUEST = new_code_request(8_000)
ISSUER = "https://login.example.com"
PLAIN_PYTHON = shutil.which("python3", path="/usr/bin:/usr/local/bin") or ""
"""An interpreter that other users may run too."""


class Browser:
    """Opens a page in a thread, as a program's browser does; keeps what became of it."""

    def __init__(self, identity_provider: IdentityProvider, *, agrees: bool = True) -> None:
        self._provider, self._agrees = identity_provider, agrees
        self.visits: list[asyncio.Task[httpx.Response]] = []

    async def __call__(self, start: str, page: str) -> None:
        visit = asyncio.to_thread(self._provider.visit, start, "ada:acme-corp:engineers", agrees=self._agrees)
        self.visits.append(asyncio.ensure_future(visit))


async def test_a_person_agrees_at_a_real_provider(
    identity_provider: IdentityProvider, issuer: IssuerClient, info: LoginInfo
) -> None:
    """The page says so, and the tokens are for the platform, with one to renew them by."""
    endpoints, browser = await issuer.find_endpoints(info.url), Browser(identity_provider)
    found = await log_in_by_browser(issuer, endpoints, info, browser)
    assert (read_claims(found.access_token)["aud"], bool(found.refresh_token)) == (API, True)
    last = await browser.visits[0]
    assert "You are logged in" in last.text
    assert last.url.host == "127.0.0.1"


async def test_a_person_refuses_at_a_real_provider(
    identity_provider: IdentityProvider, issuer: IssuerClient, info: LoginInfo
) -> None:
    endpoints, browser = await issuer.find_endpoints(info.url), Browser(identity_provider, agrees=False)
    with pytest.raises(LoginFailed, match="access_denied"):
        await log_in_by_browser(issuer, endpoints, info, browser)
    assert "access_denied" in (await browser.visits[0]).text


async def test_a_code_without_its_secret_is_worth_nothing(
    identity_provider: IdentityProvider, issuer: IssuerClient, info: LoginInfo
) -> None:
    """Whoever reads it on its way back cannot use it: that is what PKCE is for."""
    endpoints, stolen = await issuer.find_endpoints(info.url), asyncio.get_running_loop().create_future()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        target = (await reader.readuntil(b"\r\n\r\n")).split(b" ")[1].decode()
        stolen.set_result(parse_qs(urlsplit(target).query)["code"][0])
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\nconnection: close\r\n\r\n")
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        request = new_code_request(server.sockets[0].getsockname()[1])
        await asyncio.to_thread(identity_provider.visit, authorization_url(endpoints, info, request), "ada:acme-corp:x")
        form = {
            "grant_type": "authorization_code", "code": await stolen, "redirect_uri": request.redirect_uri,
            "client_id": info.client_id,
        }  # fmt: skip
        for more in ({}, {"code_verifier": "guess" * 10}):
            assert (await issuer.post(endpoints.token_endpoint, {**form, **more})).error == "invalid_grant"


async def test_strange_requests_to_the_listener_change_nothing(
    platform: ScriptedPlatform, scripted: IssuerEndpoints, issuer: IssuerClient, info: LoginInfo
) -> None:
    """Neither a page that guesses, nor another method or path, nor bytes; the right answer comes through.

    The browser is sent on to the page once, and nobody after it.
    """
    platform.will("POST", "/token", answer({"access_token": "t", "expires_in": 60}))
    visited = []

    async def visit(start: str, page: str) -> None:
        asked = {name: values[0] for name, values in parse_qs(urlsplit(page).query).items()}
        port = urlsplit(asked["redirect_uri"]).port
        good = {"code": "c", "state": asked["state"]}
        base = f"http://127.0.0.1:{port}"
        async with httpx.AsyncClient(base_url=base) as client:
            first, second = await client.get(start), await client.get(start)
            assert (first.status_code, first.headers["location"], second.status_code) == (302, page, 404)
            assert asked["state"] not in start
            strange = ("/callback", "/callback?code=x&state=guess", "/", "/callback?code=x")
            visited.extend([(await client.get(path)).status_code for path in strange])
            visited.append((await client.post("/callback", params=good)).status_code)
            visited.append((await client.get("/callback", params={"state": asked["state"]})).status_code)
            _, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(b"\0\r\n\r\n")
            writer.close()
            visited.append((await client.get("/callback", params=good)).status_code)

    tasks = []

    async def open_page(start: str, page: str) -> None:
        tasks.append(asyncio.ensure_future(visit(start, page)))

    found = await log_in_by_browser(issuer, scripted, info, open_page)
    await tasks[0]
    assert found == IssuerAnswer(access_token="t", expires_in=60)
    assert visited == [404] * 6 + [200]
    sent = parse_qs(platform.asked("/token")[0].body.decode())
    assert (sent["code"], sent["resource"]) == (["c"], [API])
    assert len(sent["code_verifier"][0]) >= 43


async def test_another_users_programs_are_not_served(
    platform: ScriptedPlatform, scripted: IssuerEndpoints, issuer: IssuerClient, info: LoginInfo
) -> None:
    """Neither sent to the page, nor believed with an answer, though they have read all of it."""
    if os.geteuid() or not PLAIN_PYTHON:
        pytest.skip("only root can be somebody else, with an interpreter that all may run")
    platform.will("POST", "/token", answer({"access_token": "t", "expires_in": 60}))
    said: list[str] = []

    async def as_nobody(url: str) -> None:
        script = "import sys, urllib.request as u\ntry: u.urlopen(sys.argv[1])\nexcept u.HTTPError as e: print(e.code)"
        process = await asyncio.create_subprocess_exec(
            "setpriv", "--reuid", "65534", "--clear-groups", "/usr/bin/env", "-i", PLAIN_PYTHON, "-c", script, url,
            stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
        )  # fmt: skip
        out, wrong = await process.communicate()
        assert out, wrong.decode()
        said.append(out.decode().strip())

    async def open_page(start: str, page: str) -> None:
        asked = {name: values[0] for name, values in parse_qs(urlsplit(page).query).items()}
        back = f"{asked['redirect_uri']}?{urlencode({'code': 'theirs', 'state': asked['state']})}"
        await as_nobody(start)
        await as_nobody(back)
        async with httpx.AsyncClient() as client:
            await client.get(back.replace("theirs", "mine"))

    await log_in_by_browser(issuer, scripted, info, open_page)
    assert said == ["403", "403"]
    assert parse_qs(platform.asked("/token")[0].body.decode())["code"] == ["mine"]


def test_each_login_has_secrets_of_its_own() -> None:
    """And what the browser sees has only the digest of one."""
    again = new_code_request(8_000)
    assert not {again.verifier, again.state, again.nonce} & {REQUEST.verifier, REQUEST.state, REQUEST.nonce}
    endpoints = IssuerEndpoints(issuer=ISSUER, token_endpoint="x", authorization_endpoint=f"{ISSUER}/auth?a=b")
    info = LoginInfo(name="corp", url=ISSUER, client_id="cli", scope="openid", parameters={"audience": "api"})
    page = authorization_url(endpoints, info, REQUEST)
    asked = {name: values[0] for name, values in parse_qs(urlsplit(page).query).items()}
    assert REQUEST.verifier not in page
    assert (asked["a"], asked["audience"], asked["code_challenge_method"]) == ("b", "api", "S256")
    assert asked["redirect_uri"] == "http://127.0.0.1:8000/callback"
    for none in ("", "http://login.example.com/auth", "javascript:alert(1)"):
        with pytest.raises(LoginFailed):
            authorization_url(
                IssuerEndpoints(issuer=ISSUER, token_endpoint="x", authorization_endpoint=none), info, REQUEST
            )


def test_the_answer_is_to_this_login_and_of_this_issuer() -> None:
    """What has another state is nothing; another issuer's word ends it."""
    good = {"code": "c", "state": REQUEST.state}
    assert read_code(urlencode(good), REQUEST, ISSUER) == "c"
    assert read_code(urlencode(good | {"iss": ISSUER}), REQUEST, ISSUER) == "c"
    for other in ({"code": "c"}, good | {"state": "x"}, good | {"state": ""}, {"state": REQUEST.state}):
        assert read_code(urlencode(other), REQUEST, ISSUER) is None
    assert read_code(urlencode(good) + f"&state={REQUEST.state}", REQUEST, ISSUER) is None
    with pytest.raises(LoginFailed, match="Another issuer"):
        read_code(urlencode(good | {"iss": "https://evil.example.com"}), REQUEST, ISSUER)
    with pytest.raises(LoginFailed, match="server_error"):
        read_code(urlencode({"error": "server_error", "state": REQUEST.state}), REQUEST, ISSUER)
