"""What a gateway has of the supply chain, over the bus."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import NamedTuple

from pilotlight_core.bus import Bus
from pilotlight_core.host.blobs import BlobStore
from pilotlight_core.host.key_set_records import KeySets
from pilotlight_core.host.records.policy_registry import PolicyBook
from pilotlight_core.host.registry import Registry
from pilotlight_core.host.supply.trust_keys import TrustKeys, TrustStore
from pilotlight_gateway.supply.base_inventories import BusInventories, NodesSeen
from pilotlight_gateway.supply.key_set_book import KeySetStore
from pilotlight_gateway.supply.osv_file import OsvFile
from pilotlight_gateway.supply.signing_keys import ManifestSigner
from pilotlight_gateway.supply.supply_desk import SupplyDesk


@dataclass(frozen=True, kw_only=True)
class SupplyParts:
    """What deploys and endpoints use."""

    desk: SupplyDesk
    trust: TrustStore
    policies: PolicyBook
    key_sets: KeySetStore
    signer: ManifestSigner


@dataclass(frozen=True, kw_only=True)
class GatewaySupply:
    """The parts, and what hears nodes' answers for them."""

    parts: SupplyParts
    inventories: BusInventories

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Take nodes' answers until the block ends."""
        async with self.inventories.running():
            yield


class InsideName(NamedTuple):
    """By what nodes answer a gateway."""

    region: str
    gateway: str


def open_supply(
    bus: Bus,
    registry: Registry,
    blobs: BlobStore,
    fleet: NodesSeen,
    signer: ManifestSigner,
    osv: OsvFile,
    inside: InsideName,
) -> GatewaySupply:
    """The supply chain of the gateway with this name."""
    trust = TrustKeys(bus)
    inventories = BusInventories(bus, fleet, registry, region=inside.region, gateway=inside.gateway)
    desk = SupplyDesk(
        blobs=blobs, policies=registry.policies, signer=signer, trust=trust, inventories=inventories, osv=osv
    )  # fmt: skip
    key_sets = KeySets(bus, region=inside.region)
    parts = SupplyParts(desk=desk, trust=trust, policies=registry.policies, key_sets=key_sets, signer=signer)
    return GatewaySupply(parts=parts, inventories=inventories)
