"""Links to blobs, with keys of sealed ones: a node may read of the store what its containers were bound to run."""

from __future__ import annotations

import msgspec

from pilotlight_core.bus import Bus
from pilotlight_core.host.binding_book import Bindings
from pilotlight_core.host.blobs import BlobMissing, BlobsDown, CachedReads, SealedBlobs
from pilotlight_core.host.blobs.sealed_blobs import HandedBlob
from pilotlight_core.host.sealed_boxes import seal_box
from pilotlight_core.model import subjects
from pilotlight_core.model.messages.agent_questions import BlobLink, BlobWanted, blob_key_context
from pilotlight_gateway.deploys.present_files import files_of
from pilotlight_gateway.fleet.node_questions import NodeQuestions
from pilotlight_gateway.tenancy.registry_port import RegistryPort

QUEUE = "blob-links"
"""One gateway answers each question."""
FILES_KEPT = 100_000
"""Digests in memory, over all versions lately asked for."""
LINK_S = 300.0


class BlobLinks:
    """Decides which node gets a link to which blob. `node` is the one that the message's subject names."""

    def __init__(self, blobs: SealedBlobs, registry: RegistryPort, bindings: Bindings) -> None:
        self._blobs = blobs
        self._registry = registry
        self._bindings = bindings
        self._files = CachedReads(self._read, most=FILES_KEPT, size=lambda files: len(files) + 1)

    async def link(self, node: str, wanted: BlobWanted) -> BlobLink:
        """A link that is good for LINK_S, or why there is none."""
        binding = self._bindings.live(wanted.container)
        if binding is None or binding.node != node:
            return BlobLink(reason="not_bound")
        version = await self._registry.fetch_version(binding.version)
        if version is None:
            return BlobLink(reason="not_its")
        try:
            manifest = version.manifest_sha256
            beside = version.evidence.digests if version.evidence is not None else frozenset()
            is_known = wanted.sha256 == manifest or wanted.sha256 in beside
            if not is_known and wanted.sha256 not in await self._files.get(version.tenant, manifest):
                return BlobLink(reason="not_its")
            handed = await self._blobs.hand(version.tenant, wanted.sha256, LINK_S)
        except BlobMissing:
            return BlobLink(reason="missing")
        except BlobsDown:
            return BlobLink(reason="down")
        return _answer(handed, wanted)

    async def _read(self, tenant: str, manifest: str) -> frozenset[str]:
        """The digests of a version's files; none of a manifest that cannot be read."""
        try:
            return files_of(await self._blobs.read(tenant, manifest))
        except msgspec.DecodeError:
            return frozenset()


def _answer(handed: HandedBlob, wanted: BlobWanted) -> BlobLink:
    """The link, and with it what opens a sealed blob, which the agent that asked can read and nobody else."""
    if not handed.key:
        return BlobLink(url=handed.url) if handed.url else BlobLink(reason="no_links")
    if not wanted.public_key:
        return BlobLink(reason="sealed")
    try:
        box = seal_box(wanted.public_key, handed.key, blob_key_context(wanted.container, wanted.sha256))
    except ValueError:  # no key of the curve
        return BlobLink(reason="sealed")
    return BlobLink(url=handed.url, name=handed.name, sealed_key=box)


def blob_link_answers(bus: Bus, links: BlobLinks, *, region: str) -> NodeQuestions[BlobWanted]:
    """What answers agents' questions for blobs over the bus."""
    busy = BlobLink(reason="busy")
    return NodeQuestions(bus, subjects.blobs(region), BlobWanted, links.link, queue=QUEUE, busy=busy)
