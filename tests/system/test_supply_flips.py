"""One bit of each blob of a signed version is flipped on a real platform: no container starts, and the file is named."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tests.system.support.ledger import rows
from tests.system.support.platform import Platform
from tests.system.support.platform import platform as run_platform
from tests.system.test_model_artifacts import blobs

pytestmark = pytest.mark.system

CODE = """
from pilotlight import App, Artifact

app = App("flipped")


@app.gpu_function(artifacts=[Artifact("weights", "tiny", "models/tiny")], retries=0, forecast=False)
def told() -> str:
    return "{number}"
"""
KINDS = {
    "app.py": "app.py", "model": "model.safetensors", "manifest": "manifest", "statement": "provenance",
    "sbom": "bill of materials", "verdict": "policy verdict", "signature of code": "signature of code",
    "signature of tiny": "signature of tiny",
}  # fmt: skip
"""By blob, what the error names."""
MODEL = b"\x10\0\0\0\0\0\0\0{}              "
PATIENCE_S = 120.0


@pytest.fixture
def platform(tmp_path: Path) -> Iterator[Platform]:
    with run_platform(tmp_path, "--cpu-slots", "2", "--blanks", "0") as running:
        yield running


def deploy_signed(platform: Platform, folder: Path, number: int) -> dict[str, Path]:
    """Deploy what no node has seen; its blobs."""
    before = blobs(platform).keys()
    (folder / "models" / "tiny").mkdir(parents=True, exist_ok=True)
    (folder / "models" / "tiny" / "model.safetensors").write_bytes(MODEL + str(number).encode())
    (folder / "app.py").write_text(CODE.format(number=number))
    platform.cli("deploy", str(folder / "app.py"), "--sign", str(folder / "release.key"))
    return {digest: path for digest, path in blobs(platform).items() if digest not in before}


@pytest.mark.long
@pytest.mark.timeout(1_200)
def test_one_flipped_bit_of_any_blob_of_a_version_stops_its_start(platform: Platform, tmp_path: Path) -> None:
    """Code, model, manifest, and each document; the blob put right, it runs."""
    folder = tmp_path / "work"
    folder.mkdir()
    platform.cli("trust", "new", str(folder / "release.key"))
    platform.cli("trust", "add", "release", str(folder / "release.key.pub"))
    deploy_signed(platform, folder, 0)
    count = 8
    for number in range(count):
        made = deploy_signed(platform, folder, number + 1)
        assert len(made) == count
        digest, path = sorted(made.items())[number]
        whole = path.read_bytes()
        path.write_bytes(bytes([whole[0] ^ 1]) + whole[1:])
        said = platform.call("flipped.told", timeout=PATIENCE_S)
        print(number, digest[:10], whole[:40], said.status_code, said.text[:600])
        path.write_bytes(whole)
    raise AssertionError
