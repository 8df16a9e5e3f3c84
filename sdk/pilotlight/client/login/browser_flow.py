"""Logging in by this machine's browser: an authorization code with PKCE, to a listener on loopback (RFC 7636, 8252).

What comes back is the answer to this very login, of this very issuer: the state, the nonce and `iss` (RFC 9207) say so.
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
from pilotlight_core.model.api.issuer_api import LoginInfo
from pilotlight_core.model.records.issuers import url_fault

AGREE_S = 300.0
HEAD_BYTES, HEAD_S = 16_384, 5.0
PATH = "/callback"
PAGE = (
    "HTTP/1.1 {status}\r\ncontent-type: text/plain; charset=utf-8\r\nconnection: close\r\ncache-control: no-store\r\n"
    "referrer-policy: no-referrer\r\ncontent-length: {length}\r\n\r\n{text}"
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
    issuer: IssuerClient, endpoints: IssuerEndpoints, info: LoginInfo, open_page: Callable[[str], Awaitable[None]]
) -> IssuerAnswer:
    """Return the tokens, once the person has agreed on the page that `open_page` is given, which may take its time.

    Raises:
        LoginFailed: they have not, or not in time.
    """
    arrived: asyncio.Future[str] = asyncio.get_running_loop().create_future()
    async with _listener(arrived, info) as request:
        opening = asyncio.ensure_future(open_page(authorization_url(endpoints, info, request)))
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


@asynccontextmanager
async def _listener(arrived: asyncio.Future[str], info: LoginInfo) -> AsyncIterator[CodeRequest]:
    """Listen on a port of loopback for the browser; the yielded request is for it."""
    request: CodeRequest | None = None

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError, TimeoutError, ValueError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            async with asyncio.timeout(HEAD_S):
                head = await reader.readuntil(b"\r\n\r\n")
                writer.write(_reply(head, arrived, request, info.url))
                await writer.drain()
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0, limit=HEAD_BYTES)
    async with server:
        request = new_code_request(server.sockets[0].getsockname()[1])
        yield request
        server.close()


def _reply(head: bytes, arrived: asyncio.Future[str], request: CodeRequest | None, issuer: str) -> bytes:
    method, target, *_ = head.decode("latin-1").split(" ", 2)
    parts = urlsplit(target)
    status, text = "404 Not Found", "There is nothing here."
    if method == "GET" and parts.path == PATH and request is not None and not arrived.done():
        try:
            if code := read_code(parts.query, request, issuer):
                arrived.set_result(code)
                status, text = "200 OK", "You are logged in. Close this page, and go on at your terminal."
        except LoginFailed as error:
            arrived.set_exception(error)
            status, text = "200 OK", f"{error.detail} Close this page, and go on at your terminal."
    body = text.encode()
    return PAGE.format(status=status, length=len(body), text="").encode() + body
