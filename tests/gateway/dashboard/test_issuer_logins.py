"""Logging in at an issuer: only the answer to this very login of this very browser opens a session."""

from __future__ import annotations

import base64
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from urllib.parse import parse_qs, urlsplit

import msgspec
import pytest

from pilotlight.client.login.issuer_client import IssuerAnswer, IssuerEndpoints, IssuerUnreachable
from pilotlight_core.model.api.issuer_api import LoginInfo
from pilotlight_core.model.api.seeing.session_api import NewSession
from pilotlight_gateway.dashboard.asset_files import AssetFiles
from pilotlight_gateway.dashboard.dashboard_app import DashboardApp
from pilotlight_gateway.dashboard.issuer_logins import AGREE_S, BEGIN, CALLBACK, COOKIE, IssuerLogins, RefusedLogin
from pilotlight_gateway.dashboard.page_parts.gateway_client import ApiAnswer
from tests.gateway.dashboard.site import Site

ISSUER = "https://issuer.example"
INFO = LoginInfo(name="corp", url=ISSUER, client_id="pilotlight", scope="openid offline_access", id_tokens=True)
OPENED = NewSession(
    tenant="acme", key="oidc-corp-0123456789abcdef", scopes=("read",), expires_at=1e12, token="pl_session_" + "x" * 43
)
HERE = "https://pilotlight.example"


def id_token(**claims: str) -> str:
    body = base64.urlsafe_b64encode(msgspec.json.encode(claims)).rstrip(b"=").decode()
    return f"e30.{body}.x"


class FakeIssuer:
    """Answers as it is told; `asked`: what it was asked."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, dict[str, str]]] = []
        self.answer = IssuerAnswer()
        self.is_down = False
        self.found = 0

    async def find_endpoints(self, issuer: str) -> IssuerEndpoints:
        self.found += 1
        if self.is_down:
            raise IssuerUnreachable("it does not answer")
        return IssuerEndpoints(
            issuer=issuer, token_endpoint=f"{issuer}/token", authorization_endpoint=f"{issuer}/authorize"
        )

    async def post(self, url: str, form: dict[str, str]) -> IssuerAnswer:
        self.asked.append((url, form))
        return self.answer


class Bench:
    def __init__(self, site: Site, url: str = HERE) -> None:
        self.site = site
        self.issuer = FakeIssuer()
        site.api.answers["/v1/logins"] = ApiAnswer(status=200, body=msgspec.json.encode({"logins": [INFO]}))
        site.api.answers["/v1/sessions"] = ApiAnswer(status=201, body=msgspec.json.encode(OPENED))
        self.logins = IssuerLogins(site.api, self.opened, url)
        site.app = DashboardApp(site.api, site.drawings, AssetFiles(), wall=site.world.wall, issuers=self.logins)

    @asynccontextmanager
    async def opened(self) -> AsyncIterator[FakeIssuer]:
        yield self.issuer

    async def begun(self) -> tuple[dict[str, str], str]:
        """What the issuer's page was asked, and the cookie."""
        page, (_, cookie) = await self.logins.begin("corp", "dashboard")
        asked = {name: values[0] for name, values in parse_qs(urlsplit(page).query).items()}
        return asked, cookie.decode().partition(";")[0].partition("=")[2]


@pytest.fixture
def bench(site: Site) -> Bench:
    return Bench(site)


async def test_the_issuer_is_asked_for_a_code_by_a_challenge(bench: Bench) -> None:
    """And the browser keeps what proves it, for ten minutes."""
    page, (name, cookie) = await bench.logins.begin("corp", "dashboard")
    asked = parse_qs(urlsplit(page).query)
    assert page.startswith(f"{ISSUER}/authorize?")
    assert asked["redirect_uri"] == [HERE + CALLBACK]
    assert (asked["response_type"], asked["code_challenge_method"], asked["scope"]) == (["code"], ["S256"], ["openid"])
    assert {"state", "nonce", "code_challenge"} <= asked.keys()
    assert name == b"set-cookie"
    text = cookie.decode()
    assert text.startswith(f"{COOKIE}=")
    for part in (f"Max-Age={AGREE_S}", "Secure", "HttpOnly", "SameSite=Lax", "Path=/"):
        assert f"; {part}" in text
    assert asked["state"][0] not in text


async def test_a_browser_logs_in_and_has_a_session_and_nothing_else(bench: Bench) -> None:
    """The page behind it goes on by itself: along the issuer's redirect a strict cookie is not sent."""
    async with bench.site.browser() as browser:
        login = await browser.get("/ui/login")
        assert f'href="{BEGIN}corp"' in login.text
        begun = await browser.get(f"{BEGIN}corp")
        assert begun.status_code == 303
        asked = parse_qs(urlsplit(begun.headers["location"]).query)
        bench.issuer.answer = IssuerAnswer(id_token=id_token(nonce=asked["nonce"][0]))
        cookie = begun.headers["set-cookie"].partition(";")[0]
        browser.cookies.clear()
        back = await browser.get(
            f"{CALLBACK}?code=abc&state={asked['state'][0]}", headers={"cookie": cookie, "sec-fetch-site": "cross-site"}
        )
    assert back.status_code == 200
    assert 'http-equiv="refresh"' in back.text
    cookies = back.headers.get_list("set-cookie")
    assert cookies[0].startswith(f"__Host-pilotlight={OPENED.token};")
    assert "SameSite=Strict" in cookies[0]
    assert cookies[1].startswith(f"{COOKIE}=; Max-Age=0")
    ((url, form),) = bench.issuer.asked
    assert (url, form["grant_type"], form["code"], form["redirect_uri"]) == (
        f"{ISSUER}/token", "authorization_code", "abc", HERE + CALLBACK,
    )  # fmt: skip
    assert ("POST", "/v1/sessions") in bench.site.api.asked
    assert "id_token" not in back.text


