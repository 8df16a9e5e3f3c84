"""What is packed, and what is refused."""

from __future__ import annotations

import hashlib
import os
import socket
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pilotlight.packing import Bundle, DeployTarget, make_bundle
from pilotlight.packing.walk import PackError
from pilotlight_core.model.spec import MAX_BUNDLE_BYTES, MAX_BUNDLE_FILES


def bundle(folder: Path, root: Path | None = None) -> Bundle:
    return make_bundle(DeployTarget(module="app", root=root or folder, folder=folder))


def write(folder: Path, *names: str) -> Path:
    for name in names:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name)
    return folder


def paths(packed: Bundle) -> list[str]:
    return [entry.path for entry in packed.files]


def test_files_are_packed_by_content_in_a_fixed_order(tmp_path: Path) -> None:
    """Digest and size are those of the bytes."""
    packed = bundle(write(tmp_path, "b.py", "a/z.txt", "a/b/c.json", "A.md"))
    assert paths(packed) == ["A.md", "a/b/c.json", "a/z.txt", "b.py"]
    assert packed.files[0].sha256 == hashlib.sha256(b"A.md").hexdigest()
    assert packed.paths[packed.files[3].sha256] == tmp_path / "b.py"
    assert packed.size == sum(len(path) for path in paths(packed))


def test_what_nobody_wants_stays(tmp_path: Path) -> None:
    """Caches, environments, version control, secrets."""
    write(
        tmp_path, "app.py", ".git/config", "__pycache__/app.cpython-311.pyc", "x.pyc", ".venv/bin/python", ".env",
        ".env.local", "node_modules/a/b.js", "pkg/__pycache__/y.pyc", ".pilotlight/state", ".gitignore",
    )  # fmt: skip
    assert paths(bundle(tmp_path)) == [".gitignore", "app.py"]


def test_the_state_of_a_platform_is_nobodys_code(tmp_path: Path) -> None:
    """Whatever its folder is called: it has the keys that deploys are signed with."""
    write(tmp_path, "app.py", "state/up.lock", "state/keys/manifest_ed25519", "state/nats/x", "stately/up.py")
    assert paths(bundle(tmp_path)) == ["app.py", "stately/up.py"]


def test_the_ignore_file_speaks_gitignore(tmp_path: Path) -> None:
    """With anchors, folders, wildcards and exceptions; it has the last word, and is not packed itself."""
    write(tmp_path, "app.py", "data/a.bin", "data/keep.bin", "notes.md", "deep/notes.md", "build/x", ".env.example")
    (tmp_path / ".pilotlightignore").write_text("data/*\n!data/keep.bin\n/notes.md\nbuild/\n!.env.example\n# comment\n")
    assert paths(bundle(tmp_path)) == [".env.example", "app.py", "data/keep.bin", "deep/notes.md"]


def test_a_package_is_packed_below_its_root(tmp_path: Path) -> None:
    """So that it can be imported by its name; its neighbours stay."""
    write(tmp_path, "pkg/__init__.py", "pkg/app.py", "other/x.py")
    assert paths(bundle(tmp_path / "pkg", tmp_path)) == ["pkg/__init__.py", "pkg/app.py"]


def test_what_must_not_travel_is_refused_by_name(tmp_path: Path) -> None:
    """Unless it is ignored."""
    (write(tmp_path / "link", "app.py") / "weights").symlink_to("/etc")
    (write(tmp_path / "pickle", "app.py") / "model.PKL").touch()
    os.mkfifo(write(tmp_path / "pipe", "app.py") / "queue")
    write(tmp_path / "name", "bad\nname.txt")
    write(tmp_path / "back", "back\\slash.txt")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(write(tmp_path / "sock", "app.py") / "s"))
        for folder, message in (
            ("link", "'weights' is a symlink"), ("pickle", "'model.PKL' is a pickle"), ("pipe", "neither a file"),
            ("name", "cannot travel"), ("back", "cannot travel"), ("sock", "neither a file"),
        ):  # fmt: skip
            with pytest.raises(PackError, match=message):
                bundle(tmp_path / folder)
    (tmp_path / "link" / ".pilotlightignore").write_text("weights\n")
    assert paths(bundle(tmp_path / "link")) == ["app.py"]


def test_too_large_names_the_largest(tmp_path: Path) -> None:
    """Before anything is read: these files are holes."""
    write(tmp_path, "app.py")
    with (tmp_path / "weights.bin").open("wb") as file:
        file.truncate(MAX_BUNDLE_BYTES)
    with pytest.raises(
        PackError, match=r"200\.0 MB of a bundle. The largest files: weights\.bin \(200\.0 MB\), app\.py"
    ):
        bundle(tmp_path)


def test_too_many_names_the_fullest_folder(tmp_path: Path) -> None:
    """Counting stops there."""
    (tmp_path / "many").mkdir()
    for number in range(MAX_BUNDLE_FILES + 1):
        os.mknod(tmp_path / "many" / str(number))
    with pytest.raises(PackError, match=r"10000 files of a bundle. The fullest folders: many/"):
        bundle(tmp_path)


def test_an_unreadable_rule_is_said(tmp_path: Path) -> None:
    """Not skipped."""
    (write(tmp_path, "app.py") / ".pilotlightignore").write_bytes(b"\xff\xfe")
    with pytest.raises(PackError, match="cannot be read"):
        bundle(tmp_path)


NAMES = st.text("abc.", min_size=1, max_size=4).filter(lambda name: name.strip("."))


@given(files=st.dictionaries(st.lists(NAMES, min_size=1, max_size=3).map("/".join), st.binary(max_size=9), max_size=6))
def test_the_same_files_give_the_same_bundle(files: dict[str, bytes], tmp_path_factory: pytest.TempPathFactory) -> None:
    """In whatever order they were written."""
    packed = []
    for order in (list(files), list(reversed(files))):
        folder = tmp_path_factory.mktemp("tree")
        for name in order:
            path = folder / name
            if not path.is_dir() and not any(parent.is_file() for parent in path.parents):
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(files[name])
        packed.append(bundle(folder))
    if all(not other.startswith(f"{name}/") for name in files for other in files):
        assert packed[0].files == packed[1].files
        assert paths(packed[0]) == sorted(files)
