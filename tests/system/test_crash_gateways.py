"""Two gateways, each the home of some functions and the way to all: one dies, or stands still, under load."""

from __future__ import annotations

import random
import signal
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest

from pilotlight_core.model.subjects import shard_of
from pilotlight_gateway.cluster.shard_plan import GatewayMember, heir_of
from tests.system.support.load import BROKEN, TARGETS, Load
from tests.system.support.platform import Platform
from tests.system.support.platform import platform as run_platform
from tests.system.support.sample_apps import APPS
from tests.waiting import wait_until

pytestmark = [pytest.mark.crash, pytest.mark.timeout(150)]
SERVED_AGAIN_S = 4.0
"""After a home's death: three seconds of its lease, and what it takes to see that and to take over."""
LONGEST_CALL_S = 0.5
STILL_S = 5.0
CALLERS = 4
"""As many as `ramps.steady` may have containers."""
PARTS = ("gateway", "gateway-2")


@pytest.fixture(scope="module")
def platform(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Platform]:
    """A platform with two gateways."""
    folder = tmp_path_factory.mktemp("gateways")
    with run_platform(folder, "--extra-gateways", "1", "--cpu-slots", "8", "--blanks", "0") as running:
        running.deploy(APPS / "crash" / "app.py")
        running.deploy(APPS / "ramps" / "app.py")
        yield running


def takes_calls(url: str) -> bool:
    """Whether a gateway does."""
    try:
        return httpx.get(f"{url}/readyz").status_code == 200
    except httpx.TransportError:
        return False


def test_each_gateway_tells_the_load_of_both(platform: Platform) -> None:
    """Of all of them whoever scales them asks one."""

    def told(url: str) -> bool:
        loads = httpx.get(f"{url}/v1/scaling/gateways", headers={"Authorization": f"Bearer {platform.key}"}).json()
        return {load["name"] for load in loads["gateways"]} == set(PARTS) and loads["sum"]["requests_per_s"] > 0

    wait_until(lambda: all(map(told, platform.urls)), "both gateways tell of both")


@pytest.mark.parametrize("part", ["gateway", pytest.param("gateway-2", marks=pytest.mark.variant)])
def test_a_killed_home_costs_no_call_of_another_gateway(platform: Platform, chance: random.Random, part: str) -> None:
    """Every function is served again within four seconds, and the callers of the other gateway notice nothing else."""
    survivor = platform.urls[1 - PARTS.index(part)]
    load = Load(platform=platform, seed=chance.randrange(10**9))
    with load.running():
        wait_until(lambda: load.codes()["ok"] > 40, "the load runs", 30.0)
        time.sleep(chance.uniform(0.0, 1.0))
        platform.kill(part)
        killed = time.monotonic()
        wait_until(
            lambda: (
                {o.ref for o in load.outcomes if o.url == survivor and o.code == "ok" and o.at > killed + 1.0}
                == set(TARGETS)
            ),
            "every function is served",
            SERVED_AGAIN_S + LONGEST_CALL_S,
        )
        wait_until(lambda: part in platform.pids and takes_calls(platform.urls[PARTS.index(part)]), "it is back", 30.0)

    assert {o.code for o in load.outcomes if o.url == survivor} == {"ok"}
    assert set(load.codes()) - {"ok"} <= {BROKEN}, load.codes()
    wait_until(load.are_logged, "all lines are logged")
    assert {name: count for name, count in load.starts().items() if count > 1} == {}


def home_of(function: str) -> str:
    """The gateway that is the home of a function while both live."""
    heir = heir_of(shard_of(function), [GatewayMember(part, "", 0) for part in PARTS])
    assert heir is not None
    return heir.name


@pytest.mark.variant
def test_a_killed_home_costs_no_container(platform: Platform) -> None:
    """Its containers have no calls while another gateway takes over, for longer than their window: they stay."""
    part = home_of("default:ramps.steady")
    survivor = platform.urls[1 - PARTS.index(part)]
    over = threading.Event()
    answers: list[tuple[int, float]] = []

    def keep_calling(_: int) -> None:
        with httpx.Client(base_url=survivor, headers=platform.http.headers, timeout=60.0) as http:
            while not over.is_set():
                body = {"input": {"seconds": 0.2}}
                status = http.post("/v1/functions/ramps.steady/calls", json=body).status_code
                answers.append((status, time.monotonic()))

    def there() -> set[str]:
        listed = httpx.get(f"{survivor}/v1/containers", headers=platform.http.headers, timeout=60.0).json()
        return {each["id"] for each in listed["containers"] if each["app"] == "ramps"}

    with ThreadPoolExecutor(CALLERS) as callers:
        loops = [callers.submit(keep_calling, number) for number in range(CALLERS)]
        try:
            before = wait_until(lambda: found if len(found := there()) == CALLERS else None, "each has a container")
            wait_until(lambda: len(answers) > 40, "the load runs")
            platform.kill(part)
            killed = time.monotonic()
            wait_until(lambda: sum(at > killed + 1.0 for _, at in answers) > 40, "the load runs again")
            after = there()
            wait_until(lambda: part in platform.pids and takes_calls(platform.urls[PARTS.index(part)]), "it is back")
        finally:
            over.set()
    for loop in loops:
        loop.result()

    assert {status for status, _ in answers} == {200}
    assert after == before


MANY = pytest.param(200, marks=[pytest.mark.long, pytest.mark.timeout(2400)])


@pytest.mark.variant
@pytest.mark.parametrize("count", [3, MANY])
def test_nothing_starts_twice_when_a_home_stands_still(platform: Platform, chance: random.Random, count: int) -> None:
    """It is stopped for longer than its lease, and goes on when another one has its shards; in between, the agent."""
    load = Load(platform=platform, seed=chance.randrange(10**9))
    with load.running():
        wait_until(lambda: load.codes()["ok"] > 20, "the load runs", 30.0)
        for number in range(count):
            part = ("gateway", "gateway-2", "agent")[number % 3]
            time.sleep(chance.uniform(0.0, 1.0))
            platform.signal(part, signal.SIGSTOP)
            time.sleep(STILL_S if part != "agent" else chance.uniform(0.1, 5.0))
            platform.signal(part, signal.SIGCONT)

    assert [outcome for outcome in load.outcomes if outcome.code != "ok"] == []
    wait_until(load.are_logged, "all lines are logged")
    assert {name: count for name, count in load.starts().items() if count > 1} == {}
