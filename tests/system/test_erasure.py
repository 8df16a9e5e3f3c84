"""Erasing a tenant on a whole platform, while another one works: what is left of it is what the docs say."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
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
NDJSON = {"Content-Type": "application/x-ndjson"}
OPTIONS = ("--cpu-slots", "4", "--blanks", "1", "--encrypt-blobs")


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
    key = json.loads(running.cli("key", "create", "--tenant", name, "--scopes", "admin", "--json").stdout)["key"]
    env = {**running.env, "PILOTLIGHT_API_KEY": key}
    assert run_command(["secret", "set", "token"], env=env, given=SECRET).returncode == 0
    (folder / name).mkdir()
    (folder / name / "songs.py").write_text(code)
    running.cli("deploy", str(folder / name / "songs.py"), key=key)
    return running.as_holder_of(key)


def use_everything(client: httpx.Client) -> None:
    """Calls, a job with a large input, a batch, an answer kept by key, a webhook."""
    path = "/v1/functions/songs.sing/calls"
    body = {"input": {"text": f"{CANARY} small"}}
    answered = client.post(path, json=body, headers={"Idempotency-Key": "once"})
    assert answered.status_code == 200, answered.text
    large = {"input": {"text": CANARY + "x" * 100_000}}
    job = client.post(path, json=large, headers={"Prefer": "respond-async"})
    assert job.status_code == 202, job.text
    wait_until(lambda: state_of(client, f"/v1/calls/{job.json()['id']}") == "succeeded", "the job ends", 60.0)
    lines = "".join(json.dumps({"custom_id": str(n), "input": {"text": CANARY}}) + "\n" for n in range(2))
    batch = client.post("/v1/batches", params={"function": "songs.sing"}, content=lines, headers=NDJSON)
    assert batch.status_code < 300, batch.text
    wait_until(lambda: state_of(client, f"/v1/batches/{batch.json()['id']}") == "completed", "it ends", 60.0)
    hook = client.post("/v1/webhooks", json={"url": "https://hooks.example.com/", "label": CANARY[:20]})
    assert hook.status_code == 201, hook.text


def state_of(client: httpx.Client, path: str) -> Any:
    return client.get(path).json().get("state")


def calls_of(running: Platform, tenant: str) -> int:
    """As the ledger has them."""
    lines = running.http.get("/v1/usage", params={"tenant": tenant, "since": "1d"}).json()["lines"]
    return sum(line["calls"] for line in lines)


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


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("erasure")


@pytest.fixture(scope="module")
def erasing(folder: Path) -> Iterator[Platform]:
    with run_platform(folder, *OPTIONS) as running:
        yield running


def test_a_tenant_is_erased_while_another_works(erasing: Platform, folder: Path) -> None:
    """No call of the other one fails, and its lines in the ledger stay; nobody takes the name."""
    with (
        made_tenant(erasing, folder, "acme", CODE) as acme,
        made_tenant(erasing, folder, "rival", CODE.replace(CANARY, "la la la")) as rival,
    ):
        use_everything(acme)
        billed = wait_until(lambda: calls_of(erasing, "acme"), "it is billed")
        with other_works(rival) as answers:
            wait_until(lambda: len(answers) > 3, "the other one works", 60.0)
            told = erase(erasing, "acme")
            before = len(answers)
            wait_until(lambda: len(answers) > before + 3, "the other one goes on", 60.0)
        refused = acme.get("/v1/apps").status_code

    assert {answer.status_code for answer in answers} == {200}
    assert told["state"] == "erased", told
    kinds = (
        "API keys", "apps", "versions", "secrets", "jobs", "batches", "webhooks", "pieces of logs", "blobs",
        "data keys", "answers by Idempotency-Key",
    )  # fmt: skip
    assert [kind for kind in kinds if not told["found"].get(kind)] == [], told
    assert refused == 401
    assert calls_of(erasing, "acme") >= billed
    month = f"{datetime.now(UTC):%Y-%m}"
    invoice = erasing.http.get(f"/v1/billing/invoices/{month}", params={"tenant": "acme"})
    assert (invoice.status_code, bool(invoice.json()["lines"])) == (200, True), invoice.text
    again = erasing.cli("tenant", "create", "acme", check=False)
    assert "was erased: the ledger has its lines" in again.stderr
    audited = erasing.http.get("/v1/audit", params={"tenant": "acme"}).json()["entries"]
    assert {"planErasure", "eraseTenant"} <= {entry["operation"] for entry in audited}
    assert json.loads(erasing.cli("tenant", "erase", "acme", "--json").stdout)["state"] == "erased"
    assert "erased" in erasing.cli("tenant", "show", "acme").stdout


def test_what_is_left_of_it_is_what_the_docs_say(erasing: Platform) -> None:
    """What it had deployed, sent, got and printed is in no file but those of the bus, which compacts them by and by."""
    assert erasing.cli("tenant", "erase", "acme").returncode == 0, "it was erased by the test before"
    wait_until(lambda: not files_with(erasing.state / "node", CANARY), "its node has deleted its files", 90.0)

    found = files_with(erasing.state, CANARY)
    streams = {Path(name).parts[Path(name).parts.index("streams") + 1] for name in found}
    assert all(name.startswith("nats/jetstream/") for name in found), found
    assert streams <= {"KV_JOBS", "KV_IDEMPOTENCY", "KV_REGISTRY", "KV_BATCHES", "KV_WEBHOOKS", "JOBS", "LOGS"}, found
    assert files_with(erasing.state, SECRET) == {}
    assert not (erasing.state / "blobs" / "acme").exists()
    assert not (erasing.state / "node" / "local" / "cache" / "acme").exists()


@pytest.mark.crash
def test_an_erasure_survives_the_death_of_its_gateway(erasing: Platform, folder: Path) -> None:
    """At any point: asked again, it goes on, and ends in the same. Before its second step it is taken back."""
    with made_tenant(erasing, folder, "late", CODE) as late:
        use_everything(late)
        erasing.cli("tenant", "erase", "late")
        assert late.get("/v1/apps").status_code == 401
        erasing.cli("tenant", "enable", "late")
        wait_until(lambda: late.get("/v1/apps").status_code == 200, "its keys are good again", 30.0)
    planned = json.loads(erasing.cli("tenant", "erase", "late", "--json").stdout)
    path, body = "/v1/tenants/late/erasure", {"confirmation": planned["confirmation"]}
    state, delay = "", 0.05
    for _ in range(40):
        killed = threading.Timer(delay, erasing.kill, ("gateway",)) if delay < 4.0 else None
        if killed is not None:
            killed.start()
        try:
            answer = erasing.http.put(path, json=body, timeout=90.0)
            state = answer.json().get("state", "")
        except httpx.HTTPError:
            state = ""
        if killed is not None:
            killed.join()
        wait_until(erasing.is_ready, "the gateway is back", 60.0)
        if state == "erased":
            break
        delay *= 3

    assert state == "erased"
    wait_until(lambda: not files_with(erasing.state / "node", CANARY), "its node has deleted its files", 90.0)
    assert not (erasing.state / "blobs" / "late").exists()
    told = json.loads(erasing.cli("tenant", "erase", "late", "--json").stdout)
    assert told["state"] == "erased"
