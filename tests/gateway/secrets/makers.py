"""Secrets for tests."""

from __future__ import annotations

from dataclasses import dataclass, field

from pilotlight_gateway.secrets.platform_keys import MemoryPlatformKey
from pilotlight_gateway.secrets.secret_records import SecretRecord
from pilotlight_gateway.secrets.secret_service import set_secret
from pilotlight_gateway.secrets.secret_store import MemorySecrets
from pilotlight_gateway.secrets.tenant_vault import TenantVault
from tests.gateway.secrets.vaults import vault_over
from tests.gateway.world import Clock

VALUE = "a value that nobody sees"
AT = 1_790_000_000.0


def secret(name: str = "token", *, sealed: bytes = b"sealed", tenant: str = "acme") -> SecretRecord:
    """A record whose value opens nowhere."""
    return SecretRecord(
        tenant=tenant, name=name, number=1, created_at=AT, changed_at=AT, changed_by="k1", data_key="dk_1",
        sealed=sealed,
    )  # fmt: skip


@dataclass(kw_only=True)
class Vaulted:
    """A vault over memory."""

    store: MemorySecrets = field(default_factory=MemorySecrets)
    platform: MemoryPlatformKey = field(default_factory=MemoryPlatformKey)
    former: MemoryPlatformKey | None = None
    clock: Clock = field(default_factory=lambda: Clock(0.0))
    vault: TenantVault = field(init=False)

    def __post_init__(self) -> None:
        self.vault = vault_over(self.store, self.platform, self.former, self.clock)

    async def set(self, name: str = "token", value: str = VALUE, *, tenant: str = "acme") -> SecretRecord:
        return await set_secret(self.vault, tenant, name, value, by="k1", at=AT)

    async def values(self, *names: str, tenant: str = "acme") -> dict[str, str]:
        found = {name: self.store.records[tenant, name] for name in names}
        return await self.vault.open_all(tenant, found)
