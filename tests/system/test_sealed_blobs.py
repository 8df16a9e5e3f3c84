"""A platform that seals its blobs: everything works as before, and whoever reads the store reads nothing."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import boto3
import pytest

from pilotlight_core.host.blobs.blob_port import SHA256
from pilotlight_core.host.blobs.blob_sealing import SEALED_NAME
from pilotlight_core.model.versions.artifacts import PART_BYTES
from tests.system.support.platform import Platform
from tests.system.support.platform import platform as run_platform
from tests.system.test_model_artifacts import LAST, write
from tests.waiting import wait_until

pytestmark = pytest.mark.system

CANARY = "canary-5f3c9a17-that-nobody-sings"
CODE = f'''
from pilotlight import App

app = App("sealed")


@app.gpu_function(idempotent=True)
def told(text: str) -> str:
    """{CANARY} in code."""
    return text + " was answered"
'''
MODEL = hashlib.sha256(bytes(PART_BYTES) + LAST).hexdigest()
OPTIONS = ("--cpu-slots", "3", "--blanks", "1")


def deploy_app(running: Platform, folder: Path) -> None:
    (folder / "sealed_app.py").write_text(CODE)
    running.deploy(folder / "sealed_app.py")


def job(running: Platform, text: str) -> str:
    """What a job with a large input comes to."""
    body = {"input": {"text": text}}
    sent = running.http.post("/v1/functions/sealed.told/calls", json=body, headers={"Prefer": "respond-async"})
    assert sent.status_code == 202, sent.text
    return str(ended(running, f"/v1/calls/{sent.json()['id']}")["output"])


def batch(running: Platform, folder: Path) -> list[str]:
    """What a batch of two comes to."""
    rows = ({"custom_id": f"row-{number}", "input": {"text": f"{CANARY} {number}"}} for number in range(2))
    (folder / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    made = json.loads(running.cli("batch", "submit", "sealed.told", str(folder / "rows.jsonl"), "--json").stdout)
    path = f"/v1/batches/{made['id']}"
    ended(running, path)
    lines = running.http.get(f"{path}/results").text.splitlines()
    return sorted(json.loads(line)["output"] for line in lines)


def ended(running: Platform, path: str) -> dict[str, Any]:
    def look() -> dict[str, Any] | None:
        found: dict[str, Any] = running.http.get(path).json()
        return found if found.get("state") in ("succeeded", "failed", "completed", "cancelled") else None

    return wait_until(look, f"{path} ends", 90.0)


def in_folder(store: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in store.rglob("*") if path.is_file() and path.name != "store-id"}


def check_sealed(stored: dict[str, bytes]) -> None:
    assert len(stored) >= 4
    assert [name for name in stored if not SEALED_NAME.fullmatch(name)] == []
    assert [name for name, data in stored.items() if CANARY.encode() in data or b"sealed" in data[64:]] == []


def test_what_is_stored_is_sealed_and_works(tmp_path: Path) -> None:
    """Code and a model, a job's input and result, a batch's: by digest, as before; after a kill as well."""
    text = CANARY + "x" * 200_000
    with run_platform(tmp_path, *OPTIONS, "--encrypt-blobs") as running:
        deploy_app(running, tmp_path)
        running.deploy(write(tmp_path / "app", "linked"))
        assert running.output("sealed.told", text="it") == "it was answered"
        assert running.output("linked.told")["model"] == MODEL
        assert job(running, text) == f"{text} was answered"
        assert batch(running, tmp_path) == [f"{CANARY} {number} was answered" for number in range(2)]
        running.deploy(tmp_path / "sealed_app.py")
        for name in ("gateway", "duties", "agent"):
            running.kill(name)
        wait_until(running.is_ready, "the gateway is back", 60.0)
        assert job(running, text + "again") == f"{text}again was answered"
        check_sealed(in_folder(running.state / "blobs"))

    (tmp_path / "state" / "keys" / "secrets_aes256").rename(tmp_path / "kept")
    refused = (tmp_path / "state" / "logs" / "gateway.log").stat().st_size
    with (
        pytest.raises(AssertionError),
        run_platform(tmp_path, *OPTIONS, "--encrypt-blobs"),
    ):
        pass
    said = (tmp_path / "state" / "logs" / "gateway.log").read_bytes()[refused:].decode()
    assert "--encrypt-blobs needs the platform's key: there is no key of secrets" in said


@pytest.mark.variant
def test_a_running_platform_switches_it_on_and_off(tmp_path: Path) -> None:
    """What was stored before is read, whichever way."""
    with run_platform(tmp_path, *OPTIONS) as running:
        deploy_app(running, tmp_path)
        assert running.output("sealed.told", text="clear") == "clear was answered"
        assert all(SHA256.fullmatch(name) for name in in_folder(running.state / "blobs"))
    with run_platform(tmp_path, *OPTIONS, "--encrypt-blobs") as running:
        assert running.output("sealed.told", text="still") == "still was answered"
        assert job(running, CANARY + "x" * 100_000).endswith(" was answered")
        running.deploy(write(tmp_path / "app", "linked"))
        store = running.state / "blobs"
        wait_until(lambda: all(map(SEALED_NAME.fullmatch, in_folder(store))), "what lay in clear is sealed", 60.0)
        check_sealed(in_folder(store))
        running.kill("agent")
        wait_until(lambda: running.call("sealed.told", text="sealed").status_code == 200, "its node reads it", 60.0)
    with run_platform(tmp_path, *OPTIONS) as running:
        assert running.output("linked.told")["model"] == MODEL
        assert running.output("sealed.told", text="off") == "off was answered"


def test_nodes_without_access_open_what_they_run(tmp_path: Path, s3_endpoint: str) -> None:
    """Over links, with the keys of blobs that they were told to run."""
    store = f"s3://blobs/{tmp_path.name}?endpoint={s3_endpoint}"
    with run_platform(tmp_path, *OPTIONS, "--blob-url", store, "--encrypt-blobs") as running:
        deploy_app(running, tmp_path)
        assert running.output("sealed.told", text="linked") == "linked was answered"
        assert job(running, CANARY + "x" * 100_000).endswith(" was answered")

    client = boto3.client(
        "s3", endpoint_url=s3_endpoint, region_name="us-east-1", aws_access_key_id="testing",
        aws_secret_access_key="testing",
    )  # fmt: skip
    keys = [one["Key"] for one in client.list_objects_v2(Bucket="blobs", Prefix=f"{tmp_path.name}/")["Contents"]]
    stored = {key.rpartition("/")[2]: client.get_object(Bucket="blobs", Key=key)["Body"].read() for key in keys}
    stored.pop("store-id")
    check_sealed(stored | {name * 12: b"" for name in ("a" * 8, "b" * 8)})
