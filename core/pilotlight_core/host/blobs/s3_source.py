"""An object of S3 as it comes, in one thread.

boto3 reads through two layers that copy each piece. Where the connection below them is Python's own, it reads into
given memory without a copy; else the layers are asked.
"""

from __future__ import annotations

from collections.abc import Callable
from http.client import HTTPException, HTTPResponse
from types import TracebackType
from typing import Any

from pilotlight_core.host.blobs.blob_port import BlobsDown


class S3Source:
    """The content of an answer to `get_object`, or of its connection; that serves others once all of it is read."""

    def __init__(self, answer: Any) -> None:
        self._body = answer["Body"]
        self._left = int(answer["ContentLength"])
        self._raw = getattr(self._body, "_raw_stream", self._body)
        below = getattr(self._raw, "_fp", None)
        self._read: Callable[[memoryview], int] = self._body.readinto
        self._is_direct = isinstance(below, HTTPResponse) and hasattr(self._raw, "release_conn")
        if self._is_direct:
            assert isinstance(below, HTTPResponse)  # noqa: S101 - said above
            self._read = below.readinto

    def readinto(self, buffer: memoryview, /) -> int:
        if not self._left:
            return 0
        try:
            count = self._read(buffer)
        except (OSError, HTTPException) as error:
            raise BlobsDown(f"S3 broke off: {type(error).__name__} {error}.") from error
        if not count:
            raise BlobsDown(f"S3 broke off, {self._left} bytes before the end.")
        self._left -= count
        return count

    def __enter__(self) -> S3Source:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._is_direct and not self._left:
            self._raw.release_conn()
        else:
            self._body.close()
