"""Secrets on a whole platform: functions get them, and they are nowhere else."""

from __future__ import annotations

import asyncio
import contextlib
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import boto3
import httpx
import nats
import pytest
from nats.aio.msg import Msg

from tests.command_line import run_command
from tests.system.apps.secretive.app import digest_of
from tests.system.support.platform import Platform
from tests.system.support.platform import platform as run_platform
from tests.system.support.processes import descendants
from tests.system.support.sample_apps import APPS
from tests.waiting import wait_until

APP = APPS / "secretive" / "app.py"
TOKEN = "tok-5f3c9a17e2b84d60-hush"
LINES = ("MIGHAgEAMBMGByqGSM49AgEGCCqGSM49", "AwEHBG0wawIBAQQgevZzL1gdAFr88hb2")
KEY = "\n".join(("-----BEGIN SOME KEY-----", *LINES, "-----END SOME KEY-----", ""))
PARTS = (TOKEN, TOKEN[5:], *LINES)
"""What must be nowhere."""


@pytest.fixture(scope="module")
def secretive(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Platform]:
    """A platform of its own, started as an operator does, whose files are searched."""
    folder = tmp_path_factory.mktemp("secrets")
    with run_platform(folder, "--cpu-slots", "8", "--blanks", "1", executed=True) as running:
        set_secret(running, "tests-token", TOKEN)
        set_secret(running, "tests-key", KEY)
        running.deploy(APP)
        yield running


def set_secret(platform: Platform, name: str, value: str) -> str:
    """As `… | pilotlight secret set NAME` does."""
    done = run_command(["secret", "set", name], env=platform.env, given=value)
    assert done.returncode == 0, done.stderr
    return done.stdout


def found_in(data: bytes) -> list[str]:
    return [part for part in PARTS if part.encode() in data]


@contextmanager
def traffic_of(platform: Platform) -> Iterator[list[bytes]]:
    """All that the bus carries meanwhile, as its operator hears it."""
    heard: list[bytes] = []
    ready, stop = threading.Event(), threading.Event()

    async def listen() -> None:
        connection = await nats.connect(platform.nats_url)

        async def take(message: Msg) -> None:
            heard.append(message.subject.encode() + b" " + message.data)

        await connection.subscribe(">", cb=take)
        await connection.flush()
        ready.set()
        await asyncio.to_thread(stop.wait)
        await connection.drain()

    thread = threading.Thread(target=lambda: asyncio.run(listen()))
    thread.start()
    assert ready.wait(20)
    try:
        yield heard
    finally:
        stop.set()
        thread.join()


def test_a_function_finds_its_secrets_and_nobody_hears_them(secretive: Platform) -> None:
    """As a variable and as a file of its own; the bus carries them sealed only, and stored they are sealed too."""
    with traffic_of(secretive) as heard:
        set_secret(secretive, "tests-token", TOKEN)
        set_secret(secretive, "tests-key", KEY)
        told = secretive.output("secretive.digests")

    assert told == {"TOKEN": digest_of(TOKEN), "key": digest_of(KEY), "mode": "0o100400"}
    assert any(b".secrets " in message for message in heard), "the question was heard"
    assert [message for message in heard if found_in(message)] == []


def test_another_function_finds_none(secretive: Platform) -> None:
    """It does not name them."""
    told = secretive.output("secretive.nothing")

    assert told["files"] == []
    assert not {"TOKEN", "TESTS_TOKEN"} & told["env"].keys()


def test_what_a_function_prints_of_them_is_hidden(secretive: Platform) -> None:
    """Whole, over two writes, in lines of a longer value, where a line is cut, and from a child process."""
    assert secretive.output("secretive.prints") == len(TOKEN)
    lines = wait_until(
        lambda: (
            (found := secretive.logs("secretive", "prints")) and any("child" in str(one) for one in found) and found
        ),
        "the lines are there",
    )
    text = "\n".join(one["text"] for one in lines)

    assert found_in(text.encode()) == []
    assert "whole: *** '***'" in text
    assert "two writes: *** and on" in text
    assert "-----BEGIN SOME KEY-----" not in text
    assert "x***" in text
    assert "child: ***" in text


def test_what_it_raises_with_them_is_hidden(secretive: Platform) -> None:
    """In the caller's error and in the log, also where a text was cut."""
    answer = secretive.call("secretive.raises")
    logged = wait_until(lambda: secretive.logs("secretive", "raises"), "the error is logged")

    assert answer.status_code == 500
    assert "wrong token ***" in answer.text
    assert found_in(answer.content + json.dumps(logged).encode()) == []
    assert TOKEN[:8] not in answer.text


def test_no_process_shows_them(secretive: Platform) -> None:
    """Neither in its command line nor in the environment that it was started with: containers do not either."""
    secretive.output("secretive.digests")
    shown = {}
    for pid in descendants(secretive.process.pid):
        with contextlib.suppress(OSError):  # it has just ended
            shown[pid] = Path(f"/proc/{pid}/cmdline").read_bytes() + Path(f"/proc/{pid}/environ").read_bytes()

    assert len(shown) > 5
    assert {pid: found for pid, data in shown.items() if (found := found_in(data))} == {}


def test_no_file_of_the_platform_has_them(secretive: Platform) -> None:
    """Streams and buckets, logs, blobs with manifests, the ledger, the nodes' folders."""
    secretive.output("secretive.digests")
    files = [path for path in secretive.state.parent.rglob("*") if path.is_file()]
    read = {}
    for path in files:
        with contextlib.suppress(OSError):  # of a container that has just ended
            read[path] = path.read_bytes()

    assert any("KV_SECRETS" in str(path) for path in files)
    assert {str(path): found for path, data in read.items() if (found := found_in(data))} == {}


