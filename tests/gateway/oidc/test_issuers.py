"""What a gateway has for tokens: open while it runs, and closed with it."""

from __future__ import annotations

import pytest

from pilotlight_core.model.errors import Unauthenticated
from pilotlight_gateway.oidc.issuers import open_issuers
from pilotlight_gateway.tenancy.registry_port import MemoryRegistry
from tests.gateway.oidc.token_maker import TokenMaker


async def test_without_issuers_nobody_is_known() -> None:
    """And nothing is fetched, or loaded."""
    async with open_issuers(MemoryRegistry(), "") as issuers:
        with pytest.raises(Unauthenticated, match="not on record"):
            await issuers.tokens.authenticate(TokenMaker().token())
