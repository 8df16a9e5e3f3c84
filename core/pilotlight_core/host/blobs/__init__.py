"""Blobs: files by the sha256 of their content, per tenant."""

from pilotlight_core.host.blobs.blob_opening import open_blobs
from pilotlight_core.host.blobs.blob_port import (
    BadBlob,
    BlobBackend,
    BlobChanged,
    BlobContent,
    BlobInfo,
    BlobMissing,
    BlobsDown,
    BlobsErased,
    BlobStore,
    ErasedBlobs,
    NoBlobStore,
)
from pilotlight_core.host.blobs.cached_reads import CachedReads
from pilotlight_core.host.blobs.folder_blobs import FolderBlobs
from pilotlight_core.host.blobs.memory_blobs import MemoryBlobs
from pilotlight_core.host.blobs.sealed_blobs import BlobKeys, MemoryBlobKeys, SealedBlobs

__all__ = [
    "BadBlob",
    "BlobBackend",
    "BlobChanged",
    "BlobContent",
    "BlobInfo",
    "BlobKeys",
    "BlobMissing",
    "BlobStore",
    "BlobsDown",
    "BlobsErased",
    "CachedReads",
    "ErasedBlobs",
    "FolderBlobs",
    "MemoryBlobKeys",
    "MemoryBlobs",
    "NoBlobStore",
    "SealedBlobs",
    "open_blobs",
]
