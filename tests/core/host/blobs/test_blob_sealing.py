"""What is sealed opens for whom it may, whole or in part, and not if anything of it was changed."""

from __future__ import annotations

import hashlib
import io
from collections.abc import AsyncIterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pilotlight_core.host.blobs.blob_port import BlobChanged
from pilotlight_core.host.blobs.blob_sealing import (
    HEAD,
    SEGMENT,
    WHOLE,
    BlobKey,
    OpenedSource,
    content_size,
    length_for,
    opened,
    opened_head,
    sealed,
)
from pilotlight_core.host.blobs.whole_reads import read_pieces
from tests.example_counts import examples

KEY = BlobKey("acme", bytes(range(32)))
CONTENT = bytes(range(256)) * 1_024  # four segments
SIZES = (0, 1, 300, SEGMENT - 1, SEGMENT, SEGMENT + 1, 3 * SEGMENT, 17 * SEGMENT + 5)


def digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


SHA = digest(CONTENT)


async def in_pieces(data: bytes, size: int) -> AsyncIterator[bytes]:
    for start in range(0, len(data), size):
        yield data[start : start + size]


async def seal(content: bytes, *, key: BlobKey = KEY, piece: int = 100_000) -> bytes:
    sha256 = digest(content)
    parts = [one async for one in sealed(key.of(sha256), key.tenant, sha256, in_pieces(content, piece))]
    return b"".join(parts)


async def open_whole(stored: bytes, sha256: str = SHA, *, key: BlobKey = KEY, piece: int = 70_000) -> bytes:
    """In pieces on the loop; in a thread it is the same, or the same refusal."""
    in_thread = open_in_thread(stored, sha256, key, piece)
    try:
        parts = [one async for one in opened(key.of(sha256), key.tenant, sha256, in_pieces(stored, piece))]
    except BlobChanged:
        assert in_thread is None
        raise
    assert all(len(one) <= 2**20 for one in parts)
    assert in_thread == b"".join(parts)
    return in_thread


class Slow(io.BytesIO):
    """What is stored, of which at most so many bytes come at once."""

    def __init__(self, stored: bytes, piece: int) -> None:
        super().__init__(stored)
        self.piece = piece

    def readinto(self, buffer: Any, /) -> int:
        return super().readinto(memoryview(buffer)[: self.piece])


def open_in_thread(stored: bytes, sha256: str, key: BlobKey, piece: int) -> bytes | None:
    """The content; None: it does not open."""
    found = bytearray()
    try:
        read_pieces(OpenedSource(key.of(sha256), key.tenant, sha256, Slow(stored, piece)), found.extend)
    except BlobChanged:
        return None
    return bytes(found)


@pytest.mark.parametrize("size", SIZES)
async def test_what_was_sealed_opens(size: int, anyio_backend: str) -> None:
    """Whatever its size and the pieces it comes in; how large it is shows from what is stored."""
    content = bytes(size)
    stored = await seal(content)

    assert await open_whole(stored, digest(content)) == content
    assert await open_whole(stored, digest(content), piece=2**22) == content
    assert content_size(len(stored)) == size
    assert content[:64] not in stored or size < 64


@examples(60)
@given(content=st.binary(max_size=300), into=st.integers(1, 400), out=st.integers(1, 400))
async def test_pieces_change_nothing(content: bytes, into: int, out: int) -> None:
    """In and out, however small they are."""
    assert await open_whole(await seal(content, piece=into), digest(content), piece=out) == content


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("wanted", [0, 1, 512, SEGMENT, SEGMENT + 1, 40 * SEGMENT])
async def test_a_beginning_opens_alone(size: int, wanted: int, anyio_backend: str) -> None:
    """From as much of what is stored as its segments take."""
    content = bytes(size)
    stored = await seal(content)

    found = opened_head(KEY.of(digest(content)), "acme", digest(content), stored[: length_for(wanted)], wanted)
    assert found == content[:wanted]


def damaged(stored: bytes) -> dict[str, bytes]:
    first, second = stored[HEAD : HEAD + WHOLE], stored[HEAD + WHOLE : HEAD + 2 * WHOLE]
    head, rest = stored[:HEAD], stored[HEAD + 2 * WHOLE :]
    return {
        "nothing": b"",
        "half a head": stored[: HEAD - 5],
        "a head alone": head,
        "cut within a segment": stored[:-9],
        "cut behind a segment": stored[: HEAD + 2 * WHOLE],
        "one byte changed": stored[:100] + bytes([stored[100] ^ 1]) + stored[101:],
        "another head": bytes([stored[0] ^ 1]) + stored[1:],
        "other random bytes": stored[: HEAD - 1] + bytes([stored[HEAD - 1] ^ 1]) + stored[HEAD:],
        "exchanged segments": head + second + first + rest,
        "a segment twice": head + first + first + rest,
        "lengthened": stored + b"more",
        "lengthened by a segment": stored + first,
        "in clear": CONTENT,
    }


@pytest.mark.parametrize("how", damaged(bytes(HEAD + 4 * WHOLE)))
async def test_what_was_changed_does_not_open(how: str, anyio_backend: str) -> None:
    """Nor does its beginning, if that was changed."""
    stored = await seal(CONTENT)
    changed = damaged(stored)[how]

    with pytest.raises(BlobChanged, match=SHA):
        await open_whole(changed)
    if changed[: HEAD + WHOLE] != stored[: HEAD + WHOLE]:
        with pytest.raises(BlobChanged):
            opened_head(KEY.of(SHA), "acme", SHA, changed[: length_for(512)], 512)


async def test_it_opens_for_its_tenant_and_name_alone(anyio_backend: str) -> None:
    """What is moved to another name or tenant, also with the same key, is refused, as is part of another writing."""
    stored, again = await seal(CONTENT), await seal(CONTENT)
    other = bytes(len(CONTENT))

    with pytest.raises(BlobChanged):
        await open_whole(stored, digest(other))
    with pytest.raises(BlobChanged):
        await open_whole(stored, key=BlobKey("rival", bytes(range(32))))
    with pytest.raises(BlobChanged):
        await open_whole(stored, key=BlobKey("acme", bytes(32)))
    with pytest.raises(BlobChanged):
        await open_whole(stored[: HEAD + WHOLE] + again[HEAD + WHOLE :])


async def test_no_two_writings_are_alike(anyio_backend: str) -> None:
    """Each has a key of its own, so that no nonce is used twice with one."""
    first, second = await seal(CONTENT), await seal(CONTENT)

    assert first[:HEAD] != second[:HEAD]
    assert not {first[at : at + 16] for at in range(HEAD, len(first), 16)} & {
        second[at : at + 16] for at in range(HEAD, len(second), 16)
    }


def test_a_name_is_the_digest_for_whom_has_the_key() -> None:
    """The same each time; for others, another tenant too, it is nothing."""
    name = KEY.name(SHA)

    assert name == KEY.name(SHA) == BlobKey("acme", bytes(range(32))).name(SHA)
    assert KEY.digest(name) == SHA
    assert BlobKey("rival", bytes(range(32))).name(SHA) != name
    assert BlobKey("rival", bytes(range(32))).digest(name) == ""
    assert BlobKey("acme", bytes(32)).digest(name) == ""
    assert KEY.digest(SHA) == KEY.digest("f" * 96) == ""


def test_a_blobs_key_opens_that_blob_alone() -> None:
    """What a node is given is no key of the tenant's, and tells none of another blob."""
    other = digest(b"other")

    assert len({KEY.of(SHA), KEY.of(other), BlobKey("rival", bytes(range(32))).of(SHA), bytes(range(32))}) == 4
