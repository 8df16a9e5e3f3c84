"""The short cut to objects of S3, and who is asked where it leads nowhere."""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from pilotlight_core.host.blobs import BlobMissing
from pilotlight_core.host.blobs.s3_blobs import S3Blobs
from pilotlight_core.host.blobs.whole_reads import BlobSource, read_pieces

CONTENT = b"content" * 100_000
SHA = hashlib.sha256(CONTENT).hexdigest()


def taken(source: BlobSource) -> bytes:
    found = bytearray()
    read_pieces(source, found.extend)
    return bytes(found)


class Client:
    """boto3's, which counts what it is asked for, and may sign addresses that are refused."""

    def __init__(self, client: Any) -> None:
        self._client = client
        self.gets = 0
        self.spoil: dict[str, str] = {}

    def __getattr__(self, name: str) -> Any:
        return getattr(self._client, name)

    def get_object(self, **what: str) -> Any:
        self.gets += 1
        return self._client.get_object(**what)

    def generate_presigned_url(self, *args: Any, **what: Any) -> str:
        url: str = self._client.generate_presigned_url(*args, **what)
        for old, new in self.spoil.items():
            url = url.replace(old, new)
        return url


@pytest.fixture
async def store(tmp_path: Path, s3_endpoint: str) -> AsyncIterator[S3Blobs]:
    made = S3Blobs("blobs", tmp_path.name, endpoint=s3_endpoint)
    made._s3 = made._signed._client = Client(made._s3)
    await made.put("acme", SHA, CONTENT)
    yield made
    await made.aclose()


def client_of(store: S3Blobs) -> Client:
    found = store._s3
    assert isinstance(found, Client)
    return found


async def test_a_blob_is_read_by_an_address(store: S3Blobs) -> None:
    """Without boto3's own call; what is not there is said as ever."""
    assert [await store.read_whole("acme", SHA, taken) for _ in range(3)] == [CONTENT] * 3
    assert client_of(store).gets == 0
    with pytest.raises(BlobMissing):
        await store.read_whole("rival", SHA, taken)
    assert await store.read_whole("acme", SHA, taken) == CONTENT
    assert client_of(store).gets == 1


async def test_a_store_that_takes_no_addresses_is_asked_by_boto3(store: S3Blobs) -> None:
    """From the first refusal on."""
    client_of(store).spoil = {SHA: "elsewhere"}
    assert await store.read_whole("acme", SHA, taken) == CONTENT
    client_of(store).spoil = {}
    assert await store.read_whole("acme", SHA, taken) == CONTENT
    assert client_of(store).gets == 2


async def test_an_address_that_cannot_be_reached_is_no_refusal(store: S3Blobs) -> None:
    """The next one may be."""
    client_of(store).spoil = {"http://127.0.0.1:": "http://127.0.0.1:9/"}
    assert await store.read_whole("acme", SHA, taken) == CONTENT
    client_of(store).spoil = {}
    assert await store.read_whole("acme", SHA, taken) == CONTENT
    assert client_of(store).gets == 1
