"""A gateway's part in secrets, over a bus."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Protocol

import structlog

from pilotlight_core.bus import Bus
from pilotlight_core.host.binding_book import Bindings
from pilotlight_core.host.foundations import SECRETS_KEY, WrongFoundation, read_adopted
from pilotlight_core.model.subjects import shard_of
from pilotlight_gateway.fleet.container_stopper import BusStopper
from pilotlight_gateway.fleet.fleet_view import FleetView
from pilotlight_gateway.secrets.bus_secrets import BusSecrets
from pilotlight_gateway.secrets.data_keys import DataKeys
from pilotlight_gateway.secrets.key_opening import open_key_pair
from pilotlight_gateway.secrets.platform_keys import NoPlatformKey, PlatformKeyDown
from pilotlight_gateway.secrets.secret_answers import ContainerSecrets, secret_answers
from pilotlight_gateway.secrets.secret_rotation import SecretRotation
from pilotlight_gateway.secrets.tenant_blob_keys import PlatformBlobs
from pilotlight_gateway.secrets.tenant_vault import THEN, WHAT, TenantVault
from pilotlight_gateway.settings import ServeSettings
from pilotlight_gateway.tenancy.registry_port import RegistryPort

log = structlog.get_logger(__name__)


class HomeShards(Protocol):
    """Of which shards this gateway is the home."""

    def mine(self, shard: int, at: float) -> int | None:
        """The epoch under which it may act at the monotonic second `at`; None: it may not."""
        ...


class CallKnowledge(Protocol):
    """What a gateway knows of containers: where they are bound, what their nodes report, and whose home it is."""

    @property
    def bindings(self) -> Bindings: ...
    @property
    def fleet(self) -> FleetView: ...
    @property
    def table(self) -> HomeShards: ...


class GatewaySecrets:
    """Stored secrets, what unseals them, who is given them, and what follows when one is set anew."""

    def __init__(self, settings: ServeSettings, bus: Bus, registry: RegistryPort, calls: CallKnowledge) -> None:
        """
        Raises:
            WrongFoundation: --secrets-key, or the former one, names none.
        """
        pair = open_key_pair(settings.secrets_key, settings.former_secrets_key, settings.keys_dir)
        self.store = BusSecrets(bus)
        self.vault = TenantVault(self.store, DataKeys(self.store, *pair, what=WHAT, then=THEN))
        self.sealing = PlatformBlobs(
            settings.blobs, bus, pair, seals=settings.encrypt_blobs, is_erased=registry.is_erased
        )
        self.stopper = BusStopper(bus, region=settings.region)
        self._bus = bus
        self._has_former = pair.former is not None
        self._adopts = SECRETS_KEY in read_adopted(settings.adopt)
        self._answers = secret_answers(
            bus, ContainerSecrets(self.vault, registry, calls.bindings), region=settings.region
        )

        def is_home(function: str) -> bool:
            return calls.table.mine(shard_of(function), time.monotonic()) is not None

        self._rotation = SecretRotation(self.store, registry, calls.fleet, self.stopper, calls.bindings, is_home)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Answer agents and replace containers until the block ends.

        Raises:
            WrongFoundation: the key that the platform is to have from now on, or had before, cannot be used, or the
                one that seals its blobs.
        """
        try:
            for keys in (self.vault.keys, self.sealing.keys.keys):
                if self._adopts:
                    await keys.claim(adopt=True)
                if self._has_former:
                    count = await keys.reseal_all()
                    log.info("data keys of tenants were sealed by the new key", count=count)
        except (NoPlatformKey, PlatformKeyDown) as error:
            raise WrongFoundation(f"The key of secrets cannot take over from another: {error}.") from None
        await self.sealing.check()
        async with self.store.running(), self._answers.running(), self._rotation.running(self._bus):
            yield
