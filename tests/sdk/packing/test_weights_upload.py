"""Pushing weights: what is packed, and that only what is missing is sent."""

from __future__ import annotations

import hashlib
import io
import json
import zipfile
from pathlib import Path
from typing import Any

import pytest

from pilotlight.client import default_client, shared_portal
from pilotlight.definitions.errors import Conflict
from pilotlight.packing import weights_upload
from pilotlight.packing.walk import PackError
from pilotlight.packing.weights_upload import pack_weights, push_weights
from tests.sdk.scripted import Answer, ScriptedPlatform, answer

PUSHED = {"name": "m", "digest": "a" * 64, "size": 9, "missing": [], "unchanged": False}


def digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def test_files_are_packed_in_parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In order; an empty file is a part of none; ignored files are left out; progress counts what is read."""
    monkeypatch.setattr(weights_upload, "WEIGHTS_PART_BYTES", 4)
    for name, content in (("model", b"aaaabbbbc"), ("none", b""), (".pilotlightignore", b"left\n"), ("left", b"x")):
        (tmp_path / name).write_bytes(content)
    told: list[tuple[int, int]] = []

    packed = pack_weights(tmp_path, progress=lambda done, total: told.append((done, total)))

    assert [(part.path, part.size) for part in packed.parts] == [("model", 4), ("model", 4), ("model", 1), ("none", 0)]
    assert [part.sha256 for part in packed.parts] == [digest(data) for data in (b"aaaa", b"bbbb", b"c", b"")]
    assert (packed.files, packed.size, told[-1]) == (2, 9, (9, 9))


def torch_file() -> bytes:
    """As torch.save writes it."""
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as archive:
        archive.writestr("model/data.pkl", b"\x80\x02.")
    return made.getvalue()


@pytest.mark.parametrize(
    ("name", "content"),
    [("m.pt", b"x"), ("m.bin", b"x"), ("m.CKPT", b"x"), ("innocent", b"\x80\x04."), ("innocent.dat", torch_file())],
)
def test_pickles_are_refused_unless_they_are_allowed(tmp_path: Path, name: str, content: bytes) -> None:
    """By their names, and by how they begin."""
    (tmp_path / name).write_bytes(content)
    with pytest.raises(PackError, match="is a pickle, which can run code"):
        pack_weights(tmp_path)
    assert pack_weights(tmp_path, allow_pickles=True).files == 1


def safetensors(size: int, *, end: int | None = None) -> bytes:
    header = json.dumps({"w": {"dtype": "U8", "shape": [size], "data_offsets": [0, size if end is None else end]}})
    return len(header).to_bytes(8, "little") + header.encode() + bytes(size)


def test_a_whole_safetensors_file_is_taken(tmp_path: Path) -> None:
    """Its header says where its last tensor ends."""
    (tmp_path / "m.safetensors").write_bytes(safetensors(3))
    assert pack_weights(tmp_path).files == 1


CUT = (b"", b"x", safetensors(3)[:-1], safetensors(3, end=4), safetensors(3) + b"x", b"\xff" * 8 + b"{}")


@pytest.mark.parametrize("content", [*CUT, b"\2" + bytes(7) + b"[]"])
def test_one_that_was_cut_off_is_refused(tmp_path: Path, content: bytes) -> None:
    """Before anything is sent."""
    (tmp_path / "m.safetensors").write_bytes(content)
    with pytest.raises(PackError, match=r"'m\.safetensors' is no safetensors file, or was cut off"):
        pack_weights(tmp_path)


def test_what_is_no_folder_of_files_is_refused(tmp_path: Path) -> None:
    """An empty one, a file, and links."""
    with pytest.raises(PackError, match="has no file"):
        pack_weights(tmp_path)
    (tmp_path / "m").write_text("x")
    with pytest.raises(PackError, match="is no folder"):
        pack_weights(tmp_path / "m")
    (tmp_path / "link").symlink_to("/etc/passwd")
    with pytest.raises(PackError, match="is a symlink"):
        pack_weights(tmp_path)


def test_only_what_is_missing_is_sent(platform: ScriptedPlatform, tmp_path: Path) -> None:
    """Then it is asked again; who watches hears how much that is."""
    (tmp_path / "a").write_bytes(b"there")
    (tmp_path / "b").write_bytes(b"missing")
    asked: list[Any] = []

    def push(request: Any) -> Answer:
        asked.append(request.json)
        return answer(PUSHED | {"missing": [digest(b"missing")] if len(asked) == 1 else []})

    platform.does("PUT", "/v1/weights/m", push)
    platform.will("PUT", f"/v1/blobs/{digest(b'missing')}", answer({}))
    told: list[tuple[int, int]] = []

    packed = pack_weights(tmp_path)
    work = push_weights(default_client().weights, "m", packed, told=lambda *of: told.append(of))
    pushed = shared_portal().run(work)

    assert (pushed.digest, told, len(asked)) == ("a" * 64, [(1, 7)], 2)
    assert asked[0]["parts"] == [
        {"path": "a", "sha256": digest(b"there"), "size": 5}, {"path": "b", "sha256": digest(b"missing"), "size": 7},
    ]  # fmt: skip
    assert not platform.asked(f"/v1/blobs/{digest(b'there')}")


def test_parts_that_are_missing_for_ever_are_given_up(platform: ScriptedPlatform, tmp_path: Path) -> None:
    """As in a deploy."""
    (tmp_path / "a").write_bytes(b"x")
    platform.will("PUT", "/v1/weights/m", answer(PUSHED | {"missing": [digest(b"x")]}))
    platform.will("PUT", f"/v1/blobs/{digest(b'x')}", answer({}))
    with pytest.raises(Conflict, match="missing again and again"):
        shared_portal().run(push_weights(default_client().weights, "m", pack_weights(tmp_path)))
