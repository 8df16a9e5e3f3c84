"""A snapshot that lacks a part is known by its frames."""

from __future__ import annotations

import pytest

from pilotlight_gateway.backups.snapshot_frames import IDENTIFIER, SnapshotFrames

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


def test_what_is_compressed_otherwise_is_not_judged() -> None:
    """By a later server, for one."""
    assert is_whole(b"something else")
    assert is_whole()
