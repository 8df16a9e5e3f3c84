"""Issuers of tokens, for operators; and who one is."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

import msgspec

from pilotlight.client.resources.platform import PlatformClient
from pilotlight_core.model.api.issuer_api import CallerInfo, IssuerRequest, LoginInfo

Json = dict[str, Any]


class LoginList(msgspec.Struct, frozen=True, kw_only=True):
    """The answer of `GET /v1/logins`."""

    logins: tuple[LoginInfo, ...]


class IssuersClient:
    """Requests of `/v1/issuers`, `/v1/logins` and `/v1/whoami`."""

    def __init__(self, platform: PlatformClient) -> None:
        self._platform = platform

    async def list_issuers(self) -> list[Json]:
        """Return the issuers whose tokens the platform takes."""
        return list((await self._platform.request("GET", "/v1/issuers", answer_type=Json))["issuers"])

    async def set_issuer(self, name: str, request: IssuerRequest) -> Json:
        """Put an issuer on record, or replace it."""
        return await self._platform.request("PUT", _path(name), body=request, answer_type=Json)

    async def remove_issuer(self, name: str) -> None:
        """Take an issuer off the record."""
        await self._platform.send("DELETE", _path(name))

    async def list_logins(self) -> tuple[LoginInfo, ...]:
        """Return the issuers at which people log in; no key is needed."""
        return (await self._platform.request("GET", "/v1/logins", answer_type=LoginList)).logins

    async def describe_caller(self) -> CallerInfo:
        """Return what the platform takes the caller for."""
        return await self._platform.request("GET", "/v1/whoami", answer_type=CallerInfo)


def _path(issuer: str) -> str:
    return f"/v1/issuers/{quote(issuer, safe='')}"
