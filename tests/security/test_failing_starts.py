"""A tenant whose starts fail without end delays nobody else's."""

from __future__ import annotations

import textwrap
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from tests.security.test_held_slots import APP as VICTIM
from tests.system.support.platform import Platform, make_tenant
from tests.waiting import wait_until

pytestmark = pytest.mark.system
FUNCTIONS = 14
SLOW_S = 2.0
"""A start of the storm holds its slot for so long."""
PAUSE_S = 1.0
"""Of each caller, since many starts fail at once."""
SLOTS = 4
BAD = """
    @app.gpu_function()
    class Bad{number}:
        @enter()
        def load(self) -> None:
            print("loads", flush=True)
            time.sleep({slow})
            raise RuntimeError("on purpose")

        @method()
        def answer(self) -> int:
            return 0
"""


@pytest.fixture
def storm_key(platform: Platform, tmp_path: Path) -> str:
    """A key of a tenant of many functions that never load."""
    key = make_tenant(platform, "stormy")
    source = ["import time", "from pilotlight import App, enter, method", 'app = App("storm")']
    source += [textwrap.dedent(BAD.format(number=number, slow=SLOW_S)) for number in range(FUNCTIONS)]
    path = tmp_path / "app.py"
    path.write_text("\n\n".join(source))
    platform.cli("deploy", str(path), key=key)
    return key


@contextmanager
def storm(platform: Platform, key: str) -> Iterator[None]:
    """All of them are called again and again."""
    over = threading.Event()

    def call(client: httpx.Client, number: int) -> None:
        while not over.wait(PAUSE_S):
            client.post(f"/v1/functions/storm.Bad{number}/calls", json={"deadline_ms": 30_000})

    with platform.as_holder_of(key) as client, ThreadPoolExecutor(FUNCTIONS) as pool:
        for number in range(FUNCTIONS):
            pool.submit(call, client, number)
        try:
            yield
        finally:
            over.set()
            platform.cli("tenant", "disable", "stormy")


def loads(platform: Platform, key: str) -> int:
    """How often a function of the storm has begun to load."""
    with platform.as_holder_of(key) as client:
        return client.get("/v1/apps/storm/logs", params={"tail": 10_000}).text.count('"loads"')


def test_another_tenants_cold_start_has_its_turn(platform: Platform, storm_key: str) -> None:
    """However many calls of the storm are older, and for as long as it lasts."""
    platform.deploy(VICTIM)
    with storm(platform, storm_key):
        wait_until(lambda: loads(platform, storm_key) >= SLOTS, "the storm holds every slot")
        for function in ("sleep", "stay"):
            before = loads(platform, storm_key)
            assert platform.call(f"held.{function}", seconds=0.0).status_code == 200
            assert loads(platform, storm_key) - before <= 2 * SLOTS  # it would be FUNCTIONS if older calls came first
    platform.http.post("/v1/apps/held/stop")
