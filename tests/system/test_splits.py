"""Calls of an app whose traffic is split, at several gateways: who is on which side, and what a rollback moves."""

from __future__ import annotations

import itertools
import json
import signal
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

import httpx
import pytest

from pilotlight_core.model.rollouts.rollout_record import Arm, Rollout, Sticky
from pilotlight_core.model.rollouts.split import drawn
from pilotlight_core.model.rollouts.split_units import SplitAsker, unit_of
from tests.system.support.ledger import ended, rows
from tests.system.support.platform import Platform
from tests.system.support.platform import platform as run_platform
from tests.system.support.rollout_writer import RolloutWriter
from tests.waiting import wait_until

CODE = """
from pilotlight import App

app = App("split")


@app.gpu_function(scaledown_window=30.0, retries=1, forecast=False)
def which(failing: int = 0) -> int:
    if failing == {answer}:
        raise RuntimeError("no")
    return {answer}
"""
USERS = tuple(f"user-{number}" for number in range(10))


def write_app(folder: Path, answer: int) -> Path:
    file = folder / "app.py"
    file.write_text(CODE.format(answer=answer))
    return file


@pytest.fixture
def gateways(pair: Platform) -> Iterator[list[httpx.Client]]:
    """A client of each."""
    headers = {"Authorization": f"Bearer {pair.key}"}
    clients = [httpx.Client(base_url=url, headers=headers, timeout=60.0) for url in pair.urls]
    try:
        yield clients
    finally:
        for client in clients:
            client.close()


def answers(gateways: list[httpx.Client], users: tuple[str, ...] = USERS) -> list[dict[str, int]]:
    """What each gateway answers each user."""

    def ask(asked: tuple[httpx.Client, str]) -> int:
        client, user = asked
        done = client.post("/v1/functions/split.which/calls", json={}, headers={"Pilotlight-Sticky": user})
        assert done.status_code == 200, done.text
        return int(done.json()["output"])

    with ThreadPoolExecutor(4) as callers:
        return [
            dict(zip(users, callers.map(ask, [(client, user) for user in users]), strict=True)) for client in gateways
        ]


def sides(rollout: Rollout, tenant: str) -> dict[str, int]:
    """Which version each user is to get."""

    def of(user: str) -> int:
        unit = unit_of(rollout.terms.sticky, SplitAsker(tenant, "", "", sticky=user))
        found = drawn(rollout, "which", unit.text)
        return 2 if found is not None and found.arm is Arm.CANARY else 1

    return {user: of(user) for user in USERS}


def test_users_stay_on_their_side_at_every_gateway_until_all_go_back(
    pair: Platform, gateways: list[httpx.Client], tmp_path: Path
) -> None:
    """Versions are registered without traffic, an alias names one, half of the users get the new one, and a rollback
    moves everybody at once."""
    pair.deploy(write_app(tmp_path, 1))
    registered = json.loads(pair.cli("deploy", str(write_app(tmp_path, 2)), "--no-traffic", "--json").stdout)
    canary = registered[0]["functions"][0]["version_id"]
    pair.cli("alias", "set", "split.which@beta", "v2")
    writer = RolloutWriter(platform=pair, app="split")

    assert answers(gateways) == [dict.fromkeys(USERS, 1)] * 2
    assert pair.output("split.which@v2") == pair.output("split.which@beta") == 2

    rollout = writer.begin({"which": canary}, 5_000, Sticky.HEADER)
    expected = sides(rollout, writer.tenant)
    assert set(expected.values()) == {1, 2}
    wait_until(lambda: answers(gateways) == [expected] * 2, "both gateways know the split", 10.0)

    new = next(user for user, version in expected.items() if version == 2)
    failing = gateways[1].post(
        "/v1/functions/split.which/calls", json={"input": {"failing": 2}}, headers={"Pilotlight-Sticky": new}
    )
    assert (failing.status_code, failing.json()["output"]) == (200, 1), "the old version runs what the new one fails"

    said = pair.cli("app", "rollback", "split", "--reason", "slower").stdout
    assert "is aborted" in said
    assert answers(gateways) == [dict.fromkeys(USERS, 1)] * 2
    assert pair.output("split.which@beta") == 2


LOGGING = """
import time

from pilotlight import App

app = App("frozen")


@app.gpu_function(scaledown_window=60.0, min_containers=1, idempotent=True, retries=2, forecast=False)
def which(name: str) -> int:
    print(f"{{time.time():.3f}} {answer} {{name}}")
    time.sleep(0.02)
    return {answer}
"""
FROZEN_S, LATEST_S = 20.0, 1.0
CALLERS = 8


