"""Blob stores by URL."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import parse_qs, unquote, urlsplit

from pilotlight_core.host.blobs.blob_port import BlobBackend
from pilotlight_core.host.blobs.folder_blobs import FolderBlobs


def open_blobs(url: str) -> BlobBackend:
    """The store at `file:///folder` or `s3://bucket/prefix?endpoint=http://…&region=…`.

    Raises:
        ValueError: if the URL is neither.
    """
    parts = urlsplit(url)
    if parts.scheme == "file" and parts.path.startswith("/") and not parts.netloc:
        return FolderBlobs(Path(unquote(parts.path)))
    if parts.scheme == "s3" and parts.netloc:
        from pilotlight_core.host.blobs.s3_blobs import S3Blobs

        options = {name: values[-1] for name, values in parse_qs(parts.query).items()}
        if options.keys() <= {"endpoint", "region"}:
            return S3Blobs(parts.netloc, parts.path, endpoint=options.get("endpoint"), region=options.get("region"))
    raise ValueError(f"{url!r} is not a blob store: expected file:///folder or s3://bucket/prefix")
