"""Requests to an OpenID issuer: its document, and its endpoints (RFC 6749, RFC 8414)."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from types import TracebackType
from typing import TypeVar
from urllib.parse import urlsplit

import httpx
import msgspec

from pilotlight.definitions.errors import Unauthenticated, Unreachable
from pilotlight_core.authorities import add_authorities, certificate_problem
from pilotlight_core.model.errors import Code
from pilotlight_core.model.records.issuers import named_url_fault, url_fault

ISSUER_CA_FILE = "PILOTLIGHT_ISSUER_CA_FILE"
WELL_KNOWN = "/.well-known/openid-configuration"
ANSWER_S = 15.0
MOST_BYTES = 256 * 1024
T = TypeVar("T")


class LoginFailed(Unauthenticated):
    """Nobody is logged in: the issuer, or its user, has refused."""

    @property
    def meaning(self) -> Code:
        return Code(401, "The login has failed", "Log in again with 'pilotlight login'.")


class IssuerUnreachable(Unreachable):
    """The issuer does not answer as it should."""

    @property
    def meaning(self) -> Code:
        advice = "Try again later; an API key (PILOTLIGHT_API_KEY) needs no issuer."
        return Code(503, "The issuer does not answer", advice, retry=True)


class IssuerEndpoints(msgspec.Struct, frozen=True, kw_only=True):
    """What an issuer's document says of where it is asked what."""

    issuer: str
    token_endpoint: str
    authorization_endpoint: str = ""
    device_authorization_endpoint: str = ""
    revocation_endpoint: str = ""


class IssuerAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """An answer of an endpoint; whatever is refused has an `error`."""

    error: str = ""
    error_description: str = ""
    access_token: str = ""
    id_token: str = ""
    refresh_token: str = ""
    token_type: str = ""
    expires_in: float | None = None
    interval: float | None = None
    device_code: str = ""
    user_code: str = ""
    verification_uri: str = ""
    verification_uri_complete: str = ""


class IssuerClient:
    """Asks one issuer, over https or on loopback; it follows nowhere. An async context manager."""

    def __init__(self, ca_file: str = "") -> None:
        """`ca_file` (PEM) has authorities that are believed beside the system's."""
        self._ca_file = ca_file
        context = httpx.create_ssl_context()
        if ca_file:
            add_authorities(context, ca_file, ISSUER_CA_FILE)
        self._http = httpx.AsyncClient(verify=context, follow_redirects=False, timeout=ANSWER_S)

    async def __aenter__(self) -> IssuerClient:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._http.aclose()

    async def find_endpoints(self, issuer: str) -> IssuerEndpoints:
        """Return what the issuer's document says.

        Raises:
            IssuerUnreachable: there is none, or it is another issuer's.
        """
        url = issuer.rstrip("/") + WELL_KNOWN
        status, found = await self._ask("GET", url, None, IssuerEndpoints)
        if status != httpx.codes.OK or found is None:
            raise IssuerUnreachable(f"{url} has answered {status}, with no document of an issuer.")
        if found.issuer != issuer:
            raise IssuerUnreachable(f"{url} is the document of {found.issuer!r:.200}, not of {issuer!r}.")
        if fault := endpoints_fault(found):
            raise IssuerUnreachable(f"{url} says of its {fault}.")
        return found

    async def post(self, url: str, form: Mapping[str, str]) -> IssuerAnswer:
        """Send a form to an endpoint; return its answer, which may be a refusal.

        Raises:
            IssuerUnreachable: it is none.
        """
        status, found = await self._ask("POST", url, form, IssuerAnswer)
        if found is None or (status != httpx.codes.OK and not found.error):
            raise IssuerUnreachable(f"{url} has answered {status}, with nothing that can be read.")
        return found

    async def send(self, url: str, form: Mapping[str, str]) -> None:
        """Send a form to an endpoint that answers nothing of use.

        Raises:
            IssuerUnreachable: it has not taken it.
        """
        status, _ = await self._ask("POST", url, form, IssuerAnswer)
        if status != httpx.codes.OK:
            raise IssuerUnreachable(f"{url} has answered {status}.")

    async def _ask(self, method: str, url: str, form: Mapping[str, str] | None, kind: type[T]) -> tuple[int, T | None]:
        if fault := url_fault(url):
            raise IssuerUnreachable(f"{url!r:.200} is not asked: {fault}.")
        try:
            async with asyncio.timeout(ANSWER_S):
                return await self._send(method, url, form, kind)
        except (httpx.HTTPError, httpx.InvalidURL, TimeoutError) as error:
            raise IssuerUnreachable(f"{urlsplit(url).netloc}: {self._reason(error)}.") from error

    async def _send(self, method: str, url: str, form: Mapping[str, str] | None, kind: type[T]) -> tuple[int, T | None]:
        headers, body = {"Accept": "application/json", "Accept-Encoding": "identity"}, bytearray()
        async with self._http.stream(method, url, data=form, headers=headers) as response:
            async for piece in response.aiter_raw():
                body += piece
                if len(body) > MOST_BYTES:
                    raise IssuerUnreachable(f"{url} has answered with more than {MOST_BYTES} bytes.")
        try:
            return response.status_code, msgspec.json.decode(body, type=kind)
        except (msgspec.DecodeError, RecursionError):
            return response.status_code, None

    def _reason(self, error: Exception) -> str:
        cause: BaseException | None = error
        while cause is not None:
            if problem := certificate_problem(cause, self._ca_file, ISSUER_CA_FILE):
                return problem
            cause = cause.__cause__ or cause.__context__
        return str(error) or type(error).__name__


def endpoints_fault(found: IssuerEndpoints) -> str:
    """Return why an issuer's document is not gone by, beginning with the field; "": it is."""
    for field, named in msgspec.structs.asdict(found).items():
        if named and (fault := named_url_fault(named, found.issuer)):
            return f"{field}: {fault}"
    return ""


def refusal(answer: IssuerAnswer) -> LoginFailed:
    """Return the error of an answer that is one."""
    why = f" ({answer.error_description})" if answer.error_description else ""
    return LoginFailed(f"The issuer refuses: {answer.error}{why}."[:500])
