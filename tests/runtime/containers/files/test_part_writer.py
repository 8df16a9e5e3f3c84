"""Parts of a file, written to their places."""

from __future__ import annotations

import hashlib
import io
from pathlib import Path

import pytest

from pilotlight_core.model.spec import ArtifactPart
from pilotlight_runtime.containers.files.bundle import CannotVerify
from pilotlight_runtime.containers.files.part_writer import PartWriter, allocate


def writer(path: Path, content: bytes, start: int = 0) -> PartWriter:
    part = ArtifactPart("m", hashlib.sha256(content).hexdigest(), len(content))
    return PartWriter(path, start, part, "part 1 of m")


def test_parts_stand_where_they_belong(tmp_path: Path) -> None:
    """Whole, or piece by piece; what was begun before counts no more."""
    path = tmp_path / "m"
    path.touch()
    allocate(path, 6)
    assert path.stat().st_size == 6
    whole, pieces = writer(path, b"abc", 3), writer(path, b"xyz")
    whole.write(b"ab")
    whole.write_all(io.BytesIO(b"abc"))
    for piece in (b"x", b"yz"):
        pieces.write(piece)
    whole.finish()
    pieces.finish()
    assert path.read_bytes() == b"xyzabc"


def test_what_is_not_what_was_signed_is_refused_by_name(tmp_path: Path) -> None:
    """Other bytes, fewer, and more: those are not written."""
    path = tmp_path / "m"
    path.touch()
    allocate(path, 3)
    for content in (b"abd", b"ab", b""):
        one = writer(path, b"abc")
        one.write_all(io.BytesIO(content))
        with pytest.raises(CannotVerify, match="part 1 of m in the blob store is not what was signed"):
            one.finish()
    with pytest.raises(CannotVerify, match="is larger than what was signed"):
        writer(path, b"abc").write_all(io.BytesIO(b"abcd"))
    assert path.stat().st_size == 3
    allocate(path, 0)
    assert path.stat().st_size == 0


def test_nothing_is_made_for_who_has_gone(tmp_path: Path) -> None:
    """Else a stopped start would leave the room of a whole file behind."""
    with pytest.raises(FileNotFoundError):
        allocate(tmp_path / "m", 3)
    assert not list(tmp_path.iterdir())
