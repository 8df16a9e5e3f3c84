"""Logging in at an OpenID issuer: an authorization code with PKCE (RFC 7636), whose answer comes to this dashboard.

What only this login knows (state, nonce, verifier) is in a cookie of its own for ten minutes, which no script has: the
dashboard keeps nothing. The answer is that of this very login, of this very issuer; its token opens a session, and is
thrown away.
"""

from __future__ import annotations

import asyncio
import base64
import secrets
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, Protocol
from urllib.parse import urlsplit

import msgspec
from cachetools import TTLCache

from pilotlight.client.login.browser_flow import CodeRequest, authorization_url, read_code
from pilotlight.client.login.issued_tokens import read_claims
from pilotlight.client.login.issuer_client import IssuerAnswer, IssuerEndpoints, LoginFailed, refusal
from pilotlight.definitions.errors import PilotlightError
from pilotlight_core.model.api.issuer_api import LoginInfo
from pilotlight_core.model.records.issuers import ISSUERS_AT_MOST, LOOPBACK
from pilotlight_gateway.dashboard.page_parts.gateway_client import ApiProblem, GatewayApi

CALLBACK = "/ui/login/callback"
BEGIN = "/ui/login/with/"
COOKIE = "__Host-pilotlight-login"
AGREE_S = 600
KEPT_S = 300.0
"""That an issuer's document is not asked for again."""
ASKS_AT_A_TIME = 8
LONGEST = 4_096
"""Characters of the cookie, and of what an issuer sends back."""


class IssuerAsks(Protocol):
    """Asks one issuer. The real one is the SDK's `IssuerClient`."""

    async def find_endpoints(self, issuer: str) -> IssuerEndpoints: ...
    async def post(self, url: str, form: dict[str, str]) -> IssuerAnswer: ...


class BegunLogin(msgspec.Struct, frozen=True):
    """What the cookie has."""

    issuer: str
    """Its name on record."""
    verifier: str
    state: str
    nonce: str


class RefusedLogin(Exception):
    """A login that did not come about, in a sentence."""


