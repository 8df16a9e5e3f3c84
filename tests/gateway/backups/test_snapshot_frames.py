"""A snapshot that lacks a part is known by its frames."""

from __future__ import annotations

import pytest

from pilotlight_gateway.backups.snapshot_frames import ARCHIVE, END, IDENTIFIER, TAR, TAR_AT, SnapshotFrames

FRAMES = [bytes([kind]) + len(data).to_bytes(3, "little") + data for kind, data in ((0, b"\7" * 9), (1, b"\7" * 300))]
SNAPSHOT = IDENTIFIER + b"".join(FRAMES * 3)


def is_whole(*parts: bytes) -> bool:
    frames = SnapshotFrames()
    for part in parts:
        frames.follow(part)
    return frames.is_whole


@pytest.mark.parametrize("size", [16, 17, 300, 10_000])
def test_a_snapshot_is_whole_if_nothing_of_it_is_missing(size: int) -> None:
    """However it is cut into parts, and whichever of them is missing; a frame's header may be in two of them."""
    parts = [SNAPSHOT[at : at + size] for at in range(0, len(SNAPSHOT), size)]

    assert is_whole(*parts)
    for number in range(1, len(parts)):
        assert not is_whole(*parts[:number], *parts[number + 1 :])


def archive(*contents: bytes) -> list[bytes]:
    """Frames, each a part of its own."""
    frames = [b"\1" + (4 + len(content)).to_bytes(3, "little") + b"crc!" + content for content in contents]
    return [IDENTIFIER, *frames]


@pytest.mark.parametrize(
    ("first", "last"),
    [
        (ARCHIVE + b"\x0astate.json", b"the last message" + END),
        (ARCHIVE + b"\x0astate.json", END[:3]),  # the rest of it is in the frame before
        (bytes(TAR_AT) + TAR, bytes(1_024)),
    ],
)
def test_an_archive_lacks_its_end_if_its_last_part_is_missing(first: bytes, last: bytes) -> None:
    """Also where that begins as a frame does, so that all frames are whole."""
    parts = archive(first, b"messages", last)

    assert is_whole(*parts)
    assert not is_whole(*parts[:-1])
    assert not is_whole(*parts[:-2])


def test_the_end_of_an_unknown_archive_is_not_judged() -> None:
    """Nor of a frame that is packed in another way: the server that reads it knows."""
    assert is_whole(*archive(b"NATSARC2", b"messages"))
    assert is_whole(IDENTIFIER, b"\0\x05\0\0crc!\xff", b"\0\x05\0\0crc!\xff")


def test_what_is_compressed_otherwise_is_not_judged() -> None:
    """By a later server, for one."""
    assert is_whole(b"something else")
    assert is_whole()
