"""What a blob store is called among all that processes have in common (`foundations`)."""

from __future__ import annotations

import structlog

from pilotlight_core.host.blobs.blob_port import BlobsDown, BlobStore, NoBlobStore

NO_ID = "one without a store-id"

log = structlog.get_logger(__name__)


async def name_of_store(blobs: BlobStore, *, create: bool = False) -> str:
    """What a store is called in a `Foundation`; "" while it cannot be reached.

    Raises:
        NoBlobStore: there is no such store.
    """
    try:
        return await blobs.store_id(create=create) or NO_ID
    except NoBlobStore:
        raise
    except BlobsDown as error:
        log.warning("the blob store cannot be asked which one it is", error=str(error))
        return ""
