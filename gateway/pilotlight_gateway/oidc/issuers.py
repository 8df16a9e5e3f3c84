"""What a gateway needs for tokens of issuers, put together."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from pilotlight_gateway.oidc.issuer_keys import IssuerKeys
from pilotlight_gateway.oidc.jwks_source import HttpJwksSource, JwksSource
from pilotlight_gateway.oidc.token_authenticator import TokenAuthenticator
from pilotlight_gateway.tenancy.registry_port import IssuerRegistry


@dataclass(frozen=True, kw_only=True)
class Issuers:
    """How issuers are asked, what is known of their keys, and whom their tokens are about."""

    source: JwksSource
    keys: IssuerKeys
    tokens: TokenAuthenticator


@asynccontextmanager
async def open_issuers(registry: IssuerRegistry, ca_file: str) -> AsyncIterator[Issuers]:
    """Fetch keys of issuers, as tokens need them, while the block runs. `ca_file` (PEM) has their authorities."""
    source = HttpJwksSource(ca_file)
    keys = IssuerKeys(source, registry.issuers)
    try:
        async with keys.running():
            yield Issuers(source=source, keys=keys, tokens=TokenAuthenticator(registry, keys))
    finally:
        await source.aclose()
