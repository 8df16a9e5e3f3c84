"""Weights, from a folder of a tenant's to `pilotlight.weights` in its containers."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from pilotlight.packing.folder_signing import FolderSigner
from pilotlight_core.model.versions.pushed_weights import WEIGHTS_PART_BYTES
from tests.builders.supply import key_file
from tests.system.support.platform import Platform
from tests.waiting import wait_until

SOURCE = """
import hashlib, os
import pilotlight

app = pilotlight.App("{app}")


@app.gpu_function(weights={weights})
def told() -> dict[str, object]:
    folder = pilotlight.weights("{name}")
    files = sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())
    try:
        open(folder / files[0], "r+b")
        writable = True
    except OSError:
        writable = False
    with open(folder / "model.safetensors", "rb") as model:
        digest = hashlib.file_digest(model, "sha256").hexdigest()
    return {{"folder": str(folder), "files": files, "model": digest, "writable": writable}}
"""


def safetensors(data: bytes) -> bytes:
    """A file of one tensor of these bytes."""
    header = json.dumps({"w": {"dtype": "U8", "shape": [len(data)], "data_offsets": [0, len(data)]}}).encode()
    return len(header).to_bytes(8, "little") + header + data


def folder_of(at: Path, data: bytes) -> Path:
    """A folder with a model of these bytes."""
    (at / "tokens").mkdir(parents=True, exist_ok=True)
    (at / "model.safetensors").write_bytes(safetensors(data))
    (at / "tokens" / "vocab.json").write_text("{}")
    return at


def app_of(at: Path, app: str, name: str, weights: str) -> Path:
    at.mkdir(exist_ok=True)
    path = at / "app.py"
    path.write_text(SOURCE.format(app=app, name=name, weights=weights))
    return path


def push(platform: Platform, name: str, folder: Path, *more: str, key: str = "") -> dict[str, Any]:
    """As `pilotlight weights push` tells."""
    done = platform.cli("weights", "push", name, str(folder), "--json", *more, key=key)
    told: dict[str, Any] = json.loads(done.stdout)
    return told


def blobs(platform: Platform) -> dict[str, Path]:
    """What the store holds, by digest."""
    return {path.name: path for path in (platform.state / "blobs").glob("*/*/[0-9a-f]*")}


def test_a_function_reads_the_weights_that_were_pushed(platform: Platform, tmp_path: Path, stranger_key: str) -> None:
    """Read-only, by name; pinned at the deploy; of nobody else; kept while a function uses them; verified if signed."""
    first = folder_of(tmp_path / "m", b"one")
    signer = FolderSigner.load(key_file(tmp_path / "key"))
    assert platform.http.put("/v1/trusted-keys/weighty", json={"pem": signer.pem}).status_code == 200
    pushed = push(platform, "tiny", first, "--sign", str(tmp_path / "key"))
    assert pushed["signed"]["name"] == "weighty"
    platform.deploy(app_of(tmp_path / "app", "weighty", "tiny", '["tiny"]'))

    told = platform.output("weighty.told")

    assert told["files"] == ["model.safetensors", "tokens/vocab.json"]
    assert told["model"] == hashlib.sha256(safetensors(b"one")).hexdigest()
    assert (told["folder"], told["writable"]) == ("/models/tiny", False)

    statement = platform.http.get("/v1/functions/weighty.told/provenance").json()
    assert b"signature:tiny" in base64.b64decode(statement["payload"])
    platform.http.post("/v1/trusted-keys/weighty/revoke", json={"reason": "stolen"})
    again = platform.cli("deploy", str(tmp_path / "app" / "app.py"), check=False)
    assert "The signature of tiny: its key weighty" in again.stderr
    assert "stolen" in again.stderr

    newer = push(platform, "tiny", folder_of(tmp_path / "m", b"two"))
    assert platform.output("weighty.told")["model"] == told["model"]
    listed = json.loads(platform.cli("weights", "list", "--json").stdout)
    (mine,) = [one for one in listed if one["name"] == "tiny"]
    assert [(one["digest"], one["functions"]) for one in mine["revisions"]] == [
        (pushed["digest"], ["weighty.told"]),
        (newer["digest"], []),
    ]

    refused = platform.cli("weights", "rm", "tiny", check=False)
    assert refused.returncode == 1
    assert "tiny is used by weighty.told: deploy without it" in refused.stderr
    platform.cli("weights", "rm", f"tiny@{newer['digest'][:12]}")
    assert "There are no weights" in platform.cli("weights", "show", "tiny", key=stranger_key, check=False).stderr

    lacking = platform.cli(
        "deploy", str(app_of(tmp_path / "app", "theirs", "tiny", '["tiny"]')), key=stranger_key, check=False
    )
    assert "told: weights: There are no weights tiny" in lacking.stderr
    platform.http.delete("/v1/apps/weighty")
    platform.cli("weights", "rm", "tiny")


def test_a_push_that_is_killed_goes_on_where_it_was(platform: Platform, tmp_path: Path) -> None:
    """Run again it uploads only what is missing."""
    folder = folder_of(tmp_path / "large", os.urandom(7 * WEIGHTS_PART_BYTES))
    words = [sys.executable, "-m", "pilotlight.cli.main", "weights", "push", "large", str(folder)]
    before = set(blobs(platform))
    pushing = subprocess.Popen(words, env=platform.env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def arrived() -> set[str]:
        return set(blobs(platform)) - before

    wait_until(arrived, "a part is stored")
    pushing.send_signal(signal.SIGKILL)
    pushing.wait()
    there = {digest: path.stat().st_mtime_ns for digest, path in blobs(platform).items() if digest not in before}

    again = platform.cli("weights", "push", "large", str(folder))

    assert "large@" in again.stdout
    sent = int(again.stderr.partition("uploading ")[2].split()[0]) if "uploading" in again.stderr else 0
    assert sent <= 9 - len(there)  # eight parts of the model, and the vocabulary
    now = blobs(platform)
    assert there == {digest: now[digest].stat().st_mtime_ns for digest in there}
    assert "Unchanged" in platform.cli("weights", "push", "large", str(folder)).stdout
    platform.cli("weights", "rm", "large")


@pytest.mark.parametrize("suffix", [".bin", ".pt"])
def test_pickles_are_pushed_only_where_the_tenant_says_so(platform: Platform, tmp_path: Path, suffix: str) -> None:
    """By their names; and the list shows them."""
    folder = tmp_path / "old"
    folder.mkdir()
    (folder / f"model{suffix}").write_bytes(b"\x80\x04.")

    refused = platform.cli("weights", "push", "old", str(folder), check=False)
    pushed = push(platform, "old", folder, "--allow-pickle")

    assert "is a pickle, which can run code" in refused.stderr
    shown = json.loads(platform.cli("weights", "show", f"old@{pushed['digest'][:8]}", "--json").stdout)
    assert shown["revision"]["pickles"] == [f"model{suffix}"]
    platform.cli("weights", "rm", "old")


def test_a_damaged_part_is_refused_by_name(platform: Platform, tmp_path: Path) -> None:
    """As the platform's fault: no container runs with other weights."""
    push(platform, "broken", folder_of(tmp_path / "m", b"x" * 20))
    part = blobs(platform)[hashlib.sha256(safetensors(b"x" * 20)).hexdigest()]
    part.chmod(0o644)
    part.write_bytes(b"y" * part.stat().st_size)
    platform.deploy(app_of(tmp_path / "app", "broken-weights", "broken", '["broken"]'))

    refused = platform.call("broken-weights.told")

    assert (refused.status_code, refused.json()["code"]) == (503, "misconfigured")
    assert "broken/model.safetensors in the blob store" in (platform.state / "logs" / "agent.log").read_text()
    platform.http.delete("/v1/apps/broken-weights")
    platform.cli("weights", "rm", "broken")
