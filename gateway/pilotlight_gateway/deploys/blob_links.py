"""Links to blobs: what a node may read of the store is what its containers were bound to run."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import msgspec
import structlog

from pilotlight_core.bus import Bus, BusError, bus_users
from pilotlight_core.host.binding_book import Bindings
from pilotlight_core.host.blobs import BlobMissing, BlobsDown, BlobStore, CachedReads
from pilotlight_core.model import subjects
from pilotlight_core.model.messages.agent_questions import BlobLink, BlobWanted
from pilotlight_gateway.deploys.present_files import files_of
from pilotlight_gateway.tenancy.registry_port import RegistryPort

QUEUE = "blob-links"
"""One gateway answers each question."""
AT_ONCE = 32
"""Questions of one node; more are told to come later."""
FILES_KEPT = 100_000
"""Digests in memory, over all versions lately asked for."""
LINK_S = 300.0

log = structlog.get_logger(__name__)


class BlobLinks:
    """Decides which node gets a link to which blob. `node` is the one that the message's subject names."""

    def __init__(self, blobs: BlobStore, registry: RegistryPort, bindings: Bindings) -> None:
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
            if wanted.sha256 != manifest and wanted.sha256 not in await self._files.get(version.tenant, manifest):
                return BlobLink(reason="not_its")
            url = await self._blobs.link(version.tenant, wanted.sha256, LINK_S)
        except BlobMissing:
            return BlobLink(reason="missing")
        except BlobsDown:
            return BlobLink(reason="down")
        return BlobLink(url=url) if url else BlobLink(reason="no_links")

    async def _read(self, tenant: str, manifest: str) -> frozenset[str]:
        """The digests of a version's files; none of a manifest that cannot be read."""
        try:
            return files_of(await self._blobs.read(tenant, manifest))
        except msgspec.DecodeError:
            return frozenset()


class BlobLinkAnswers:
    """Answers agents' questions over the bus while `running` is open."""

    def __init__(self, bus: Bus, links: BlobLinks, *, region: str) -> None:
        self._bus = bus
        self._links = links
        self._region = region
        self._busy: Counter[str] = Counter()

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Answer until the block ends."""
        async with asyncio.TaskGroup() as group:

            def receive(subject: str, message: Any, reply: str) -> None:
                node = subjects.node_of(subject)
                # A gateway may publish where a node may not: it answers into that node's inbox alone.
                if not isinstance(message, BlobWanted) or not reply.startswith(f"{bus_users.agent_inbox(node)}."):
                    return
                if self._busy[node] >= AT_ONCE:
                    self._send(reply, BlobLink(reason="busy"))
                    return
                self._busy[node] += 1
                answers.add(task := group.create_task(self._answer(node, message, reply)))
                task.add_done_callback(answers.discard)

            answers: set[asyncio.Task[None]] = set()
            heard = await self._bus.subscribe(subjects.blobs(self._region), receive, queue=QUEUE)
            try:
                yield
            finally:
                await heard.unsubscribe()
                for task in answers:
                    task.cancel()

    async def _answer(self, node: str, wanted: BlobWanted, reply: str) -> None:
        try:
            self._send(reply, await self._links.link(node, wanted))
        except Exception:
            log.exception("a node's question for a blob could not be answered", node=node)
        finally:
            self._busy[node] -= 1
            if not self._busy[node]:
                del self._busy[node]

    def _send(self, reply: str, link: BlobLink) -> None:
        try:
            self._bus.publish_nowait(reply, link)
        except BusError as error:
            log.debug("an answer was not sent", error=str(error))
