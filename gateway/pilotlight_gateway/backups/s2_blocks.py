"""Blocks of the S2 compression, unpacked: what nats-server's snapshots are made of. Nothing else is read in them.

The format is Snappy's, with one element more, which repeats the last offset. Checksums are left to the server that
reads the snapshot.
"""

from __future__ import annotations

COMPRESSED, PLAIN = 0x00, 0x01
"""Kinds of frames that have content."""
CHECKSUM_BYTES = 4
LITERAL, NEAR, FAR = 0, 1, 2
LARGEST = 4 * 2**20
"""Of a block, as the format has it."""


class BadBlock(ValueError):
    """It is none."""


def content_of(kind: int, body: bytes) -> bytes:
    """What a frame with content stands for.

    Raises:
        BadBlock.
    """
    if len(body) < CHECKSUM_BYTES:
        raise BadBlock
    return body[CHECKSUM_BYTES:] if kind == PLAIN else unpack_block(body[CHECKSUM_BYTES:])


def unpack_block(block: bytes) -> bytes:
    """What it stands for.

    Raises:
        BadBlock.
    """
    try:
        found = _unpacked(block)
    except IndexError:
        raise BadBlock from None
    if found is None:
        raise BadBlock
    return bytes(found)


def _unpacked(block: bytes) -> bytearray | None:
    size, at = _size(block)
    if size > LARGEST:
        return None
    out, offset = bytearray(), 0
    while at < len(block):
        tag = block[at]
        kind, at = tag & 3, at + 1
        if kind == LITERAL:
            length, at = _literal_length(block, tag >> 2, at)
            out += block[at : at + length]
            at += length
            if at > len(block):
                return None
            continue
        if kind == NEAR:
            near, length, at = (tag & 0xE0) << 3 | block[at], tag >> 2 & 7, at + 1
            if near:
                offset, length = near, length + 4
            else:
                length, at = _repeat_length(block, length, at)
        else:
            width = 2 if kind == FAR else 4
            offset, length = _number(block, at, width), (tag >> 2) + 1
            at += width
        if not 0 < offset <= len(out) or len(out) + length > size:
            return None
        _copy(out, offset, length)
    return out if len(out) == size else None


def _size(block: bytes) -> tuple[int, int]:
    """How many bytes it stands for, and where its elements begin."""
    size = shift = at = 0
    while True:
        size |= (block[at] & 0x7F) << shift
        shift, at = shift + 7, at + 1
        if block[at - 1] < 0x80:
            return size, at


def _literal_length(block: bytes, code: int, at: int) -> tuple[int, int]:
    width = max(0, code - 59)
    return (_number(block, at, width) if width else code) + 1, at + width


def _repeat_length(block: bytes, code: int, at: int) -> tuple[int, int]:
    """Of an element that repeats the last offset."""
    width = max(0, code - 4)
    if not width:
        return code + 4, at
    return _number(block, at, width) + (4, 1 << 8, 1 << 16)[width - 1] + 4, at + width


def _number(block: bytes, at: int, width: int) -> int:
    if at + width > len(block):
        raise IndexError
    return int.from_bytes(block[at : at + width], "little")


def _copy(out: bytearray, offset: int, length: int) -> None:
    """Append what stands `offset` bytes before the end, again and again if that is less than `length`."""
    start = len(out) - offset
    piece = out[start : start + length]
    out += (piece * (length // len(piece) + 1))[:length]
