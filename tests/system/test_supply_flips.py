"""One bit of each blob of a signed version is flipped on a real platform: nothing starts, and the file is named."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.system.support.platform import Platform
from tests.system.support.platform import platform as run_platform
from tests.system.test_model_artifacts import blobs
from tests.waiting import wait_until

pytestmark = pytest.mark.system

CODE = """
from pilotlight import App, Artifact

app = App("flipped")


@app.gpu_function(artifacts=[Artifact("weights", "tiny", "models/tiny")], retries=0, forecast=False)
def told() -> str:
    return "{number}"
"""
MODEL = b"\x10\0\0\0\0\0\0\0{}              "
BEGINNINGS = {
    b"\nfrom pilotlight": "app.py", MODEL: "model.safetensors", b'{"payload"': "provenance",
    b'{"$schema"': "bill of materials", b'{"at"': "policy verdict",
}  # fmt: skip
"""Of a blob, and what a node calls it."""
ALL = {*BEGINNINGS.values(), "manifest", "signature of code", "signature of tiny"}


@pytest.fixture
def platform(tmp_path: Path) -> Iterator[Platform]:
    with run_platform(tmp_path, "--cpu-slots", "2", "--blanks", "0") as running:
        yield running


def deploy_signed(platform: Platform, folder: Path, number: int, *words: str) -> tuple[str, dict[str, Path]]:
    """Deploy what no node has seen; its name, and its blobs by what they are."""
    before = blobs(platform).keys()
    (folder / "models" / "tiny").mkdir(parents=True, exist_ok=True)
    (folder / "models" / "tiny" / "model.safetensors").write_bytes(MODEL + str(number).encode())
    (folder / "app.py").write_text(CODE.format(number=number))
    words = (str(folder / "app.py"), "--sign", str(folder / "release.key"), "--json", *words)
    (deployed,) = json.loads(platform.cli("deploy", *words).stdout)
    made = [path for digest, path in blobs(platform).items() if digest not in before]
    return deployed["functions"][0]["version"], {kind_of(path.read_bytes()): path for path in made}


def kind_of(blob: bytes) -> str:
    for beginning, kind in BEGINNINGS.items():
        if blob.startswith(beginning):
            return kind
    if b"manifest" in blob[:16]:
        return "manifest"
    if blob.startswith(b'{"mediaType"'):
        payload = base64.b64decode(json.loads(blob)["dsseEnvelope"]["payload"])
        return "signature of code" if b"app.py" in payload else "signature of tiny"
    return "else"


def agents_logs(platform: Platform) -> str:
    return "".join(path.read_text(errors="replace") for path in (platform.state / "logs").glob("*agent*"))


@pytest.mark.long
@pytest.mark.timeout(1_200)
def test_one_flipped_bit_of_any_blob_of_a_version_stops_its_start(platform: Platform, tmp_path: Path) -> None:
    """Code, model, manifest, and each document: callers are told that the operator has to mend it, and the node's log
    names what is wrong. Put right, it runs. The key that signs is not among what is stored.
    """
    folder = tmp_path / "work"
    folder.mkdir()
    platform.cli("trust", "new", str(folder / "release.key"))
    platform.cli("trust", "add", "release", str(folder / "release.key.pub"))
    _, first = deploy_signed(platform, folder, 0)
    assert first.keys() >= ALL
    assert not any(b"PRIVATE KEY" in path.read_bytes() for path in blobs(platform).values())
    assert platform.output("flipped.told") == "0"
    for number, kind in enumerate(sorted(ALL), start=1):
        ref, made = deploy_signed(platform, folder, number, "--no-traffic")
        assert made.keys() == ALL
        path, said = made[kind], len(agents_logs(platform))
        whole = path.read_bytes()
        path.unlink()
        path.write_bytes(bytes([whole[0] ^ 1]) + whole[1:])
        answer = platform.call(ref)
        assert (answer.status_code, answer.json()["code"]) == (503, "misconfigured"), (kind, answer.text)
        assert kind in agents_logs(platform)[said:], agents_logs(platform)[said:]
        path.unlink()
        path.write_bytes(whole)
    wait_until(lambda: platform.call(ref).status_code == 200, "what is put right runs")


@pytest.mark.long
def test_what_is_changed_in_the_store_later_changes_nothing_that_runs(platform: Platform, tmp_path: Path) -> None:
    """The node has a copy of its own, which it has verified, also where both are on one disk."""
    file = tmp_path / "app.py"
    file.write_text(CODE.replace('artifacts=[Artifact("weights", "tiny", "models/tiny")], ', "").format(number="7"))
    platform.deploy(file)
    assert platform.output("flipped.told") == "7"
    (path,) = [path for path in blobs(platform).values() if path.read_bytes().startswith(b"\nfrom pilotlight")]
    mode = path.stat().st_mode
    path.chmod(0o644)
    with path.open("r+b") as stored:  # the same file, not another one of its name
        stored.write(path.read_bytes().replace(b'"7"', b'"8"'))
    path.chmod(mode)
    before = platform.container_of("flipped", "told")["id"]
    platform.cli("container", "stop", before)
    wait_until(lambda: before not in {one["id"] for one in platform.containers("flipped")}, "it is gone")
    assert platform.output("flipped.told") == "7"
