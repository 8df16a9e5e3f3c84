"""Versions with their schemas, where those are too large for the registry."""

from __future__ import annotations

import asyncio
from weakref import WeakValueDictionary

import msgspec

from pilotlight_core.host.blobs import BlobMissing, BlobsDown, BlobStore, CachedReads
from pilotlight_core.model.spec import MethodSpec, SignedManifest, VersionRecord

SCHEMA_BYTES_KEPT = 4 * 2**20
"""JSON bytes of the schemas in memory; as dictionaries they take up to 24 times as much."""
READ_S = 5.0
"""A call may have less time than a store that hangs takes."""
READS_AT_A_TIME = 4


class _Spec(msgspec.Struct, frozen=True):
    methods: tuple[MethodSpec, ...]


class _SpecOnly(msgspec.Struct, frozen=True):
    """A manifest without its files, which may be many."""

    spec: _Spec


class _Methods(msgspec.Struct, frozen=True):
    methods: tuple[MethodSpec, ...]
    size: int
    """Bytes of the methods as JSON."""


class VersionSchemas:
    """Gives versions the schemas that their records lack, from their manifests."""

    def __init__(self, blobs: BlobStore) -> None:
        self._blobs = blobs
        self._methods = CachedReads(self._read, most=SCHEMA_BYTES_KEPT, size=lambda methods: methods.size)
        self._reads = asyncio.Semaphore(READS_AT_A_TIME)
        #: Those that calls hold, by tenant, manifest and name: they are not made a second time.
        self._held: WeakValueDictionary[tuple[str, str, str], MethodSpec] = WeakValueDictionary()

    async def whole(self, version: VersionRecord) -> VersionRecord:
        """The version with its schemas.

        Raises:
            BlobsDown: its manifest cannot be read within `READ_S`, or is not there.
        """
        if not version.schemas_apart:
            return version
        try:
            async with asyncio.timeout(READ_S):
                read = await self._methods.get(version.tenant, version.manifest_sha256)
        except TimeoutError:
            raise BlobsDown(f"The manifest of {version.ref} could not be read within {READ_S:g} s.") from None
        except BlobMissing:
            # Of a version that is kept nothing is deleted: the store is another one, or has lost it.
            raise BlobsDown(f"The blob store lacks the manifest of {version.ref}.") from None
        spec = msgspec.structs.replace(version.spec, methods=read.methods)
        return msgspec.structs.replace(version, spec=spec, schemas_apart=False)

    async def method(self, version: VersionRecord, name: str | None) -> MethodSpec:
        """A method with its schemas. Raises as `whole`, and as `FunctionSpec.method`."""
        return (await self.whole(version)).spec.method(name)

    async def _read(self, tenant: str, manifest: str) -> _Methods:
        async with self._reads, asyncio.timeout(READ_S):
            signed = await self._blobs.read(tenant, manifest)
        found = _methods_of(signed)
        held = tuple(self._held.setdefault((tenant, manifest, method.name), method) for method in found)
        return _Methods(methods=held, size=len(msgspec.json.encode(held)))


def _methods_of(signed: bytes) -> tuple[MethodSpec, ...]:
    manifest = msgspec.msgpack.decode(signed, type=SignedManifest).manifest
    return msgspec.json.decode(manifest, type=_SpecOnly).spec.methods
