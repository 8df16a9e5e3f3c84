"""Large inputs and results of jobs, as blobs of their tenant.

Each blob begins with a head that names its job or batch and its part in that, and ends with a random word. So equal
contents are different blobs, each has one owner, with which it is deleted, and no tenant can upload a file that is the
same blob and would be deleted with it.
"""

from __future__ import annotations

import hashlib
import re

from pilotlight_core.host.blobs import BlobStore
from pilotlight_core.model.ids import token
from pilotlight_core.model.records.jobs import BlobRef

INPUT_INLINE = 32 * 1024
HEAD = re.compile(rb"pilotlight ((?:call|batch)_[A-Za-z0-9_-]{1,128}) [^\n]{1,256}\n")
LONGEST_HEAD = 512
OUTPUT_INLINE = 64 * 1024
"""Larger results are blobs, since the record is written at every change."""
COUNTED = 256
"""Bytes of a result or an error that every record has room for, uncounted."""


async def store_payload(blobs: BlobStore, tenant: str, owner: str, what: str, data: bytes) -> BlobRef:
    """Store `data` as a blob; raises as the store does."""
    content = _head(owner, what) + data
    digest = hashlib.sha256(content).hexdigest()
    await blobs.put(tenant, digest, content)
    return BlobRef(sha256=digest, size=len(data))


async def fetch_payload(blobs: BlobStore, tenant: str, ref: BlobRef) -> bytes:
    """The stored data; raises as the store does."""
    content = await blobs.read(tenant, ref.sha256)
    return content[len(content) - ref.size :]


def owner_of(content: bytes) -> str | None:
    """The job or batch whose blob begins with `content`; None: it is of neither."""
    found = HEAD.match(content)
    return found[1].decode() if found is not None else None


def _head(owner: str, what: str) -> bytes:
    return f"pilotlight {owner} {what} {token()}\n".encode()
