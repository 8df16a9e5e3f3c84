"""Boxes open for one key and one context."""

from __future__ import annotations

import pytest

from pilotlight_core.host.sealed_boxes import BoxReader, CannotOpen, seal_box


def test_a_box_opens_for_its_reader_alone() -> None:
    """And shows nothing of what is in it."""
    reader, other = BoxReader(), BoxReader()
    box = seal_box(reader.public, b"a value that nobody sees", "c1")

    assert reader.open(box, "c1") == b"a value that nobody sees"
    assert b"value" not in box
    with pytest.raises(CannotOpen):
        other.open(box, "c1")


def test_a_box_is_for_one_context() -> None:
    """The answer to one container's question is none to another's."""
    reader = BoxReader()
    with pytest.raises(CannotOpen):
        reader.open(seal_box(reader.public, b"x", "c1"), "c2")


@pytest.mark.parametrize("place", [0, 31, 32, -1])
def test_a_box_that_was_changed_does_not_open(place: int) -> None:
    """In its key or in its content."""
    reader = BoxReader()
    box = bytearray(seal_box(reader.public, b"x", "c1"))
    box[place] ^= 1
    with pytest.raises(CannotOpen):
        reader.open(bytes(box), "c1")


@pytest.mark.parametrize("box", [b"", b"short", bytes(32), bytes(64)])
def test_what_is_no_box_does_not_open(box: bytes) -> None:
    """Also the key of no point, with which everybody would share a secret."""
    with pytest.raises(CannotOpen):
        BoxReader().open(box, "c1")


def test_nothing_is_sealed_to_what_is_no_key() -> None:
    """A node may send anything."""
    for key in (b"", bytes(32)):
        with pytest.raises(ValueError, match=r"."):
            seal_box(key, b"x", "c1")


def test_no_two_boxes_are_alike() -> None:
    """Each has a key of its own."""
    public = BoxReader().public
    assert seal_box(public, b"x", "c1") != seal_box(public, b"x", "c1")
