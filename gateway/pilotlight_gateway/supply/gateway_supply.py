"""What a gateway has of the supply chain, over the bus."""

from __future__ import annotations

from dataclasses import dataclass

from pilotlight_core.bus import Bus
from pilotlight_core.host.blobs import BlobStore
from pilotlight_core.host.key_set_records import KeySets
from pilotlight_core.host.records.policy_registry import PolicyBook
from pilotlight_core.host.registry import Registry
from pilotlight_core.host.supply.trust_keys import TrustKeys, TrustStore
from pilotlight_gateway.supply.base_inventories import BaseInventories
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


def open_supply(
    bus: Bus,
    registry: Registry,
    blobs: BlobStore,
    signer: ManifestSigner,
    osv: OsvFile,
    inventories: BaseInventories,
    region: str,
) -> SupplyParts:
    """The supply chain of a gateway."""
    trust = TrustKeys(bus)
    desk = SupplyDesk(blobs=blobs, policies=registry.policies, trust=trust, inventories=inventories, osv=osv)
    key_sets = KeySets(bus, region=region)
    return SupplyParts(desk=desk, trust=trust, policies=registry.policies, key_sets=key_sets, signer=signer)
