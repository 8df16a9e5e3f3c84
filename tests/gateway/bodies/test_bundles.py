"""What a bundle may hold, and under which names."""

from __future__ import annotations

import posixpath

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pilotlight_core.model.errors import BadInput
from pilotlight_core.model.spec import MAX_BUNDLE_BYTES, MAX_BUNDLE_FILES, FileEntry
from pilotlight_gateway.bodies.bundles import check_files, check_path
from tests.gateway.world import entry

PARTS = st.text(alphabet="ab.\\/\0\n é:~", max_size=8)


@given(st.lists(PARTS, max_size=5).map("/".join))
def test_a_path_that_passes_stays_below_the_root(path: str) -> None:
    """Whatever is accepted is normal, relative, and does not climb."""
    try:
        check_path(path, "path")
    except BadInput:
        return

    assert posixpath.normpath(path) == path
    assert not posixpath.isabs(path)
    assert ".." not in path.split("/")
    assert not set(path) & set("\\\0\n")


@pytest.mark.parametrize(
    "path",
    ["", "/", "/etc/passwd", "../x", "a/../b", "a//b", "./a", "a/", "a\\b", "a\0b", "a\nb", "a\x7fb", "x" * 513,
     "a/" + "é" * 128, "\ud800", "a\u2028b",
     "gnp\u202epy.app", "a\u2066b", "a\u200fb", "a\U000e0041", "a\x9bb", "a\tb"],
)  # fmt: skip
def test_a_path_that_could_lead_elsewhere_is_refused(path: str) -> None:
    """The error names the entry."""
    with pytest.raises(BadInput) as caught:
        check_files([FileEntry(path=path, sha256="0" * 64, size=1)])

    assert caught.value.more["field"] == "files.0.path"


@pytest.mark.parametrize(
    "path", ["main.py", "pkg/__init__.py", "a b.txt", "weights/model.safetensors", "…/é.json", "世界/שלום.txt"]
)
def test_ordinary_paths_pass(path: str) -> None:
    """Nothing that people really have is refused."""
    check_path(path, "path")


@pytest.mark.parametrize(
    ("files", "said"),
    [
        ((), "1 to 10000 files"),
        ((entry(b"a", "a.pkl"),), "pickle"),
        ((entry(b"a", "A.JOBLIB"),), "pickle"),
        ((entry(b"a", "m.pickle"),), "pickle"),
        ((entry(b"a", "a.py"), entry(b"b", "a.py")), "same name"),
        ((entry(b"a", "Main.py"), entry(b"b", "main.PY")), "same name"),
        ((entry(b"a", "stra\u00dfe"), entry(b"b", "STRASSE")), "same name"),
        ((entry(b"a", "e\u0301"), entry(b"b", "\u00e9")), "same name"),
        ((entry(b"a", "lib"), entry(b"b", "lib/x.py")), "below a file"),
        ((FileEntry(path="a", sha256="A" * 64, size=1),), "hexadecimal"),
        ((FileEntry(path="a", sha256="0" * 63, size=1),), "hexadecimal"),
        ((FileEntry(path="a", sha256="0" * 64, size=-1),), "bytes"),
        ((FileEntry(path="a", sha256="0" * 64, size=MAX_BUNDLE_BYTES + 1),), "bytes"),
        (tuple(FileEntry(path=f"f{i}", sha256=f"{i:064x}", size=MAX_BUNDLE_BYTES // 2) for i in range(3)), "in all"),
        ((FileEntry(path="a", sha256="0" * 64, size=1), FileEntry(path="b", sha256="0" * 64, size=2)), "another size"),
    ],
)  # fmt: skip
def test_a_bundle_that_cannot_be_laid_out_is_refused(files: tuple[FileEntry, ...], said: str) -> None:
    """Each rule says what is wrong."""
    with pytest.raises(BadInput, match=said):
        check_files(files)


def test_there_is_a_limit_to_the_number_of_files() -> None:
    """Ten thousand pass, one more does not."""
    files = [FileEntry(path=f"f{i}", sha256=f"{i:064x}", size=1) for i in range(MAX_BUNDLE_FILES + 1)]
    check_files(files[:-1])
    with pytest.raises(BadInput):
        check_files(files)
