"""Files within their quota and their time."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from pilotlight_core.host.blobs import MemoryBlobs
from pilotlight_core.model.errors import BadInput, NotFound, QuotaExceeded
from pilotlight_core.model.limits import Limits
from pilotlight_core.model.records.files import FILE_BYTES, MOST_FILES
from pilotlight_core.model.tenancy import LimitsRecord
from pilotlight_gateway.deploys.blob_usage import BlobUsage
from pilotlight_gateway.files import uploaded_files
from pilotlight_gateway.files.uploaded_files import (
    PART_BYTES,
    FileForm,
    UploadedFiles,
    check_kept,
    check_purpose,
)
from pilotlight_gateway.tenancy.auth import Principal
from pilotlight_gateway.tenancy.registry_port import MemoryRegistry
from tests.gateway.world import Clock

ACME = Principal(tenant="acme", key_id="k1", scopes=frozenset({"invoke"}))


class Shelf:
    """Files over memory."""

    def __init__(self) -> None:
        self.registry, self.blobs, self.wall = MemoryRegistry(), MemoryBlobs(), Clock(1_000.0)
        self.files = UploadedFiles(
            registry=self.registry, blobs=self.blobs, usage=BlobUsage(self.blobs), wall=self.wall
        )

    async def upload(self, *pieces: bytes, kept_s: float = 3_600.0) -> str:
        """The id of a file of these pieces."""

        async def content() -> AsyncIterator[bytes]:
            for piece in pieces:
                yield piece

        form = FileForm(name="in", purpose="batch", kept_s=kept_s)
        return (await self.files.store(ACME, content(), lambda: form)).id

    async def stored(self) -> int:
        """Blobs."""
        return len([blob async for blob in self.blobs.listed("acme")])


async def test_a_file_is_kept_in_parts() -> None:
    """Two equal ones share nothing, so that each goes alone."""
    shelf = Shelf()
    content = bytes(range(256)) * (PART_BYTES // 128)
    first, second = [await shelf.upload(content[:100], content[100:]) for _ in range(2)]
    record = await shelf.files.find("acme", first)

    assert (record.size, len(record.parts), record.by) == (len(content), 2, "k1")
    assert b"".join([part async for part in shelf.files.content(record)]) == content
    await shelf.files.delete("acme", second)
    assert b"".join([part async for part in shelf.files.content(record)]) == content
    assert await shelf.stored() == 2


async def test_a_file_expires() -> None:
    """From then on it is not there, whoever deletes it when."""
    shelf = Shelf()
    made = await shelf.upload(b"x", kept_s=10.0)
    assert len(shelf.files.listed("acme")) == 1
    shelf.wall.at += 10.0
    assert shelf.files.listed("acme") == []
    with pytest.raises(NotFound):
        await shelf.files.find("acme", made)


@pytest.mark.parametrize("file_id", ["file-", "file-../../x", "x" * 10_000, "file-00000000000000000000", "batch_1"])
async def test_no_file(file_id: str) -> None:
    """Whatever its name looks like."""
    with pytest.raises(NotFound):
        await Shelf().files.find("acme", file_id)


async def test_what_is_anothers_is_not_there() -> None:
    """By its very id."""
    shelf = Shelf()
    made = await shelf.upload(b"x")
    with pytest.raises(NotFound):
        await shelf.files.find("rival", made)
    assert shelf.files.listed("rival") == []


async def test_an_upload_that_fails_leaves_nothing() -> None:
    """Neither parts nor a record."""
    shelf = Shelf()
    shelf.registry.limit_records["acme"] = LimitsRecord(tenant="acme", limits=Limits(blob_bytes=PART_BYTES + 10_000))
    with pytest.raises(QuotaExceeded):
        await shelf.upload(b"x" * PART_BYTES, b"y" * 20_000)
    with pytest.raises(BadInput):
        await shelf.files.store(ACME, _some(b"x"), lambda: FileForm(name="x", purpose=check_purpose("No purpose")))

    assert await shelf.stored() == 0
    assert not shelf.registry.file_records


async def test_a_file_is_not_too_large(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nor are there too many."""
    shelf = Shelf()
    monkeypatch.setattr(uploaded_files, "FILE_BYTES", 10)
    with pytest.raises(BadInput) as refused:
        await shelf.upload(b"x" * 6, b"x" * 5)
    assert refused.value.wire_code == "too_large"
    monkeypatch.setattr(uploaded_files, "MOST_FILES", 1)
    await shelf.upload(b"x")
    with pytest.raises(QuotaExceeded):
        await shelf.upload(b"x")
    assert FILE_BYTES > MOST_FILES


@pytest.mark.parametrize("seconds", ["", "1", "-3600", "1e5", "nan", "9" * 400, "٣٦٠٠"])
def test_how_long_it_is_kept_is_bounded(seconds: str) -> None:
    """From an hour to thirty days."""
    with pytest.raises(BadInput):
        check_kept(seconds)
    assert check_kept("3600") == 3_600.0


async def _some(piece: bytes) -> AsyncIterator[bytes]:
    yield piece
