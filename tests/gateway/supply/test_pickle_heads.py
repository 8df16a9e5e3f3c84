"""A pickle is known by its first bytes, whatever it is called."""

from __future__ import annotations

import hashlib
import io
import pickle
import zipfile

import pytest

from pilotlight_core.host.blobs import MemoryBlobs
from pilotlight_core.model.spec import ArtifactEntry, ArtifactKind, ArtifactPart
from pilotlight_gateway.supply.pickle_heads import is_pickle, pickled_files


def torch_file() -> bytes:
    """As torch.save begins one."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("archive/data.pkl", b"")
    return buffer.getvalue()


@pytest.mark.parametrize(
    ("head", "found"),
    [
        *((pickle.dumps({"a": 1}, protocol=number), True) for number in range(2, 6)),
        (torch_file(), True),
        (b"PK\x03\x04 a plain archive", False),
        ((10).to_bytes(8, "little") + b'{"a": {}}', False),
        (b"", False),
        (b"\x80", False),
        (b"\x80\x09", False),
    ],
)
def test_first_bytes_tell(head: bytes, found: bool) -> None:
    """Of protocols with a header, and of torch's archives; safetensors begin with a length."""
    assert is_pickle(head) is found


async def test_each_file_is_looked_at_once() -> None:
    """Its first part alone; what is not stored yet is nothing."""
    blobs = MemoryBlobs()
    content = pickle.dumps([1, 2])
    digest = hashlib.sha256(content).hexdigest()
    await blobs.put("acme", digest, content)
    parts = (ArtifactPart("a.safetensors", digest, 1), ArtifactPart("a.safetensors", "0" * 64, 1))
    entry = ArtifactEntry(kind=ArtifactKind.WEIGHTS, name="tiny", parts=(*parts, ArtifactPart("b", "1" * 64, 1)))

    assert await pickled_files(blobs, "acme", [entry]) == {"tiny/a.safetensors"}
