"""Questions to the metadata service of a machine: plain HTTP at an address of its own, with bounded answers.

Whoever answers there is not trusted to be the provider: a container without walls could listen at such an address. So
redirects are not followed, proxies of the environment are not used, and an answer is as long as it may be.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass

from pilotlight_core.host.http_client import HttpClient, NoHttpClient
from pilotlight_runtime.node.notices.notice_port import NoticesUnread

MOST_BYTES = 64 * 1024
"""Of an answer; the largest of Azure's, of a hundred machines, has a fifth of it."""
WITHIN_S = 3.0


@dataclass(frozen=True, kw_only=True)
class MetadataAnswer:
    status: int
    headers: Mapping[str, str]
    text: str


class MetadataClient:
    """Asks the service at `url`, one question at a time."""

    def __init__(self, url: str) -> None:
        self._url = url.rstrip("/")
        self._client = HttpClient(connections=2, timeout=None, trust_env=False, follow_redirects=False)

    async def ask(
        self, path: str, headers: Mapping[str, str], *, method: str = "GET", within_s: float = WITHIN_S
    ) -> MetadataAnswer:
        """One answer, whatever its status.

        Raises:
            NoticesUnread: none came in time, or one too long, or none that is text.
        """
        try:
            async with asyncio.timeout(within_s):
                return await self._ask(method, path, {**headers, "Accept-Encoding": "identity"})
        except TimeoutError:
            raise NoticesUnread(f"{method} {path} was not answered within {within_s:g} s") from None

    async def _ask(self, method: str, path: str, headers: Mapping[str, str]) -> MetadataAnswer:
        try:
            client = await self._client.get()
        except NoHttpClient as error:
            raise NoticesUnread(str(error)) from None
        import httpx  # loaded by now

        body = bytearray()
        try:
            async with client.stream(method, self._url + path, headers=headers) as answer:
                async for piece in answer.aiter_raw():
                    body += piece
                    if len(body) > MOST_BYTES:
                        raise NoticesUnread(f"{method} {path} was answered with more than {MOST_BYTES} bytes")
            return MetadataAnswer(status=answer.status_code, headers=answer.headers, text=body.decode())
        except (httpx.HTTPError, httpx.InvalidURL, UnicodeDecodeError) as error:
            raise NoticesUnread(f"{method} {path}: {type(error).__name__}: {error}") from None

    async def aclose(self) -> None:
        await self._client.aclose()


def unexpected(path: str, answer: MetadataAnswer) -> NoticesUnread:
    """The error of an answer with a status that says nothing about notices."""
    return NoticesUnread(f"GET {path} was answered with the status {answer.status}")
