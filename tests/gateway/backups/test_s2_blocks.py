"""Blocks are unpacked as the format has it."""

from __future__ import annotations

import pytest

from pilotlight_gateway.backups.s2_blocks import COMPRESSED, PLAIN, BadBlock, content_of, unpack_block


def literal(data: bytes) -> bytes:
    size = len(data) - 1
    if size < 60:
        return bytes([size << 2]) + data
    width = (size.bit_length() + 7) // 8
    return bytes([(59 + width) << 2]) + size.to_bytes(width, "little") + data


def near(offset: int, length: int) -> bytes:
    return bytes([offset >> 8 << 5 | (length - 4) << 2 | 1, offset & 0xFF])


def far(offset: int, length: int, width: int = 2) -> bytes:
    return bytes([(length - 1) << 2 | (2 if width == 2 else 3)]) + offset.to_bytes(width, "little")


def again(code: int, more: bytes = b"") -> bytes:
    """Repeats the last offset."""
    return bytes([code << 2 | 1, 0]) + more


def block(size: int, *elements: bytes) -> bytes:
    head = bytes([size & 0x7F | 0x80, size >> 7 & 0x7F | 0x80, size >> 14])
    return head + b"".join(elements)


@pytest.mark.parametrize(
    ("elements", "expected"),
    [
        ([literal(b"abc")], b"abc"),
        ([literal(b"x" * 61)], b"x" * 61),
        ([literal(b"y" * 70_000)], b"y" * 70_000),
        ([literal(b"abcd"), near(4, 7)], b"abcdabcdabc"),
        ([literal(b"ab"), far(1, 64)], b"ab" + b"b" * 64),
        ([literal(b"ab"), far(2, 3, 4)], b"ababa"),
        ([literal(b"z" * 300 + b"q"), far(301, 2)], b"z" * 300 + b"qzz"),
        ([literal(b"abcd"), near(4, 4), again(0)], b"abcd" * 3),
        ([literal(b"ab"), far(2, 2), again(4)], b"ab" * 6),
        ([literal(b"a"), far(1, 1), again(5, b"\x00")], b"a" * 10),
        ([literal(b"a"), far(1, 1), again(6, b"\x01\x00")], b"a" * (2 + 256 + 4 + 1)),
        ([literal(b"a"), far(1, 1), again(7, b"\x01\x00\x00")], b"a" * (2 + 65_536 + 4 + 1)),
        ([], b""),
    ],
)
def test_what_a_block_stands_for(elements: list[bytes], expected: bytes) -> None:
    """Literals, copies over two distances, and what repeats the last one, of which S2 has more lengths."""
    assert unpack_block(block(len(expected), *elements)) == expected


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\xff\xff",
        block(3, literal(b"ab")),
        block(1, literal(b"ab")),
        block(3, literal(b"abc")[:-1]),
        block(8, literal(b"abcd"), near(5, 4)),
        block(8, literal(b"abcd"), again(0)),
        block(8, literal(b"abcd"), b"\x01"),
        b"\xff\xff\xff\x7f" + literal(b"a"),
    ],
)
def test_what_is_no_block(data: bytes) -> None:
    """Of another size, cut off, reaching before its beginning, or larger than blocks are."""
    with pytest.raises(BadBlock):
        unpack_block(data)


def test_frames_have_a_checksum_before_it() -> None:
    """Packed or not."""
    assert content_of(PLAIN, b"crc!as it is") == b"as it is"
    assert content_of(COMPRESSED, b"crc!" + block(2, literal(b"ab"))) == b"ab"
    with pytest.raises(BadBlock):
        content_of(PLAIN, b"crc")
