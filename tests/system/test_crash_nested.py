"""Parts are killed while a call waits for one that it made: nothing runs twice, is left over, or is billed twice."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor

import httpx
import pytest

from tests.system.support.ledger import check_no_instant_is_sold_twice, check_nothing_is_in_quarantine, rows
from tests.system.support.platform import Platform
from tests.system.support.platform import platform as run_platform
from tests.system.support.sample_apps import APPS
from tests.variants import with_variants
from tests.waiting import wait_until

pytestmark = [pytest.mark.crash, pytest.mark.timeout(120)]


@pytest.fixture(scope="module")
def platform(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Platform]:
    """A platform of its own, since its parts are killed."""
    with run_platform(tmp_path_factory.mktemp("nested"), "--cpu-slots", "4", "--blanks", "1") as running:
        running.deploy(APPS / "nested" / "app.py")
        yield running


def lines(platform: Platform, function: str) -> list[str]:
    """What a function has printed."""
    return [line["text"] for line in platform.logs("nested", function)]


@pytest.mark.parametrize("part", with_variants(["gateway", "agent", "nats"], 1))
def test_a_killed_part_ends_or_keeps_both(platform: Platform, part: str) -> None:
    """The caller hears of one end, the nested call has begun once for it, and each has at most one receipt."""
    platform.output("nested.waits", seconds=0.0, name="warm")
    with ThreadPoolExecutor(1) as pool:
        waiting: Future[httpx.Response] = pool.submit(platform.call, "nested.waits", seconds=8.0, name=part)
        wait_until(lambda: f"began {part}" in lines(platform, "sleeper"), "the nested call runs")
        os.kill(platform.pids[part], signal.SIGKILL)
        try:
            answer = waiting.result()
        except httpx.TransportError:
            assert part == "gateway"
        else:
            assert answer.status_code == 200 or answer.json()["code"] == "container_died", answer.text
    wait_until(platform.is_ready, "it is ready", 30.0)
    wait_until(lambda: not held(platform), "nobody holds a slot", 30.0)

    assert platform.output("nested.waits", seconds=0.0, name="again") == "slept"
    assert lines(platform, "sleeper").count(f"began {part}") == 1
    check_no_instant_is_sold_twice(platform)
    check_nothing_is_in_quarantine(platform)
    assert rows(platform, TWICE) == []


TWICE = """
    SELECT call FROM receipt_line WHERE outcome != '' AND price NOT IN ('cpu_core', 'memory_gib')
    GROUP BY call HAVING count(*) > 1
"""


def held(platform: Platform) -> list[str]:
    """The containers that have calls."""
    return [container["id"] for container in platform.containers("nested") if container["running"]]