def test_nobody_is_shown_a_value(secretive: Platform) -> None:
    """Lists, the audit log, and the app have names, numbers and dates."""
    listed = secretive.http.get("/v1/secrets").json()["secrets"]
    audit = secretive.http.get("/v1/audit").json()["entries"]
    app = secretive.http.get("/v1/apps/secretive").text

    assert [one["name"] for one in listed] == ["tests-key", "tests-token"]
    assert "secretive.digests" in listed[0]["functions"]
    assert any(one["operation"] == "setSecret" and one["target"] == {"name": "tests-key"} for one in audit)
    assert found_in((json.dumps([listed, audit]) + app).encode()) == []


def test_a_new_value_reaches_all_containers_in_turn(secretive: Platform) -> None:
    """No call fails meanwhile, and of two containers one is always there."""
    fresh = TOKEN[::-1]
    wait_until(lambda: len(ready_of(secretive)) == 2, "both are ready", 60.0)
    before = {one["id"] for one in ready_of(secretive)}
    set_secret(secretive, "tests-token", fresh)
    least = 2

    def replaced() -> bool:
        nonlocal least
        present = ready_of(secretive)
        least = min(least, len(present))
        answer = secretive.call("secretive.digests")
        assert answer.status_code == 200, answer.text
        return len(present) == 2 and not before & {one["id"] for one in present}

    wait_until(replaced, "both are replaced", 90.0)
    assert least >= 1
    wait_until(lambda: secretive.output("secretive.digests")["TOKEN"] == digest_of(fresh), "they have it")
    set_secret(secretive, "tests-token", TOKEN)


def test_the_only_container_is_replaced_before_it_ends(secretive: Platform) -> None:
    """Though the function may have no more than one: it serves until the next one does."""
    wait_until(lambda: len(ready_of(secretive, "lonely")) == 1, "it is ready", 60.0)
    (before,) = ready_of(secretive, "lonely")
    set_secret(secretive, "tests-token", TOKEN[1:])
    counts: list[int] = []

    def replaced() -> bool:
        present = ready_of(secretive, "lonely")
        counts.append(len(present))
        return bool(present) and before["id"] not in {one["id"] for one in present}

    wait_until(replaced, "it is replaced", 90.0)
    assert min(counts) >= 1
    set_secret(secretive, "tests-token", TOKEN)


def ready_of(platform: Platform, function: str = "steady") -> list[dict[str, object]]:
    found = platform.containers("secretive")
    return [one for one in found if one["function"] == function and one["state"] == "ready"]


def test_a_secret_in_use_is_not_removed_and_a_missing_one_is_named(secretive: Platform, tmp_path: Path) -> None:
    """With what to do."""
    refused = secretive.cli("secret", "rm", "tests-key", check=False)
    code = APP.read_text().replace('App("secretive")', 'App("lacking")').replace("tests-key", "never-set")
    (tmp_path / "app.py").write_text(code)
    lacking = secretive.cli("deploy", str(tmp_path / "app.py"), check=False)

    assert refused.returncode == 1
    assert "tests-key is used by secretive.digests, secretive.prints: deploy without it" in refused.stderr
    assert lacking.returncode == 1
    assert "there is no secret never-set: run `pilotlight secret set never-set`" in lacking.stderr


@pytest.mark.variant
def test_a_gateway_that_is_killed_loses_nothing(secretive: Platform) -> None:
    """While one value after the other is set: the last that was answered, or a later one, is what functions get."""
    values = [f"value-{number}-of-many" for number in range(200)]
    answered = 0
    killed = threading.Timer(0.3, secretive.kill, ("gateway",))
    killed.start()
    for number, value in enumerate(values):
        try:
            secretive.http.put("/v1/secrets/tests-token", json={"value": value}).raise_for_status()
        except httpx.HTTPError:
            break
        answered = number
    killed.join()
    wait_until(secretive.is_ready, "the gateway is back", 60.0)
    later = {digest_of(value) for value in values[answered:]}

    def has_it() -> bool:
        answer = secretive.call("secretive.digests")
        return answer.status_code == 200 and answer.json()["output"]["TOKEN"] in later

    wait_until(has_it, "functions get it", 60.0)


@pytest.mark.variant
def test_a_key_service_stands_in_for_the_file(s3_endpoint: str, tmp_path: Path) -> None:
    """Two gateways have only the key's name: what one seals, the other opens, and no key is on a disk."""
    names = {"AWS_ACCESS_KEY_ID": "testing", "AWS_SECRET_ACCESS_KEY": "testing", "AWS_DEFAULT_REGION": "us-east-1"}
    made = boto3.client("kms", endpoint_url=s3_endpoint, region_name="us-east-1").create_key()
    key = f"aws-kms://{made['KeyMetadata']['Arn']}?endpoint={s3_endpoint}"
    env = {**names, "PILOTLIGHT_SECRETS_KEY": key}
    with run_platform(tmp_path, "--extra-gateways", "1", "--cpu-slots", "2", "--blanks", "0", env=env) as running:
        for url, (name, value) in zip(running.urls, (("tests-token", TOKEN), ("tests-key", KEY)), strict=True):
            running.http.put(f"{url}/v1/secrets/{name}", json={"value": value}).raise_for_status()
        running.deploy(APP)
        told = [running.output("secretive.digests")]
        running.kill("gateway")
        wait_until(running.is_ready, "the gateway is back", 60.0)
        told.append(running.output("secretive.digests"))

    assert {one["TOKEN"] for one in told} == {digest_of(TOKEN)}
    assert {one["key"] for one in told} == {digest_of(KEY)}
    assert not (tmp_path / "state" / "keys" / "secrets_aes256").exists()