class IssuerLogins:
    """`url`: the address at which browsers reach this dashboard; "": on this machine, the one that they asked."""

    def __init__(
        self, client: GatewayApi, issuers: Callable[[], AbstractAsyncContextManager[IssuerAsks]], url: str = ""
    ) -> None:
        self._client = client
        self._issuers = issuers
        self._url = url.rstrip("/")
        self._known: TTLCache[str, IssuerEndpoints] = TTLCache(ISSUERS_AT_MOST, KEPT_S)
        self._asks = asyncio.Semaphore(ASKS_AT_A_TIME)
        """Nobody has shown who they are: what they make this process ask is bounded."""

    async def names(self) -> list[str]:
        """The issuers at which people log in; none if nobody says."""
        try:
            return sorted(info.name for info in await self._infos())
        except ApiProblem:
            return []

    async def begin(self, name: str, host: str) -> tuple[str, tuple[bytes, bytes]]:
        """Where the browser goes, and the cookie that it keeps meanwhile.

        Raises:
            RefusedLogin: there is no such issuer, it does not answer, or this dashboard has no address of its own.
        """
        info = await self._info(name)
        verifier, state, nonce = (secrets.token_urlsafe(32) for _ in range(3))
        asked = CodeRequest(verifier=verifier, state=state, nonce=nonce, redirect_uri=self._callback(host))
        # The session lasts as long as the token: nothing is renewed, so nothing more is asked for.
        scope = " ".join(word for word in info.scope.split() if word != "offline_access") or "openid"
        try:
            async with self._asked() as issuer:
                endpoints = await self._endpoints(issuer, info)
            page = authorization_url(endpoints, msgspec.structs.replace(info, scope=scope), asked)
        except PilotlightError as error:
            raise RefusedLogin(error.detail) from None
        kept = msgspec.msgpack.encode(BegunLogin(name, verifier, state, nonce))
        return page, _cookie(base64.urlsafe_b64encode(kept).decode(), AGREE_S)

    async def finish(self, query: str, cookie: str, host: str) -> str:
        """The token that the issuer has given for what it sent the browser back with.

        Raises:
            RefusedLogin: it is no answer to a login of this browser, or the issuer or its user has refused.
        """
        begun = _begun(cookie)
        if begun is None or len(query) > LONGEST:
            raise RefusedLogin("This is no answer to a login of this browser, or it came too late: log in again.")
        info = await self._info(begun.issuer)
        asked = CodeRequest(
            verifier=begun.verifier, state=begun.state, nonce=begun.nonce, redirect_uri=self._callback(host)
        )
        try:
            code = read_code(query, asked, info.url)
            if code is None:
                raise RefusedLogin("This is no answer to a login of this browser: log in again.")
            async with self._asked() as issuer:
                endpoints = await self._endpoints(issuer, info)
                answer = await issuer.post(endpoints.token_endpoint, _form(info, asked, code))
            return _token_of(answer, info, begun)
        except PilotlightError as error:
            raise RefusedLogin(error.detail) from None

    @asynccontextmanager
    async def _asked(self) -> AsyncIterator[IssuerAsks]:
        if self._asks.locked():
            raise RefusedLogin("Many log in at this moment: try again.")
        async with self._asks, self._issuers() as issuer:
            yield issuer

    async def _endpoints(self, issuer: IssuerAsks, info: LoginInfo) -> IssuerEndpoints:
        found = self._known.get(info.url)
        if found is None:
            found = self._known[info.url] = await issuer.find_endpoints(info.url)
        return found

    async def _infos(self) -> list[LoginInfo]:
        value = (await self._client.ask("GET", "/v1/logins")).value()
        return msgspec.convert(value["logins"], list[LoginInfo])

    async def _info(self, name: str) -> LoginInfo:
        try:
            found = next((one for one in await self._infos() if one.name == name), None)
        except (ApiProblem, KeyError, TypeError, msgspec.ValidationError):
            raise RefusedLogin("No gateway says at which issuers people log in: try again.") from None
        if found is None:
            raise RefusedLogin("People do not log in at this issuer.")
        return found

    def _callback(self, host: str) -> str:
        if self._url:
            return self._url + CALLBACK
        if urlsplit(f"//{host}").hostname not in LOOPBACK:
            raise RefusedLogin(
                "This dashboard does not know its own address, so no issuer can send you back: its operator sets "
                "--dashboard-url."
            )
        return f"http://{host}{CALLBACK}"


def begun_cookie(cookies: str) -> str:
    """What the login's cookie holds; "": there is none."""
    for each in cookies.split(";"):
        name, _, value = each.strip().partition("=")
        if name == COOKIE:
            return value
    return ""


def forget_begun() -> tuple[bytes, bytes]:
    """The header that takes the login's cookie away."""
    return _cookie("", 0)


def _cookie(value: str, seconds: int) -> tuple[bytes, bytes]:
    # Lax: the issuer's page sends the browser back here.
    return b"set-cookie", f"{COOKIE}={value}; Max-Age={seconds}; Path=/; Secure; HttpOnly; SameSite=Lax".encode()


def _begun(cookie: str) -> BegunLogin | None:
    if not cookie or len(cookie) > LONGEST:
        return None
    try:
        return msgspec.msgpack.decode(base64.urlsafe_b64decode(cookie), type=BegunLogin)
    except (ValueError, msgspec.DecodeError):
        return None


def _form(info: LoginInfo, asked: CodeRequest, code: str) -> dict[str, str]:
    return {
        **info.parameters, "grant_type": "authorization_code", "code": code, "redirect_uri": asked.redirect_uri,
        "client_id": info.client_id, "code_verifier": asked.verifier,
    }  # fmt: skip


def _token_of(answer: IssuerAnswer, info: LoginInfo, begun: BegunLogin) -> str:
    if answer.error:
        raise refusal(answer)
    claims: dict[str, Any] = read_claims(answer.id_token) if answer.id_token else {}
    if claims.get("nonce", begun.nonce) != begun.nonce or (info.id_tokens and claims.get("nonce") != begun.nonce):
        raise LoginFailed("The issuer has answered with a token of another login.")
    token = answer.id_token if info.id_tokens else answer.access_token
    if not token:
        raise LoginFailed("The issuer has given no token that the platform takes.")
    return token
