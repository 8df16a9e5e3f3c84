"""Vaults for tests."""

from __future__ import annotations

import time
from collections.abc import Callable

from pilotlight_gateway.secrets.data_keys import DataKeys
from pilotlight_gateway.secrets.platform_keys import PlatformKey
from pilotlight_gateway.secrets.secret_store import SecretStore
from pilotlight_gateway.secrets.tenant_vault import THEN, WHAT, TenantVault


def vault_over(
    store: SecretStore,
    platform: PlatformKey,
    former: PlatformKey | None = None,
    clock: Callable[[], float] = time.monotonic,
) -> TenantVault:
    """A vault with these keys."""
    return TenantVault(store, DataKeys(store, platform, former, clock, what=WHAT, then=THEN))
