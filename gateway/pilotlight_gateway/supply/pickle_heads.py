"""Which files of artifacts are pickles by their first bytes, whatever they are called."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

from pilotlight_core.host.blobs import BlobMissing, BlobStore
from pilotlight_core.model.spec import ArtifactEntry

HEAD_BYTES = 256
PROTOCOLS = range(2, 6)
"""Of pickles, whose second byte it is; the first is 0x80."""
ZIP_MAGIC, PICKLED = b"PK\x03\x04", b"data.pkl"
"""How torch begins its files, and what is in the name of their first entry."""
AT_ONCE = 16


def is_pickle(head: bytes) -> bool:
    """Whether a file with these first bytes is read as a pickle."""
    if len(head) >= 2 and head[0] == 0x80 and head[1] in PROTOCOLS:
        return True
    return head.startswith(ZIP_MAGIC) and PICKLED in head


async def pickled_files(blobs: BlobStore, tenant: str, artifacts: Iterable[ArtifactEntry]) -> frozenset[str]:
    """`artifact/path` of those that are. Raises BlobsDown."""
    turns = asyncio.Semaphore(AT_ONCE)

    async def read_head(name: str, sha256: str) -> str:
        async with turns:
            try:
                head = await blobs.head(tenant, sha256, HEAD_BYTES)
            except BlobMissing:
                return ""
        return name if is_pickle(head) else ""

    first: dict[str, str] = {}
    for artifact in artifacts:
        for part in artifact.parts:
            first.setdefault(f"{artifact.name}/{part.path}", part.sha256)
    found = await asyncio.gather(*(read_head(name, sha256) for name, sha256 in first.items()))
    return frozenset(filter(None, found))
