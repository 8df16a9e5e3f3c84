"""What a version's own bill of materials says of its packages: for whoever looks at it again, and asks no node."""

from __future__ import annotations

from dataclasses import dataclass

import msgspec

from pilotlight_core.model.packages.package_locks import PackageLock
from pilotlight_core.model.supply.inventories import BaseInventory, PackageFact
from pilotlight_gateway.supply.base_inventories import KnownPackages


class _Licence(msgspec.Struct, frozen=True):
    expression: str = ""


class _Hash(msgspec.Struct, frozen=True):
    content: str = ""


class _Part(msgspec.Struct, frozen=True, rename={"ref": "bom-ref"}):
    ref: str
    name: str = ""
    version: str = ""
    purl: str = ""
    type: str = ""
    licenses: tuple[_Licence, ...] = ()
    hashes: tuple[_Hash, ...] = ()

    @property
    def licence(self) -> str:
        return self.licenses[0].expression if self.licenses else ""


class _Sbom(msgspec.Struct, frozen=True):
    components: tuple[_Part, ...] = ()


def packages_in(sbom: bytes) -> KnownPackages:
    """Raises DecodeError."""
    parts = msgspec.json.decode(sbom, type=_Sbom).components
    base = next((part for part in parts if part.type == "platform"), None)
    licences = {part.purl: part.licence for part in parts if part.ref.startswith("lock:") and part.licence}
    if base is None or not base.hashes:
        return KnownPackages(None, licences)
    packages = tuple(
        PackageFact(name=part.name, version=part.version, licence=part.licence)
        for part in parts
        if part.ref.startswith("base:") and part.type == "library"
    )
    found = BaseInventory(digest=base.hashes[0].content, python="", platform="", packages=packages)
    return KnownPackages(found, licences)


@dataclass(frozen=True)
class SbomInventories:
    """The `BaseInventories` of one version."""

    packages: KnownPackages

    async def known(self, tenant: str, base: str, lock: PackageLock | None = None) -> KnownPackages:  # noqa: ARG002
        return self.packages
