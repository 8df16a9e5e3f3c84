"""Artifacts of an app are packed in parts, by content."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from pilotlight.definitions.artifact_options import Artifact
from pilotlight.definitions.errors import Misuse
from pilotlight.packing import find_target, load_apps, make_bundle, pack_artifacts, paths_of_artifacts
from pilotlight.packing import packed_artifacts as packing
from pilotlight.packing.load import LoadedApp, LoadedFunction
from pilotlight.packing.walk import PackError
from tests.builders.specs import function_spec
from tests.sdk.packing.folders import write


def function(folder: Path, *artifacts: Artifact, name: str = "f") -> dict[str, LoadedFunction]:
    return {name: LoadedFunction(spec=function_spec(name), artifacts=artifacts, folder=folder)}


def digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def test_a_large_file_is_packed_in_parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each as long as may be, the last as it comes; equal ones are one content. An empty file is a part of none."""
    monkeypatch.setattr(packing, "PART_BYTES", 4)
    for name, content in (("model", b"aaaabbbbaaaac"), ("even", b"aaaabbbb"), ("none", b""), ("sub/x", b"x")):
        (tmp_path / "tiny" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "tiny" / name).write_bytes(content)

    packed = pack_artifacts(function(tmp_path, Artifact("weights", "tiny", "tiny")))

    (tiny,) = packed.entries
    assert [(part.path, part.size) for part in tiny.parts] == [
        ("even", 4), ("even", 4), ("model", 4), ("model", 4), ("model", 4), ("model", 1), ("none", 0), ("sub/x", 1),
    ]  # fmt: skip
    assert [part.sha256 for part in tiny.parts[2:6]] == [digest(one) for one in (b"aaaa", b"bbbb", b"aaaa", b"c")]
    last = packed.parts[digest(b"c")]
    assert (last.path.name, last.start, last.size, last.whole) == ("model", 12, 1, 13)
    assert packed.names == {"f": ("tiny",)}


def test_a_file_is_an_artifact_too(tmp_path: Path) -> None:
    """Under its own name; it may lie elsewhere, and functions may share it."""
    write(tmp_path, "there/model.bin")
    (tmp_path / "app").mkdir()
    one = function(tmp_path / "app", Artifact("weights", "tiny", "../there/model.bin"))
    two = function(tmp_path / "app", Artifact("weights", "tiny", str(tmp_path / "there" / "model.bin")), name="g")

    packed = pack_artifacts(one | two | function(tmp_path, name="h"))

    assert [part.path for part in packed.entries[0].parts] == ["model.bin"]
    assert packed.names == {"f": ("tiny",), "g": ("tiny",), "h": ()}
    assert paths_of_artifacts(
        {name: LoadedApp(base="default", functions=one) for name, one in (("a", one), ("b", two))}
    ) == {tmp_path / "there" / "model.bin"}


@pytest.mark.parametrize(
    ("files", "path", "why"),
    [
        ((), "tiny", "The artifact 'tiny': there is no file or folder"),
        (("tiny/.env",), "tiny", "is empty"),
        (("tiny/model.pkl",), "tiny", "The artifact 'tiny': 'model.pkl' is a pickle"),
        (("model.pkl",), "model.pkl", "'model.pkl' is a pickle"),
    ],
)
def test_what_cannot_be_packed_is_named(tmp_path: Path, files: tuple[str, ...], path: str, why: str) -> None:
    """By the rules of bundles."""
    write(tmp_path, *files)
    with pytest.raises(PackError, match=why):
        pack_artifacts(function(tmp_path, Artifact("weights", "tiny", path)))


def test_one_name_is_one_artifact(tmp_path: Path) -> None:
    """Of two functions too."""
    write(tmp_path, "a", "b")
    both = function(tmp_path, Artifact("weights", "tiny", "a"))
    both |= function(tmp_path, Artifact("weights", "tiny", "b"), name="g")
    with pytest.raises(Misuse, match="g has another artifact 'tiny' than a function before it"):
        pack_artifacts(both)


def test_parts_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As the platform bounds them, before anything is sent."""
    monkeypatch.setattr(packing, "MAX_PARTS", 1)
    write(tmp_path, "tiny/a", "tiny/b")
    with pytest.raises(PackError, match="more than 1 files, or parts of 64 MiB"):
        pack_artifacts(function(tmp_path, Artifact("weights", "tiny", "tiny")))


def test_bytes_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Likewise."""
    monkeypatch.setattr(packing, "MAX_ARTIFACT_BYTES", 0)
    write(tmp_path, "tiny/a")
    with pytest.raises(PackError, match="more than 0 GiB"):
        pack_artifacts(function(tmp_path, Artifact("weights", "tiny", "tiny")))


def test_a_bundle_has_no_artifacts(tmp_path: Path) -> None:
    """They are found from the module that names them, which a container imports without them."""
    code = "from pilotlight import App, Artifact\napp = App('a')\n"
    code += "@app.gpu_function(artifacts=[Artifact('weights', 'tiny', 'models/tiny')])\ndef f(): ...\n"
    write(tmp_path, "pkg/models/tiny/model.bin", "pkg/models/words.txt")
    (tmp_path / "pkg" / "__init__.py").touch()
    (tmp_path / "pkg" / "app.py").write_text(code)
    target = find_target("pkg/app.py", within=tmp_path)

    apps = load_apps(target)
    bundle = make_bundle(target, paths_of_artifacts(apps))

    assert [entry.path for entry in bundle.files] == ["pkg/__init__.py", "pkg/app.py", "pkg/models/words.txt"]
    assert pack_artifacts(apps["a"].functions).entries[0].parts[0].path == "model.bin"
