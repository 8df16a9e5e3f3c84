"""An object of S3 as it comes."""

from __future__ import annotations

import io
from typing import Any

import pytest

from pilotlight_core.host.blobs.blob_port import BlobsDown
from pilotlight_core.host.blobs.s3_source import S3Source
from pilotlight_core.host.blobs.whole_reads import read_pieces


class Body(io.BytesIO):
    """What a client library gives that is not known from within."""

    broken: Exception | None = None

    def readinto(self, buffer: Any, /) -> int:
        if self.broken is not None:
            raise self.broken
        return super().readinto(buffer)


def test_it_is_read_to_its_end_and_closed() -> None:
    """By the library's own way, where there is no shorter one."""
    body, found = Body(b"content"), bytearray()
    with S3Source({"Body": body, "ContentLength": 7}) as source:
        read_pieces(source, found.extend)
    assert (bytes(found), body.closed) == (b"content", True)


@pytest.mark.parametrize("error", [None, TimeoutError("slow"), ConnectionResetError("gone")])
def test_one_that_breaks_off_is_the_stores_fault(error: Exception | None) -> None:
    """So that it is tried again, and not taken for another content."""
    body = Body(b"cont")
    body.broken = error
    with S3Source({"Body": body, "ContentLength": 7}) as source, pytest.raises(BlobsDown, match="S3 broke off"):
        read_pieces(source, lambda _: None)
    assert body.closed