@dataclass(kw_only=True)
class FailingOver:
    """Callers behind a load balancer: each call has a key, and goes to the next gateway when one does not answer."""

    urls: list[str]
    key: str
    lost: list[str] = field(default_factory=list)
    names: list[str] = field(default_factory=list)
    ran: dict[str, str] = field(default_factory=dict)
    """By answered call, the version that its answer names."""
    sent: dict[str, float] = field(default_factory=dict)
    """By answered call, when it was sent first, in unix seconds."""

    def __post_init__(self) -> None:
        self.over = threading.Event()

    def keep_calling(self, best: int) -> None:
        headers = {"Authorization": f"Bearer {self.key}"}
        with ExitStack() as stack:
            clients = [
                stack.enter_context(httpx.Client(base_url=url, headers=headers, timeout=90.0)) for url in self.urls
            ]
            for number in itertools.count():
                if self.over.is_set():
                    return
                self._call(clients[best:] + clients[:best], f"{best}-{number}")

    def _call(self, clients: list[httpx.Client], name: str) -> None:
        said, sent_at = "", time.time()
        for client in (*clients, *clients):
            try:
                done = client.post(
                    "/v1/functions/frozen.which/calls", json={"input": {"name": name}},
                    headers={"Idempotency-Key": name, "Prefer": "wait=60"},
                )  # fmt: skip
            except httpx.TransportError as error:
                said = repr(error)
                continue
            if done.status_code == 200:
                self.names.append(name)
                answer = done.json()
                self.ran[answer["id"]], self.sent[answer["id"]] = answer["version"], sent_at
                return
            said = done.text
        self.lost.append(f"{name}: {said}")


@pytest.mark.long
@pytest.mark.timeout(600)
def test_a_rollback_holds_for_a_gateway_that_stood_still_and_loses_no_call(tmp_path: Path) -> None:
    """Four gateways, one stopped before it and one killed: nothing of the new version starts a second later, by what
    the function logs; and by the receipts it has run no call but those that it has logged.
    """

    def write(answer: int) -> Path:
        file = tmp_path / "app.py"
        file.write_text(LOGGING.format(answer=answer))
        return file

    def starts(platform: Platform) -> list[tuple[float, int]]:
        lines = [line["text"].split() for line in platform.logs("frozen") if line["text"].count(" ") == 2]
        return [(float(at), int(version)) for at, version, _ in lines]

    options = ("--extra-gateways", "3", "--cpu-slots", "8", "--blanks", "0")
    with run_platform(tmp_path, *options) as platform, ThreadPoolExecutor(CALLERS) as callers:
        platform.deploy(write(1))
        registered = json.loads(platform.cli("deploy", str(write(2)), "--no-traffic", "--json").stdout)
        canary = registered[0]["functions"][0]["version_id"]
        writer = RolloutWriter(platform=platform, app="frozen")
        writer.begin({"which": canary}, 5_000, Sticky.CALL)
        load = FailingOver(urls=platform.urls, key=platform.key)
        loops = [callers.submit(load.keep_calling, number % 4) for number in range(CALLERS)]
        try:
            wait_until(lambda: {version for _, version in starts(platform)} == {1, 2}, "both sides run", 60.0)
            platform.signal("gateway-2", signal.SIGSTOP)
            time.sleep(1.0)  # calls of its own lie there, some of them granted
            platform.kill("gateway-3")
            platform.cli("app", "rollback", "frozen")
            back_at = time.time()
            time.sleep(FROZEN_S)
            platform.signal("gateway-2", signal.SIGCONT)
            woken_at = time.time()
            wait_until(lambda: max(at for at, _ in starts(platform)) > woken_at + 5.0, "the load goes on", 60.0)
        finally:
            load.over.set()
        for loop in loops:
            loop.result()
        late = [at - back_at for at, version in starts(platform) if version == 2 and at > back_at + LATEST_S]
        check_receipts(platform, load, canary, back_at + LATEST_S)

    assert load.lost == []
    assert len(load.names) > 100
    assert late == []


def check_receipts(platform: Platform, load: FailingOver, canary: str, back_at: float) -> None:
    """Each answered call was billed on the version that its answer names; the new one was billed for what it has
    logged, and for no call that was sent after the rollback.
    """
    query = "SELECT DISTINCT call, version FROM receipt_line WHERE function = 'which' AND ns > 0"

    def billed() -> dict[str, set[str]]:
        found: dict[str, set[str]] = {}
        for call, version in rows(platform, query):
            found.setdefault(call, set()).add(version)
        return found

    wait_until(lambda: load.ran.keys() <= ended(platform, "which"), "all that was answered is in the ledger")
    logged = {line["call"] for line in platform.logs("frozen") if line["text"].split()[1:2] == ["2"]}
    by_receipt = wait_until(
        lambda: (found := billed()) and logged == {call for call, on in found.items() if canary in on} and found,
        "the receipts of the new version are of the calls that it has logged",
    )
    for call, version in load.ran.items():
        on = by_receipt[call]
        assert canary in on if version.endswith("@v2") else on - {canary}, (call, version, on)
    assert [call for call, sent_at in load.sent.items() if sent_at > back_at and canary in by_receipt[call]] == []
    assert logged & load.ran.keys(), "some were answered by it before"
