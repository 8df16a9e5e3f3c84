"""Erasing a tenant on a whole platform, while another one works: what is left of it is what the docs say."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.command_line import run_command
from tests.system.support.platform import Platform
from tests.system.support.platform import platform as run_platform
from tests.waiting import wait_until

pytestmark = pytest.mark.system

CANARY = "canary-7d21b0-that-nobody-sings"
SECRET = "secret-7d21b0-that-nobody-sings"
CODE = f'''
import os

from pilotlight import App

app = App("songs")
WORDS = "{CANARY}"


@app.gpu_function(idempotent=True, secrets={{"TOKEN": "token"}})
def sing(text: str) -> str:
    """{CANARY} in code."""
    print("{CANARY} in a log", text[:20], len(os.environ["TOKEN"]))
    return text + WORDS
'''
OPTIONS = ("--cpu-slots", "4", "--blanks", "1", "--encrypt-blobs")
NAMES_AND_NUMBERS = ("usage", "ledger")


@contextmanager
def other_works(client: httpx.Client) -> Iterator[list[httpx.Response]]:
    """Another tenant's calls, one after the other, until the block ends."""
    answers: list[httpx.Response] = []
    stop = threading.Event()

    def call() -> None:
        while not stop.is_set():
            body = {"input": {"text": "la"}}
            answers.append(client.post("/v1/functions/songs.sing/calls", json=body, timeout=60.0))

    thread = threading.Thread(target=call)
    thread.start()
    try:
        yield answers
    finally:
        stop.set()
        thread.join()


def made_tenant(running: Platform, folder: Path, name: str, code: str) -> httpx.Client:
    """A tenant with a key, a secret and an app."""
    running.cli("tenant", "create", name, "--tier", "paid")
    key = json.loads(running.cli("key", "create", "--tenant", name, "--scopes", "admin", "--json").stdout)["api_key"]
    env = {**running.env, "PILOTLIGHT_API_KEY": key}
    assert run_command(["secret", "set", "token"], env=env, given=SECRET).returncode == 0
    (folder / name).mkdir()
    (folder / name / "songs.py").write_text(code)
    running.cli("deploy", str(folder / name / "songs.py"), key=key)
    return running.as_holder_of(key)


def use_everything(client: httpx.Client) -> str:
    """Calls, a job with a large input, a batch, an answer kept by key, a webhook; the receipt's call id."""
    path = "/v1/functions/songs.sing/calls"
    body = {"input": {"text": f"{CANARY} small"}}
    answered = client.post(path, json=body, headers={"Idempotency-Key": "once"})
    assert answered.status_code == 200, answered.text
    large = {"input": {"text": CANARY + "x" * 100_000}}
    job = client.post(path, json=large, headers={"Prefer": "respond-async"})
    assert job.status_code == 202, job.text
    wait_until(lambda: state_of(client, f"/v1/calls/{job.json()['id']}") == "succeeded", "the job ends", 60.0)
    lines = "".join(json.dumps({"custom_id": str(n), "input": {"text": CANARY}}) + "\n" for n in range(2))
    batch = client.post("/v1/batches", params={"function": "songs.sing"}, content=lines)
    if batch.status_code < 300:
        wait_until(lambda: state_of(client, f"/v1/batches/{batch.json()['id']}") == "completed", "it ends", 60.0)
    hook = client.post("/v1/webhooks", json={"url": "https://hooks.example.com/", "label": CANARY[:20]})
    assert hook.status_code in (201, 422), hook.text
    return str(answered.json()["id"])


def state_of(client: httpx.Client, path: str) -> Any:
    return client.get(path).json().get("state")


def files_with(state: Path, word: str) -> dict[str, int]:
    """How often a word is in which files of the platform, by their path below its state."""
    found = {}
    for path in state.rglob("*"):
        if path.is_file():
            try:
                count = path.read_bytes().count(word.encode())
            except OSError:  # of a container that has just ended
                continue
            if count:
                found[str(path.relative_to(state))] = count
    return found


def erase(running: Platform, name: str) -> dict[str, Any]:
    """Both steps, as an operator does."""
    planned = json.loads(running.cli("tenant", "erase", name, "--json").stdout)
    assert planned["state"] == "planned"
    done = running.cli("tenant", "erase", name, "--confirm", planned["confirmation"], "--json", check=False)
    told: dict[str, Any] = json.loads(done.stdout)
    return told


def test_a_tenant_is_erased_while_another_works(tmp_path: Path) -> None:
    """No call of the other one fails; nothing of the erased one is found, but where the docs say."""
    with run_platform(tmp_path, *OPTIONS) as running:
        acme = made_tenant(running, tmp_path, "acme", CODE)
        rival = made_tenant(running, tmp_path, "rival", CODE.replace(CANARY, "la la la"))
        call = use_everything(acme)
        usage = {"tenant": "acme", "since": "1d"}
        billed = wait_until(lambda: running.http.get("/v1/usage", params=usage).json().get("lines"), "it is billed")
        with other_works(rival) as answers:
            wait_until(lambda: len(answers) > 3, "the other one works", 60.0)
            began = time.monotonic()
            told = erase(running, "acme")
            took = time.monotonic() - began
            before = len(answers)
            wait_until(lambda: len(answers) > before + 3, "the other one goes on", 60.0)
        print(f"erased in {took:.1f} s: {told}")
        assert {answer.status_code for answer in answers} == {200}
        assert told["state"] == "erased", told
        for kind in ("API keys", "apps", "versions", "secrets", "jobs", "pieces of logs", "blobs", "data keys"):
            assert told["found"].get(kind), (kind, told)
        assert acme.get("/v1/apps").status_code == 401
        assert running.http.get("/v1/usage", params=usage).json()["lines"] == billed
        assert call
        again = running.cli("tenant", "create", "acme", check=False)
        assert "was erased: the ledger has its lines" in again.stderr
        audited = running.http.get("/v1/audit", params={"tenant": "acme"}).json()["entries"]
        assert {"planErasure", "eraseTenant"} <= {entry["operation"] for entry in audited}
        left = files_with(running.state, CANARY)
        print("left", left)
        assert not files_with(running.state, SECRET)
