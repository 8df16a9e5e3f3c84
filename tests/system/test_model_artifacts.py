"""The weights of a function, from a file of its deployer's to /models in its containers."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

from pilotlight_core.model.versions.artifacts import PART_BYTES
from tests.system.support.platform import Platform

SOURCE = """
import hashlib, os
from pilotlight import App, Artifact

app = App("{app}")


@app.gpu_function(artifacts=[Artifact("weights", "tiny", "models/tiny"), Artifact("sbom", "parts", "sbom.json")])
def told() -> dict[str, object]:
    folder = os.environ["PILOTLIGHT_MODELS"]
    with open(f"{{folder}}/tiny/model.bin", "rb") as model:
        digest = hashlib.file_digest(model, "sha256").hexdigest()
    beside = sorted(os.listdir(os.path.dirname(os.path.abspath(__file__))))
    return {{"folder": folder, "model": digest, "names": sorted(os.listdir(folder)), "beside": beside, "say": "{say}"}}


@app.gpu_function()
def plain() -> list[str]:
    return os.listdir(os.environ["PILOTLIGHT_MODELS"])
"""
LAST = b"the last part"


def write(folder: Path, app: str, say: str = "one", content: bytes = bytes(PART_BYTES) + LAST) -> Path:
    """An app with a model of these bytes, by default of two parts."""
    (folder / "models" / "tiny").mkdir(parents=True, exist_ok=True)
    (folder / "models" / "tiny" / "model.bin").write_bytes(content)
    (folder / "sbom.json").write_text("{}")
    path = folder / "app.py"
    path.write_text(SOURCE.format(app=app, say=say))
    return path


def blobs(platform: Platform) -> dict[str, Path]:
    """What the store holds, by digest."""
    return {path.name: path for path in (platform.state / "blobs").glob("*/*/*")}


def shown(platform: Platform, app: str) -> dict[str, Any]:
    """By function, what `GET /v1/apps/{app}` says of its artifacts."""
    functions = platform.http.get(f"/v1/apps/{app}").json()["functions"]
    return {function["name"]: function["artifacts"] for function in functions}


def test_a_function_reads_its_weights(platform: Platform, tmp_path: Path) -> None:
    """A file of two parts is one again; the code has a folder of its own, and another function has no models."""
    said = platform.cli("deploy", str(write(tmp_path, "weighty")))

    told = platform.output("weighty.told")

    assert told["model"] == hashlib.sha256(bytes(PART_BYTES) + LAST).hexdigest()
    assert (told["names"], told["beside"]) == (["parts", "tiny"], ["app.py"])
    assert platform.output("weighty.plain") == []
    assert "with weights tiny: 1 file, 67.1 MB" in said.stderr
    assert shown(platform, "weighty") == {
        "told": [
            {"kind": "sbom", "name": "parts", "files": 1, "size": 2},
            {"kind": "weights", "name": "tiny", "files": 1, "size": PART_BYTES + len(LAST)},
        ],
        "plain": [],
    }
    platform.http.delete("/v1/apps/weighty")


def test_what_is_there_is_neither_sent_nor_fetched_again(platform: Platform, tmp_path: Path) -> None:
    """Another version of the code, and its containers, find the weights where they are, though the store loses them."""
    path = write(tmp_path, "kept")
    platform.deploy(path)
    first = platform.output("kept.told")
    before = blobs(platform)

    platform.deploy(write(tmp_path, "kept", "two"))
    new = {digest: found for digest, found in blobs(platform).items() if digest not in before}
    weights = {hashlib.sha256(part).hexdigest() for part in (bytes(PART_BYTES), LAST)}
    for digest in weights:
        before[digest].unlink()
    second = platform.output("kept.told")

    # The code, and of two functions the manifest, the bill of materials and the provenance, and one verdict.
    assert hashlib.sha256(path.read_bytes()).hexdigest() in new
    assert len(new) == 8
    assert weights <= before.keys()
    assert {**first, "say": "two", "folder": ""} == {**second, "folder": ""}
    platform.http.delete("/v1/apps/kept")


def test_a_run_has_them_too(platform: Platform, tmp_path: Path) -> None:
    """Beside what is deployed; a function that names none is run without them."""
    path = write(tmp_path, "ran", content=LAST)

    ran = json.loads(platform.cli("run", f"{path}::told").stdout)

    assert ran["model"] == hashlib.sha256(LAST).hexdigest()
    assert json.loads(platform.cli("run", f"{path}::plain").stdout) == []


@pytest.mark.parametrize("size", [PART_BYTES + 20, 20])
def test_a_damaged_part_is_refused_by_name(platform: Platform, tmp_path: Path, size: int) -> None:
    """As the platform's fault, not the function's: no container runs with other weights."""
    content = b"x" * size
    platform.deploy(write(tmp_path, f"broken{size}", content=content))
    last = content[PART_BYTES:] or content
    part = blobs(platform)[hashlib.sha256(last).hexdigest()]
    part.chmod(0o644)
    part.write_bytes(b"y" * len(last))

    refused = platform.call(f"broken{size}.told")

    assert (refused.status_code, refused.json()["code"]) == (503, "misconfigured")
    named = f"{'part 2 of 2 of ' if size > PART_BYTES else ''}tiny/model.bin in the blob store"
    assert named in (platform.state / "logs" / "agent.log").read_text()
    platform.http.delete(f"/v1/apps/broken{size}")
