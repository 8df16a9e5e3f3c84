"""What is packed, and what is refused."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pilotlight.packing import Bundle, DeployTarget, make_bundle
from pilotlight.packing.walk import PackError
from pilotlight_core.model.spec import MAX_BUNDLE_BYTES, MAX_BUNDLE_FILES
from tests.sdk.packing.folders import write


def bundle(folder: Path, root: Path | None = None) -> Bundle:
    return make_bundle(DeployTarget(module="app", root=root or folder, folder=folder))


def paths(packed: Bundle) -> list[str]:
    return [entry.path for entry in packed.files]


def test_files_are_packed_by_content_in_a_fixed_order(tmp_path: Path) -> None:
    """Each entry has the digest and size of the file."""
    packed = bundle(write(tmp_path, "b.py", "a/z.txt", "a/b/c.json", "A.md"))
    assert paths(packed) == ["A.md", "a/b/c.json", "a/z.txt", "b.py"]
    assert packed.files[0].sha256 == hashlib.sha256(b"A.md").hexdigest()
    assert packed.paths[packed.files[3].sha256] == tmp_path / "b.py"
    assert packed.size == sum(len(path) for path in paths(packed))


def test_a_package_is_packed_below_its_root(tmp_path: Path) -> None:
    """Paths begin with the package, whose neighbours are left out."""
    write(tmp_path, "pkg/__init__.py", "pkg/app.py", "other/x.py")
    assert paths(bundle(tmp_path / "pkg", tmp_path)) == ["pkg/__init__.py", "pkg/app.py"]


def test_a_bundle_that_is_too_large_names_its_largest_files(tmp_path: Path) -> None:
    """No file is read; these are holes."""
    write(tmp_path, "app.py")
    with (tmp_path / "weights.bin").open("wb") as file:
        file.truncate(MAX_BUNDLE_BYTES)
    with pytest.raises(
        PackError, match=r"200\.0 MB of a bundle. The largest files: weights\.bin \(200\.0 MB\), app\.py"
    ):
        bundle(tmp_path)


def test_a_bundle_of_too_many_files_names_its_fullest_folder(tmp_path: Path) -> None:
    """Counting stops at the bound."""
    (tmp_path / "many").mkdir()
    for number in range(MAX_BUNDLE_FILES + 1):
        os.mknod(tmp_path / "many" / str(number))
    with pytest.raises(PackError, match=r"10000 files of a bundle. The fullest folders: many/"):
        bundle(tmp_path)


NAMES = st.text("abc.", min_size=1, max_size=4).filter(lambda name: name.strip("."))


@given(files=st.dictionaries(st.lists(NAMES, min_size=1, max_size=3).map("/".join), st.binary(max_size=9), max_size=6))
def test_the_same_files_give_the_same_bundle(files: dict[str, bytes], tmp_path_factory: pytest.TempPathFactory) -> None:
    """The order in which they were written does not matter."""
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
