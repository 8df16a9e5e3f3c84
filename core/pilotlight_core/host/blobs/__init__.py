"""Blobs: files by the sha256 of their content, per tenant."""

from pilotlight_core.host.blobs.folder import FolderBlobs
from pilotlight_core.host.blobs.memory import MemoryBlobs
from pilotlight_core.host.blobs.opening import open_blobs
from pilotlight_core.host.blobs.port import BadBlob, BlobContent, BlobMissing, BlobsDown, BlobStore

__all__ = [
    "BadBlob",
    "BlobContent",
    "BlobMissing",
    "BlobStore",
    "BlobsDown",
    "FolderBlobs",
    "MemoryBlobs",
    "open_blobs",
]
