"""Measuring a function: from calls to the points of a curve."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import replace
from decimal import Decimal
from itertools import count

import pytest

import pilotlight
from pilotlight.client.profiling import ProfileLoad, ProfileSample, SliceBenchmark, batch_sizes, point_of, quantile
from pilotlight.client.transport.wire import OutgoingCall
from tests.sdk.scripted import Answer, Request, ScriptedPlatform, chunk, result, stream


def load(batch: int, *times: float, ran_in: int | None = None) -> ProfileLoad:
    samples = [ProfileSample(batch=ran_in or batch, execute_ms=ms, cost=Decimal("0.1")) for ms in times]
    return ProfileLoad(batch=batch, samples=samples, seconds=2.0)


def test_a_point_is_what_came_back_and_how_long_it_ran() -> None:
    """Twelve answers in two seconds are six per second, however short their time on the slice."""
    point = point_of(load(4, *[0.008] * 12), batches=True)

    assert point is not None
    assert (point.batch, point.throughput, point.p50_ms, point.p95_ms, point.samples) == (4, 6.0, 0.008, 0.008, 3)


def test_calls_that_ran_in_other_batches_do_not_count() -> None:
    """A split batch gives no point for its size, nor do too few batches."""
    assert point_of(load(4, *[20.0] * 40, ran_in=2), batches=True) is None
    assert point_of(load(4, *[20.0] * 11), batches=True) is None
    concurrent = point_of(load(4, *[20.0] * 40, ran_in=1), batches=False)
    assert concurrent is not None
    assert concurrent.throughput == 20.0


def test_a_time_of_zero_is_the_shortest() -> None:
    """The platform reports short times as 0 ms, and a curve's are more."""
    point = point_of(load(1, 0.0, 0.0, 0.0), batches=True)

    assert point is not None
    assert point.p50_ms > 0


@pytest.mark.parametrize(("part", "expected"), [(0.5, 10.0), (0.95, 19.0), (1.0, 20.0), (0.0, 1.0)])
def test_a_quantile_is_one_of_the_values(part: float, expected: float) -> None:
    """It is the smallest one that so large a part does not exceed."""
    assert quantile([float(n) for n in range(1, 21)], part) == expected


@pytest.mark.parametrize(
    ("most", "sizes"), [(1, (1,)), (2, (1, 2)), (8, (1, 2, 4, 8)), (12, (1, 2, 4, 8, 12)), (3, (1, 2, 3))]
)
def test_batch_sizes_double_up_to_the_largest(most: int, sizes: tuple[int, ...]) -> None:
    """The largest is always among them."""
    assert batch_sizes(most) == sizes


@pytest.fixture
def bench(platform: ScriptedPlatform) -> Iterator[SliceBenchmark]:
    """Calls of which every other one runs alone."""
    numbers = count()

    def usage(number: int) -> dict[str, object]:
        return {"cost": "0.001", "batch_size": 2 if number % 4 < 2 else 1}

    platform.does("POST", "/v1/functions/app.f/calls", lambda _: stream(result(1, usage=usage(next(numbers)))))
    with pilotlight.Client(url=platform.url, api_key="k") as client:
        yield SliceBenchmark(client.calls, OutgoingCall(path="/v1/functions/app.f/calls", input={}, typed=False))


@pytest.mark.parametrize("batches", [True, False])
def test_a_load_goes_on_until_it_makes_a_point(bench: SliceBenchmark, *, batches: bool) -> None:
    """It lasts for three batches, or three calls of each concurrent one, however short the time."""
    done = pilotlight.client.shared_portal().run(bench.measure(2, 0.0, batches=batches, most=4))

    # Of the rounds every other one is split: the fifth makes three.
    assert len(done.samples) == (10 if batches else 6)
    assert done.cost == Decimal("0.001") * len(done.samples)
    assert done.calls_per_second > 0
    assert {sample.execute_ms for sample in done.samples} == {8.0}


@pytest.mark.parametrize("batches", [True, False])
def test_at_the_largest_size_there_is_always_a_call_that_waits(platform: ScriptedPlatform, *, batches: bool) -> None:
    """Twice as many callers as fit: what comes back is what a container does that is never idle."""
    four, came = threading.Event(), count(1)

    def call(_: Request) -> Answer:
        if next(came) == 4:
            four.set()
        return replace(stream(result(1, usage={"cost": "0.001", "batch_size": 2})), wait_for=four)

    platform.does("POST", "/v1/functions/app.f/calls", call)
    with pilotlight.Client(url=platform.url, api_key="k") as client:
        bench = SliceBenchmark(client.calls, OutgoingCall(path="/v1/functions/app.f/calls", input={}, typed=False))
        done = pilotlight.client.shared_portal().run(bench.measure(2, 0.0, batches=batches, most=2))

    assert 12 <= len(done.samples) < 16  # three of each at least; those under way when there are enough end too
    assert done.seconds < 5.0  # else the first two were answered although no others had come


def test_an_engine_has_no_call_that_waits_and_its_pace_is_told(platform: ScriptedPlatform) -> None:
    """Of one that waits, the first token would say nothing."""
    said = stream(chunk(0, {"token_ids": [1]}), chunk(1, {"token_ids": [2, 3]}), result(None))
    platform.does("POST", "/v1/functions/app.f/calls", lambda _: said)
    with pilotlight.Client(url=platform.url, api_key="k") as client:
        bench = SliceBenchmark(client.calls, OutgoingCall(path="/v1/functions/app.f/calls", input={}, typed=False))
        portal = pilotlight.client.shared_portal()
        portal.run(bench.warm_up(lambda _: None, 10.0))
        done = portal.run(bench.measure(2, 0.0, batches=False, most=2))

    assert len(done.samples) == 6  # of two callers, not four
    assert done.pace is not None
    assert done.pace.answers == 6
    assert done.pace.ttft_p50_ms > 0
