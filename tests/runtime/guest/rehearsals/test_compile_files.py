"""What compilers keep in files: laid out, and found again."""

from __future__ import annotations

import os
from pathlib import Path
from types import SimpleNamespace

import pytest

from pilotlight_runtime.guest.rehearsals.compile_files import CompileFiles


def written(folder: Path, **files: str) -> Path:
    for name, text in files.items():
        path = folder / name.replace("__", "/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder


def fresh(files: CompileFiles) -> dict[str, str]:
    return {path: whole.read_text() for path, whole in files.fresh()}


def test_variables_that_a_function_sets_are_its_own(tmp_path: Path) -> None:
    """All others are below one folder."""
    found = CompileFiles("", str(tmp_path)).variables({"TRITON_CACHE_DIR": "/own"})

    assert found == {
        "TORCHINDUCTOR_CACHE_DIR": f"{tmp_path}/inductor",
        "CUDA_CACHE_PATH": f"{tmp_path}/cuda",
    }


def test_only_what_is_new_or_has_changed_is_fresh(tmp_path: Path) -> None:
    """What was laid out is there to be read and written; locks, links and pipes are left out."""
    kept = written(tmp_path / "kept", triton__a="old", cuda__index="old")
    files = CompileFiles(str(kept), str(tmp_path / "own"))
    assert files.lay_out() == 2
    assert fresh(files) == {}

    own = written(tmp_path / "own", cuda__index="newer", inductor__b="b", inductor__b_="c")
    (own / "inductor" / "b_").rename(own / "inductor" / "b.lock")
    (own / "link").symlink_to("/etc/passwd")
    os.mkfifo(own / "pipe")
    assert (own / "triton" / "a").read_text() == "old"
    assert fresh(files) == {"cuda/index": "newer", "inductor/b": "b"}


def test_a_file_whose_name_cannot_travel_ends_no_start(tmp_path: Path) -> None:
    """It is no text, or longer than what agents take; others are handed over."""
    own = written(tmp_path / "own", inductor__b="b")
    (own / "inductor" / os.fsdecode(b"\xff")).write_text("c")
    (deep := own.joinpath(*["d" * 200] * 3)).mkdir(parents=True)
    (deep / "e").write_text("e")

    assert fresh(CompileFiles("", str(own))) == {"inductor/b": "b"}


def test_without_files_there_are_folders_and_nothing_to_hand_over(tmp_path: Path) -> None:
    """Not every compiler makes its own."""
    files = CompileFiles(str(tmp_path / "kept"), str(tmp_path / "own"))

    assert files.lay_out() == 0
    assert fresh(files) == {}
    assert sorted(path.name for path in (tmp_path / "own").iterdir()) == ["cuda", "inductor", "triton"]


def test_what_does_not_fit_is_not_laid_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Half of the room is the function's."""
    kept = written(tmp_path / "kept", triton__a="12345")
    monkeypatch.setattr(os, "statvfs", lambda _: SimpleNamespace(f_bavail=9, f_frsize=1))

    assert CompileFiles(str(kept), str(tmp_path / "own")).lay_out() == 0


def test_files_that_cannot_be_written_are_no_failure(tmp_path: Path) -> None:
    """The start is only slower."""
    kept = written(tmp_path / "kept", triton__a="1")
    (tmp_path / "own").write_text("a file")

    assert CompileFiles(str(kept), str(tmp_path / "own")).lay_out() == 0
