"""What only S3 can do: be away."""

from __future__ import annotations

import pytest

from pilotlight_core.host.blobs import BlobsDown
from pilotlight_core.host.blobs.s3_blobs import S3Blobs
from pilotlight_supervisor.free_ports import free_port


async def test_an_s3_that_is_away_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    """No connection is BlobsDown, which callers may try again."""
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "testing")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "testing")
    store = S3Blobs("blobs", endpoint=f"http://127.0.0.1:{free_port()}", region="us-east-1", attempts=1)

    with pytest.raises(BlobsDown, match="cannot be reached"):
        await store.read("default", "0" * 64)
    await store.aclose()
