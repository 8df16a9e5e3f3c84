"""How an issuer is asked: one document at a time, with bounds on its size and its time, and without following it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

from pilotlight_core.host.http_client import HttpClient, NoHttpClient
from pilotlight_core.model.records.issuers import named_url_fault, url_fault
from pilotlight_gateway.oidc.token_text import NotStrict, read_document

FETCH_S = 5.0
MOST_BYTES = 256 * 1024
CONNECTIONS = 8
WELL_KNOWN = "/.well-known/openid-configuration"


class IssuerSilent(Exception):
    """An issuer has not answered as it should; the message says how."""


class JwksSource(Protocol):
    """Fetches what issuers show."""

    async def fetch(self, url: str) -> bytes:
        """A document, of at most `MOST_BYTES` within `FETCH_S`.

        Raises:
            IssuerSilent.
        """
        ...


class HttpJwksSource:
    """Over HTTP. `ca_file` (PEM) has authorities of issuers beside the public ones."""

    def __init__(self, ca_file: str = "", within_s: float = FETCH_S) -> None:
        self._within_s = within_s
        self._http = HttpClient(
            connections=CONNECTIONS, ca_file=ca_file, ca_setting="--issuer-ca-file", follow_redirects=False
        )

    async def fetch(self, url: str) -> bytes:
        if fault := url_fault(url):
            raise IssuerSilent(f"{url} is not asked: {fault}")
        try:
            async with asyncio.timeout(self._within_s):
                return await self._fetch(url)
        except TimeoutError:
            raise IssuerSilent(f"{url} has not answered within {self._within_s:g} s") from None
        except NoHttpClient as error:
            raise IssuerSilent(str(error)) from None

    async def aclose(self) -> None:
        await self._http.aclose()

    async def _fetch(self, url: str) -> bytes:
        client = await self._http.get()
        import httpx  # the client has loaded it

        body = bytearray()
        try:
            # What is not compressed cannot become larger than it is.
            asked = {"Accept": "application/json", "Accept-Encoding": "identity"}
            async with client.stream("GET", url, headers=asked, timeout=self._within_s) as response:
                if response.status_code != httpx.codes.OK:
                    raise IssuerSilent(f"{url} has answered {response.status_code}")
                if response.headers.get("content-encoding", "identity") != "identity":
                    raise IssuerSilent(f"{url} has answered with what is compressed")
                async for piece in response.aiter_raw():
                    body += piece
                    if len(body) > MOST_BYTES:
                        raise IssuerSilent(f"{url} has answered with more than {MOST_BYTES} bytes")
        except httpx.HTTPError as error:
            raise IssuerSilent(f"{url} cannot be asked: {str(error) or type(error).__name__}") from None
        except ValueError as error:  # httpx.InvalidURL, and names that are none
            raise IssuerSilent(f"{url} cannot be asked: {error}") from None
        return bytes(body)


@dataclass(kw_only=True)
class MemoryJwksSource:
    """An in-memory `JwksSource`. Tests set `documents` by URL, and `silent`; it counts what it was `asked`."""

    documents: dict[str, bytes] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)
    silent: str = ""
    on_fetch: Callable[[str], None] = lambda _: None

    async def fetch(self, url: str) -> bytes:
        self.asked.append(url)
        self.on_fetch(url)
        if self.silent or url not in self.documents:
            raise IssuerSilent(self.silent or f"{url} has answered 404")
        return self.documents[url]


async def discover_jwks_url(source: JwksSource, issuer: str) -> str:
    """Where an issuer's keys are, by its own document (OpenID Connect Discovery).

    Raises:
        IssuerSilent: it does not say, or the document is another issuer's.
    """
    url = issuer.rstrip("/") + WELL_KNOWN
    try:
        found = read_document(await source.fetch(url))
    except NotStrict as error:
        raise IssuerSilent(f"{url} is no JSON object that can be read in one way only ({error})") from None
    if found.get("issuer") != issuer:
        raise IssuerSilent(f"{url} is of the issuer {found.get('issuer')!r:.200}, not of {issuer!r}")
    jwks_url = found.get("jwks_uri")
    if not isinstance(jwks_url, str) or (fault := named_url_fault(jwks_url, issuer)):
        raise IssuerSilent(f"{url} says of its keys (jwks_uri): {fault if isinstance(jwks_url, str) else 'nothing'}")
    return jwks_url
