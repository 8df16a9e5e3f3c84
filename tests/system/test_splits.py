"""Calls of an app whose traffic is split, at several gateways: who is on which side, and what a rollback moves."""

from __future__ import annotations

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest

from pilotlight_core.model.rollouts.rollout_record import Arm, Rollout, Sticky
from pilotlight_core.model.rollouts.split import drawn
from pilotlight_core.model.rollouts.split_units import Asker, unit_of
from tests.system.support.platform import Platform
from tests.system.support.rollout_writer import RolloutWriter
from tests.waiting import wait_until

CODE = """
from pilotlight import App

app = App("split")


@app.gpu_function(scaledown_window=30.0, forecast=False)
def which() -> int:
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
        unit = unit_of(rollout.terms.sticky, Asker(tenant, "", "", sticky=user))
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

    said = pair.cli("app", "rollback", "split", "--reason", "slower").stdout
    assert "is aborted" in said
    assert answers(gateways) == [dict.fromkeys(USERS, 1)] * 2
    assert pair.output("split.which@beta") == 2
