"""Versions that may be bound here soon: their manifests verified, and their bundles in the node's cache, ahead.

Only of a store that this node reads itself, and in the clear: gateways give links and keys for what is bound, and a
node is to read no more of the store than it runs. Nodes that have joined by a token are not even told.
"""

from __future__ import annotations

import asyncio
from collections import deque

import structlog

from pilotlight_core.host.blobs import BlobsDown
from pilotlight_core.model.errors import PilotlightError
from pilotlight_core.model.messages.node_messages import Bind, Prefetch
from pilotlight_runtime.containers.files.staging import Stager

log = structlog.get_logger(__name__)

MOST_WAITING = 64
"""Versions; further ones are fetched when they are bound."""
MOST_BYTES = 64 * 2**20
"""Of one bundle; artifacts are not fetched ahead."""


class Prefetcher:
    def __init__(self, stager: Stager) -> None:
        self._stager = stager
        self._waiting: deque[Prefetch] = deque(maxlen=MOST_WAITING)
        self._woken = asyncio.Event()

    def offer(self, wanted: Prefetch) -> None:
        """Fetch it when those before it are there."""
        self._waiting.append(wanted)
        self._woken.set()

    async def run(self) -> None:
        """Fetch one after the other until cancelled."""
        while True:
            await self._woken.wait()
            self._woken.clear()
            while self._waiting:
                await self._fetch(self._waiting.popleft())

    @staticmethod
    def bind_of(wanted: Prefetch) -> Bind:
        """A bind of no container, to no slice: gateways give nothing for it."""
        return Bind(
            epoch=wanted.epoch, container="", version=wanted.version, tenant=wanted.tenant,
            manifest_sha256=wanted.manifest_sha256, slice="",
        )  # fmt: skip

    async def _fetch(self, wanted: Prefetch) -> None:
        try:
            await self._stager.fetch_ahead(self.bind_of(wanted), MOST_BYTES)
        except (PilotlightError, BlobsDown, OSError) as error:  # its bind will say it again, to its callers
            log.info("a version was not fetched ahead", version=wanted.version, why=str(error))
        except Exception:
            log.exception("a version could not be fetched ahead", version=wanted.version)
