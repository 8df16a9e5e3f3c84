"""Small answers that stand for much: each is refused or answered, and the gateway stays small."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from tests.security.memory import forget_peak, peak_mb
from tests.system.support.platform import ROOT, Platform
from tests.system.support.processes import descendants, is_alive
from tests.waiting import wait_until

pytestmark = pytest.mark.system
GATEWAY_MB = 300.0
AT_ONCE = 2
MOST_AT_ONCE = 4
FEWEST_AND_MOST = ((20_000, 4), (20_000, 63), (1_000_000, 4), (1_000_000, 63))
APP = ROOT / "benchmarks" / "functions" / "hostile.py"


@pytest.fixture(scope="module", autouse=True)
def hostile(platform: Platform) -> Iterator[None]:
    platform.deploy(APP)
    platform.output("hostile.array", shape=[1])
    platform.output("hostile.lists", count=1)
    yield
    assert platform.http.post("/v1/apps/hostile/stop").is_success


@pytest.mark.parametrize(
    ("size", "sides"),
    [
        pytest.param(size, sides, marks=() if (size, sides) in FEWEST_AND_MOST else pytest.mark.long)
        for size in (20_000, 100_000, 1_000_000)
        for sides in (4, 8, 63)
    ],
)
def test_an_array_of_thin_sides_is_refused(platform: Platform, size: int, sides: int) -> None:
    """Each element would be as many lists as it has sides of 1."""
    gateway = platform.pids["gateway"]
    forget_peak(gateway)

    answer = platform.call("hostile.array", shape=[size, *[1] * sides])

    assert (answer.status_code, answer.json()["code"]) == (500, "bad_output")
    assert "squeeze" in answer.json()["detail"]
    assert peak_mb(gateway) < GATEWAY_MB


@pytest.mark.parametrize(
    ("function", "arguments", "outcomes", "at_once"),
    [
        ("lists", {"count": 9_900_000}, {500}, 1),
        pytest.param("lists", {"count": 9_900_000}, {500}, AT_ONCE, marks=pytest.mark.long),
        ("lists", {"count": 2_000_000}, {200}, MOST_AT_ONCE),
        ("array", {"shape": [3_000_000]}, {200}, AT_ONCE),
        pytest.param("lists", {"count": 9_900_000}, {500}, MOST_AT_ONCE, marks=pytest.mark.long),
        pytest.param("array", {"shape": [9_900_000]}, {200}, MOST_AT_ONCE, marks=pytest.mark.long),
        pytest.param("array", {"shape": [100_000, 1, 1], "copies": 90}, {500}, MOST_AT_ONCE, marks=pytest.mark.long),
        ("array", {"shape": [900, 0], "copies": 20_000}, {500}, AT_ONCE),
        pytest.param("array", {"shape": [900, 0], "copies": 100_000}, {500}, AT_ONCE, marks=pytest.mark.long),
    ],
)
def test_answers_that_become_large_leave_the_gateway_small(
    platform: Platform, function: str, arguments: dict[str, Any], outcomes: set[int], at_once: int
) -> None:
    """Several at a time: those for which the budget has no room are told to come back."""
    gateway = platform.pids["gateway"]
    forget_peak(gateway)

    with ThreadPoolExecutor(at_once) as pool:
        answers = list(
            pool.map(lambda _: platform.call(f"hostile.{function}", **arguments).status_code, range(at_once))
        )

    assert set(answers) <= outcomes | {503}
    assert outcomes & set(answers)
    assert peak_mb(gateway) < GATEWAY_MB
    assert platform.pids["gateway"] == gateway


def test_chunks_are_bounded_as_answers_are(platform: Platform) -> None:
    """A stream whose chunk is too many lists ends with the error."""
    with platform.http.stream(
        "POST",
        "/v1/functions/hostile.streamed/calls",
        json={"input": {"shape": [50_000, 1, 1, 1, 1, 1], "count": 3}},
        headers={"Accept": "text/event-stream"},
    ) as answer:
        said = b"".join(answer.iter_bytes())

    assert b"event: error" in said
    assert b"bad_output" in said


def test_a_jobs_output_is_bounded_as_answers_are(platform: Platform) -> None:
    """Its state is told when its output cannot be shown as JSON, and msgpack has it."""
    accepted = platform.http.post(
        "/v1/functions/hostile.array/calls",
        json={"input": {"shape": [20_000, 1, 1, 1, 1, 1]}},
        headers={"Prefer": "respond-async"},
    )
    place = f"/v1/calls/{accepted.json()['id']}"
    waited = platform.http.get(place, headers={"Prefer": "wait=30"})

    assert (waited.status_code, waited.json()["code"]) == (500, "bad_output")
    packed = platform.http.get(place, headers={"Accept": "application/msgpack"})
    assert packed.status_code == 200


def test_workers_end_with_their_gateway(platform: Platform) -> None:
    """Killed, it leaves none behind, and the next one answers."""
    gateway = platform.pids["gateway"]
    assert len(platform.output("hostile.array", shape=[200_000])[0]) == 200_000
    workers = descendants(gateway)
    assert workers

    platform.signal("gateway", signal.SIGKILL)

    wait_until(lambda: not any(is_alive(pid) for pid in workers), "the workers are gone")
    wait_until(
        lambda: platform.pids.get("gateway", gateway) != gateway and platform.is_ready(),
        "the next gateway serves",
        30.0,
    )
    assert len(platform.output("hostile.array", shape=[200_000])[0]) == 200_000
