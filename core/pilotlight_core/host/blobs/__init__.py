"""Blobs: files by the sha256 of their content, per tenant."""

from pilotlight_core.host.blobs.blob_opening import open_blobs
from pilotlight_core.host.blobs.blob_port import (
    BadBlob,
    BlobContent,
    BlobInfo,
    BlobMissing,
    BlobsDown,
    BlobStore,
    NoBlobStore,
)
from pilotlight_core.host.blobs.cached_reads import CachedReads
from pilotlight_core.host.blobs.folder_blobs import FolderBlobs
from pilotlight_core.host.blobs.memory_blobs import MemoryBlobs

__all__ = [
    "BadBlob",
    "BlobContent",
    "BlobInfo",
    "BlobMissing",
    "BlobStore",
    "BlobsDown",
    "CachedReads",
    "FolderBlobs",
    "MemoryBlobs",
    "NoBlobStore",
    "open_blobs",
]
