"""Large inputs and results of jobs, as blobs of their tenant.

The same content may be a bundle's file or another job's input. So each blob begins with a head that names its job or
batch and what it is: it has one owner, and may be deleted with it.
"""

from __future__ import annotations

import hashlib
import re

from pilotlight_core.host.blobs import BlobStore
from pilotlight_core.model.records.jobs import BlobRef

INPUT_INLINE = 32 * 1024
HEAD = re.compile(rb"pilotlight ((?:call|batch)_[A-Za-z0-9_-]{1,128}) [^\n]{1,256}\n")
LONGEST_HEAD = 512
OUTPUT_INLINE = 64 * 1024
"""Up to here they stand in the record, which is written at every change."""
COUNTED = 256
"""Up to here a result or an error is within what a record counts as, whatever it holds."""


async def store_payload(blobs: BlobStore, tenant: str, owner: str, what: str, data: bytes) -> BlobRef:
    """Keep `data` as a blob; raises as the store does."""
    content = _head(owner, what) + data
    digest = hashlib.sha256(content).hexdigest()
    await blobs.put(tenant, digest, content)
    return BlobRef(sha256=digest, size=len(data))


async def fetch_payload(blobs: BlobStore, tenant: str, ref: BlobRef) -> bytes:
    """What was kept; raises as the store does."""
    content = await blobs.read(tenant, ref.sha256)
    return content[len(content) - ref.size :]


def owner_of(content: bytes) -> str | None:
    """The job or batch whose blob begins so; None: it is of neither."""
    found = HEAD.match(content)
    return found[1].decode() if found is not None else None


def _head(owner: str, what: str) -> bytes:
    return f"pilotlight {owner} {what}\n".encode()
