"""Logging in by this machine's browser: an authorization code with PKCE, to a listener on loopback (RFC 7636, 8252).

What comes back is the answer to this very login, of this very issuer: the state, the nonce and `iss` (RFC 9207) say so.
The browser is handed an address of that listener, which sends it on: command lines are read by all users of a machine,
and whoever has the page's own address could answer the login with an account of theirs. The listener serves programs of
this user alone, and sends one on once.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import secrets
from base64 import urlsafe_b64encode
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from urllib.parse import parse_qs, urlencode, urlsplit

import msgspec

from pilotlight.client.login.issued_tokens import read_claims
from pilotlight.client.login.issuer_client import IssuerAnswer, IssuerClient, IssuerEndpoints, LoginFailed, refusal
from pilotlight.client.login.local_peers import is_own
from pilotlight_core.model.api.issuer_api import LoginInfo
from pilotlight_core.model.records.issuers import url_fault

AGREE_S = 300.0
HEAD_BYTES, HEAD_S = 16_384, 5.0
START, PATH = "/start", "/callback"
PAGE = (
    "HTTP/1.1 {status}\r\ncontent-type: text/plain; charset=utf-8\r\nconnection: close\r\ncache-control: no-store\r\n"
    "referrer-policy: no-referrer\r\n{more}content-length: {length}\r\n\r\n"
)


class CodeRequest(msgspec.Struct, frozen=True, kw_only=True):
    """What only this login knows."""

    verifier: str
    state: str
    nonce: str
    redirect_uri: str

    @property
    def challenge(self) -> str:
        return urlsafe_b64encode(hashlib.sha256(self.verifier.encode()).digest()).rstrip(b"=").decode()


def new_code_request(port: int) -> CodeRequest:
    """Return the secrets of one login, whose answer comes to that port."""
    verifier, state, nonce = (secrets.token_urlsafe(32) for _ in range(3))
    return CodeRequest(verifier=verifier, state=state, nonce=nonce, redirect_uri=f"http://127.0.0.1:{port}{PATH}")


def authorization_url(endpoints: IssuerEndpoints, info: LoginInfo, request: CodeRequest) -> str:
    """Return what the browser opens.

    Raises:
        LoginFailed: the issuer has no page for it.
    """
    page = endpoints.authorization_endpoint
    if not page or url_fault(page):
        raise LoginFailed(f"{info.url} knows no login by a browser.")
    asked = {
        **info.parameters, "response_type": "code", "client_id": info.client_id, "redirect_uri": request.redirect_uri,
        "scope": info.scope, "state": request.state, "nonce": request.nonce, "code_challenge": request.challenge,
        "code_challenge_method": "S256",
    }  # fmt: skip
    if "offline_access" in info.scope.split():
        asked.setdefault("prompt", "consent")  # or there is no refresh token (OpenID Connect, section 11)
    return f"{page}{'&' if urlsplit(page).query else '?'}{urlencode(asked)}"


def read_code(query: str, request: CodeRequest, issuer: str) -> str | None:
    """Return the code in what the browser was sent back with; None: it is not the answer to this login.

    Raises:
        LoginFailed: the issuer, or its user, has refused, or another issuer has answered.
    """
    found = {name: values[0] for name, values in parse_qs(query).items() if len(values) == 1}
    if not hmac.compare_digest(found.get("state", "").encode(), request.state.encode()):
        return None
    if found.get("iss", issuer) != issuer:
        raise LoginFailed(f"Another issuer has answered: {found['iss']!r:.200}.")
    if "error" in found:
        raise refusal(IssuerAnswer(error=found["error"], error_description=found.get("error_description", "")))
    return found.get("code") or None


async def log_in_by_browser(
    issuer: IssuerClient, endpoints: IssuerEndpoints, info: LoginInfo, open_page: Callable[[str, str], Awaitable[None]]
) -> IssuerAnswer:
    """Return the tokens, once the person has agreed on the page that `open_page` opens, which may take its time.

    It is given the address for the browser, and that of the page itself, which is for the person's eyes alone.

    Raises:
        LoginFailed: they have not, or not in time.
    """
    arrived: asyncio.Future[str] = asyncio.get_running_loop().create_future()
    async with _listener(arrived, endpoints, info) as listener:
        request = listener.request
        opening = asyncio.ensure_future(open_page(listener.start, listener.page))
        opening.add_done_callback(lambda opened: _report_failure(opened, arrived))
        try:
            async with asyncio.timeout(AGREE_S):
                code = await arrived
        except TimeoutError:
            raise LoginFailed(f"Nobody has agreed within {AGREE_S:g} s.") from None
    form = {
        **info.parameters, "grant_type": "authorization_code", "code": code, "redirect_uri": request.redirect_uri,
        "client_id": info.client_id, "code_verifier": request.verifier,
    }  # fmt: skip
    answer = await issuer.post(endpoints.token_endpoint, form)
    if answer.id_token and read_claims(answer.id_token).get("nonce") != request.nonce:
        raise LoginFailed("The issuer has answered with a token of another login.")
    return answer


def _report_failure(opened: asyncio.Future[None], arrived: asyncio.Future[str]) -> None:
    if not opened.cancelled() and (error := opened.exception()) is not None and not arrived.done():
        arrived.set_exception(error)


class _Listener:
    """What it answers the browser with, once it has a port."""

    def __init__(self, arrived: asyncio.Future[str], request: CodeRequest, page: str, issuer: str, port: int) -> None:
        self._arrived = arrived
        self.request = request
        self.page = page
        """Where the person agrees."""
        self._issuer = issuer
        self._port = port
        self.start = f"http://127.0.0.1:{port}{START}"
        self._was_opened = False

    def reply(self, head: bytes, port: int) -> bytes:
        """The answer to a request from that port."""
        if not is_own(port, self._port):
            return _page("403 Forbidden", "This is another user's login.")
        method, target, *_ = head.decode("latin-1").split(" ", 2)
        parts = urlsplit(target)
        if method != "GET" or self._arrived.done():
            return _page("404 Not Found", "There is nothing here.")
        if parts.path == START and not self._was_opened:
            self._was_opened = True
            return _page("302 Found", "Go on at the issuer.", f"location: {self.page}\r\n")
        if parts.path == PATH:
            return self._take(parts.query)
        return _page("404 Not Found", "There is nothing here.")

    def _take(self, query: str) -> bytes:
        try:
            code = read_code(query, self.request, self._issuer)
        except LoginFailed as error:
            self._arrived.set_exception(error)
            return _page("200 OK", f"{error.detail} Close this page, and go on at your terminal.")
        if not code:
            return _page("404 Not Found", "There is nothing here.")
        self._arrived.set_result(code)
        return _page("200 OK", "You are logged in. Close this page, and go on at your terminal.")


@asynccontextmanager
async def _listener(
    arrived: asyncio.Future[str], endpoints: IssuerEndpoints, info: LoginInfo
) -> AsyncIterator[_Listener]:
    """Listen on a port of loopback for the browser."""
    listener: _Listener | None = None

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError, TimeoutError, ValueError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            async with asyncio.timeout(HEAD_S):
                head = await reader.readuntil(b"\r\n\r\n")
                if listener is not None:
                    writer.write(listener.reply(head, writer.get_extra_info("peername")[1]))
                await writer.drain()
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0, limit=HEAD_BYTES)
    async with server:
        port = server.sockets[0].getsockname()[1]
        request = new_code_request(port)
        listener = _Listener(arrived, request, authorization_url(endpoints, info, request), info.url, port)
        yield listener
        server.close()


def _page(status: str, text: str, more: str = "") -> bytes:
    body = text.encode()
    return PAGE.format(status=status, more=more, length=len(body)).encode() + body