@pytest.mark.parametrize(
    "query",
    ["code=abc", "code=abc&state=other", "state={state}", "error=access_denied&state={state}",
     "code=abc&state={state}&iss=https://evil.example"],
)  # fmt: skip
async def test_what_is_no_answer_to_this_login_opens_nothing(bench: Bench, query: str) -> None:
    asked, cookie = await bench.begun()
    bench.issuer.answer = IssuerAnswer(id_token=id_token(nonce=asked["nonce"]))
    with pytest.raises(RefusedLogin):
        await bench.logins.finish(query.format(state=asked["state"]), cookie, "dashboard")
    assert bench.issuer.asked == []


@pytest.mark.parametrize("cookie", ["", "x", "////", "A" * 5_000, base64.urlsafe_b64encode(b"\x90").decode()])
async def test_another_browsers_answer_opens_nothing(bench: Bench, cookie: str) -> None:
    """Whoever is sent somebody else's answer is not logged in as them."""
    asked, _ = await bench.begun()
    with pytest.raises(RefusedLogin):
        await bench.logins.finish(f"code=abc&state={asked['state']}", cookie, "dashboard")
    assert bench.issuer.asked == []


@pytest.mark.parametrize(
    "answer",
    [IssuerAnswer(error="invalid_grant"), IssuerAnswer(), IssuerAnswer(id_token=id_token(nonce="another")),
     IssuerAnswer(id_token=id_token()), IssuerAnswer(access_token="only")],
)  # fmt: skip
async def test_a_token_of_another_login_or_none_is_refused(bench: Bench, answer: IssuerAnswer) -> None:
    asked, cookie = await bench.begun()
    bench.issuer.answer = answer
    with pytest.raises(RefusedLogin):
        await bench.logins.finish(f"code=abc&state={asked['state']}", cookie, "dashboard")


async def test_an_access_token_is_sent_where_that_is_what_the_platform_takes(bench: Bench, site: Site) -> None:
    info = msgspec.structs.replace(INFO, id_tokens=False)
    site.api.answers["/v1/logins"] = ApiAnswer(status=200, body=msgspec.json.encode({"logins": [info]}))
    asked, cookie = await bench.begun()
    bench.issuer.answer = IssuerAnswer(access_token="at")
    assert await bench.logins.finish(f"code=abc&state={asked['state']}", cookie, "dashboard") == "at"


async def test_refusals_are_pages_and_take_the_cookie_away(bench: Bench) -> None:
    async with bench.site.browser() as browser:
        for path in (f"{BEGIN}none", f"{BEGIN}a/b", f"{CALLBACK}?code=a&state=b", f"{CALLBACK}?code=a&code=b"):
            answer = await browser.get(path)
            assert answer.status_code == 401, path
            assert 'role="alert"' in answer.text
            assert "Max-Age=0" in answer.headers["set-cookie"]
        bench.site.api.answers["/v1/sessions"] = ApiAnswer(status=403, body=b'{"detail":"no access"}')
        asked, cookie = await bench.begun()
        bench.issuer.answer = IssuerAnswer(id_token=id_token(nonce=asked["nonce"]))
        browser.cookies.clear()
        answer = await browser.get(
            f"{CALLBACK}?code=abc&state={asked['state']}", headers={"cookie": f"{COOKIE}={cookie}"}
        )
    assert answer.status_code == 401
    assert "no access" in answer.text


async def test_an_issuer_that_is_down_is_said_and_one_that_is_up_is_asked_once(bench: Bench) -> None:
    bench.issuer.is_down = True
    with pytest.raises(RefusedLogin, match="does not answer"):
        await bench.begun()
    bench.issuer.is_down = False
    for _ in range(3):
        await bench.begun()
    assert bench.issuer.found == 2


async def test_a_dashboard_without_an_address_sends_nobody_anywhere_but_here(site: Site) -> None:
    """The address that a request names is not believed, but on this machine."""
    bench = Bench(site, url="")
    with pytest.raises(RefusedLogin, match="--dashboard-url"):
        await bench.logins.begin("corp", "evil.example")
    page, _ = await bench.logins.begin("corp", "127.0.0.1:8480")
    assert parse_qs(urlsplit(page).query)["redirect_uri"] == [f"http://127.0.0.1:8480{CALLBACK}"]


async def test_without_gateways_there_is_still_the_field_for_a_key(bench: Bench) -> None:
    bench.site.api.answers.clear()
    bench.site.api.down = True
    async with bench.site.browser() as browser:
        login = await browser.get("/ui/login")
    assert login.status_code == 200
    assert BEGIN not in login.text
