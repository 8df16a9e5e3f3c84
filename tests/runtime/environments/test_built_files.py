"""What a builder sends is written within bounds, and nowhere else."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from pilotlight_runtime.builder.build_frames import BadBuild, BuiltPiece
from pilotlight_runtime.environments import built_files
from pilotlight_runtime.environments.built_files import FILE_BYTES, BuiltFiles, path_fault


def piece(path: str, data: bytes = b"x", *, is_last: bool = True, is_program: bool = False) -> BuiltPiece:
    return BuiltPiece(path=path, data=data, is_last=is_last, is_program=is_program)


def test_files_come_in_pieces(tmp_path: Path) -> None:
    """Nobody can write them, and programs can be run."""
    files = BuiltFiles(tmp_path, most_bytes=100)
    for each in (piece("a/b.py", b"one ", is_last=False), piece("a/b.py", b"two"), piece("bin/run", is_program=True)):
        files.add(each)
    files.finish()

    assert (tmp_path / "a" / "b.py").read_bytes() == b"one two"
    assert stat.S_IMODE((tmp_path / "a" / "b.py").stat().st_mode) == 0o444
    assert stat.S_IMODE((tmp_path / "bin" / "run").stat().st_mode) == 0o555
    assert (files.files, files.bytes) == (2, 8)
    assert files.on_disk == 8 + 4 * FILE_BYTES  # empty files and folders would fill a disk too


@pytest.mark.parametrize(
    "path",
    ["", "/etc/x", "../x", "a/../../x", "a//b", "a/./b", "a/", "x\0y", "n" * 256, "d/" * 40 + "x", "a/" * 600 + "x"],
)
def test_a_path_leads_nowhere_else(tmp_path: Path, path: str) -> None:
    """Nothing is written then."""
    assert path_fault(path)
    with pytest.raises(BadBuild):
        BuiltFiles(tmp_path, most_bytes=100).add(piece(path))

    assert list(tmp_path.iterdir()) == []


def test_bounds_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of bytes, of files, and of what belongs together."""
    with pytest.raises(BadBuild, match="larger than"):
        BuiltFiles(tmp_path, most_bytes=2).add(piece("a", b"xxx"))
    few = BuiltFiles(tmp_path, most_bytes=100, most_files=1)
    few.add(piece("b"))
    with pytest.raises(BadBuild, match="more than 1 files"):
        few.add(piece("c"))
    with pytest.raises(OSError, match="room for 0 MiB"):
        BuiltFiles(tmp_path, most_bytes=100, room=-5).add(piece("f"))
    with pytest.raises(BadBuild, match="more than 3 folders"):
        BuiltFiles(tmp_path, most_bytes=100, most_files=3).add(piece("g/h/i/j"))
    filling = BuiltFiles(tmp_path, most_bytes=100)
    filling.add(piece("k"))
    monkeypatch.setattr(built_files, "disk_left", lambda _: 0)  # by others, meanwhile
    with pytest.raises(OSError, match="room for 0 MiB"):
        filling.add(piece("l"))
    monkeypatch.undo()
    torn = BuiltFiles(tmp_path, most_bytes=100)
    torn.add(piece("d", is_last=False))
    with pytest.raises(BadBuild, match="comes within"):
        torn.add(piece("e"))
    with pytest.raises(BadBuild, match="not whole"):
        torn.finish()
    torn.close()


def test_a_file_does_not_come_twice(tmp_path: Path) -> None:
    """Nor in the place of a folder, or through a file."""
    files = BuiltFiles(tmp_path, most_bytes=100)
    files.add(piece("a/b"))
    for path in ("a/b", "a", "a/b/c"):
        with pytest.raises(OSError, match=r"exists|directory"):
            files.add(piece(path))
