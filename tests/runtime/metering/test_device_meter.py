"""The meters of a device are the whole device, however it is cut meanwhile."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pilotlight_core.model.messages.usage import LeaseState, UsageEvent
from pilotlight_core.model.units import WHOLE_DEVICE
from pilotlight_runtime.metering.device_meter import DeviceMeter, MeteredDevice
from pilotlight_runtime.metering.meter import MeterMisuse
from pilotlight_runtime.metering.metered_slice import OPERATOR, SliceOwner
from tests.example_counts import examples

SECOND = 10**9
ACME = SliceOwner(tenant="acme", app="shop", function="rank", version="ver_1", container="c1")


@examples(50)
@given(st.lists(st.integers(1, 300_000), max_size=3), st.lists(st.tuples(st.integers(0, 2), st.integers(1, 10**9))))
def test_a_device_is_accounted_whole(slices: list[int], steps: list[tuple[int, int]]) -> None:
    """Tenants and operator together have wall time times the device, to the last ppm-nanosecond."""
    sizes = {f"s{n}": ppm for n, ppm in enumerate(slices)}
    device = DeviceMeter(MeteredDevice(instance="i", node="n", device="gpu0", price="h100"), sizes, at_ns=7)
    now = 7
    events = []
    for which, passed in steps:
        now += passed
        if which < len(slices):
            meter = device.slice(f"s{which}")
            meter.transition(LeaseState.FREE if meter.state is LeaseState.IDLE else LeaseState.IDLE, now,
                             OPERATOR if meter.state is LeaseState.IDLE else ACME)  # fmt: skip
        else:
            events += device.checkpoint(now)
    events += device.checkpoint(now)
    device.check_integrity()

    assert sum((event.t1 - event.t0) * event.ppm for event in events) == (now - 7) * WHOLE_DEVICE


def test_a_gap_after_a_crash_is_the_operators() -> None:
    """A new incarnation meters from where the old one's records of the device end, as nobody's time."""
    device = DeviceMeter(
        MeteredDevice(instance="i2", node="n", device="cpu", price="cpu"),
        {"a": 500_000, "b": 500_000},
        at_ns=90,
        since_ns=60,
    )
    events = device.checkpoint(100)
    device.check_integrity()

    assert [(event.slice, event.t0, event.t1, event.tenant) for event in events] == [
        ("a", 60, 100, ""),
        ("b", 60, 100, ""),
    ]


def test_slices_larger_than_their_device_are_refused() -> None:
    """A layout that would bill a device more than once is a mistake."""
    with pytest.raises(MeterMisuse):
        DeviceMeter(MeteredDevice(instance="i", node="n", device="d", price="p"), {"a": WHOLE_DEVICE, "b": 1}, at_ns=0)


def gpu_meter(slices: dict[str, int], at_ns: int = 0) -> DeviceMeter:
    return DeviceMeter(MeteredDevice(instance="i", node="n", device="g", price="h100"), slices, at_ns=at_ns)


def lines(events: list[UsageEvent]) -> list[tuple[str, int, int, int]]:
    return sorted((event.slice, event.t0, event.t1, event.ppm) for event in events)


def test_a_device_that_is_cut_anew_is_the_whole_device_all_the_time() -> None:
    """Old parts end where new ones begin; what no part has is the rest, which is another one each time."""
    device = gpu_meter({"g": WHOLE_DEVICE})
    device.recut({"g:3g@4": 500_000}, 10)
    device.recut({"g:3g@4": 500_000, "g:1g@0": 125_000}, 25)
    events = device.checkpoint(40)
    device.check_integrity()

    assert lines(events) == [
        ("g", 0, 10, WHOLE_DEVICE),
        ("g.rest", 10, 25, 500_000),
        ("g.rest", 25, 40, 375_000),
        ("g:1g@0", 25, 40, 125_000),
        ("g:3g@4", 10, 40, 500_000),
    ]
    assert device.slices == {"g:3g@4": 500_000, "g:1g@0": 125_000}
    assert len({event.id for event in events}) == len(events)


def test_what_stays_is_not_disturbed_by_a_cut() -> None:
    """The container on it goes on with its call, in one interval."""
    device = gpu_meter({"g:3g@4": 500_000, "g:1g@0": 125_000})
    stays = device.slice("g:3g@4")
    stays.transition(LeaseState.IDLE, 0, ACME)
    stays.call_started("a", "acme", 5)
    device.recut({"g:3g@4": 500_000, "g:2g@0": 250_000}, 20)

    assert device.slice("g:3g@4") is stays
    assert stays.call_ended("a", "ok", 35).ns == 30
    assert {(one.slice, one.state.value) for one in device.checkpoint(40) if one.tenant} == {
        ("g:3g@4", "idle"), ("g:3g@4", "busy"),
    }  # fmt: skip
    device.check_integrity()


def test_a_part_that_somebody_has_cannot_be_cut_away() -> None:
    """Nor can parts be more than the device; neither changes anything."""
    device = gpu_meter({"g:3g@4": 500_000})
    device.slice("g:3g@4").transition(LeaseState.IDLE, 0, ACME)

    with pytest.raises(MeterMisuse, match="g:3g@4 cannot go"):
        device.recut({}, 10)
    with pytest.raises(MeterMisuse, match="do not fit"):
        device.recut({"g:3g@4": 500_000, "g:4g@0": 500_001}, 10)
    assert lines(device.checkpoint(20)) == [("g.rest", 0, 20, 500_000), ("g:3g@4", 0, 20, 500_000)]
    device.check_integrity()


def test_a_blank_gives_way_to_a_cut() -> None:
    """Nobody pays for it but the operator, up to that instant."""
    device = DeviceMeter(MeteredDevice(instance="i", node="n", device="g", price="h100"), {"g": WHOLE_DEVICE}, at_ns=0)
    device.slice("g").transition(LeaseState.BLANK, 10)

    device.recut({"g:1g@0": 125_000}, 30)

    blank = [event for event in device.checkpoint(40) if event.state is LeaseState.BLANK]
    assert [(event.t0, event.t1, event.tenant) for event in blank] == [(10, 30, "")]
    device.check_integrity()


def test_no_part_ends_before_what_another_has_seen() -> None:
    """An instant that is older than that counts as that."""
    device = gpu_meter({"g:3g@4": 500_000, "g:3g@0": 500_000})
    device.slice("g:3g@4").transition(LeaseState.IDLE, 50, ACME)
    device.recut({"g:3g@4": 500_000}, 40)

    assert {event.t1 for event in device.checkpoint(45)} == {50}
    device.check_integrity()


CUTS: tuple[dict[str, int], ...] = (
    {"g": WHOLE_DEVICE},
    {"g:3g@4": 500_000},
    {"g:3g@4": 500_000, "g:1g@0": 125_000},
    {"g:7g@0": WHOLE_DEVICE},
    {},
)


@examples(200)
@given(st.lists(st.tuples(st.sampled_from(["cut", "write", "crash"]), st.integers(0, 4), st.integers(0, 30))))
def test_cuts_and_crashes_neither_lose_nor_repeat_a_nanosecond(story: list[tuple[str, int, int]]) -> None:
    """An agent is killed and starts anew, and finds the device cut otherwise: all records together are the device."""
    device, now, written, number = gpu_meter(CUTS[0], 7), 7, [], 0
    for what, which, passed in story:
        now += passed
        if what == "cut":
            device.recut(CUTS[which], now)
        elif what == "write":
            written += device.checkpoint(now)
        else:
            number += 1
            since = max((event.t1 for event in written), default=None)
            device = DeviceMeter(
                MeteredDevice(instance=f"i{number}", node="n", device="g", price="h100"),
                CUTS[which],
                at_ns=now,
                since_ns=since,
            )
    written += device.checkpoint(now)
    device.check_integrity()

    began = min((event.t0 for event in written), default=now)
    assert sum((event.t1 - event.t0) * event.ppm for event in written) == (now - began) * WHOLE_DEVICE
    edges = sorted({edge for event in written for edge in (event.t0, event.t1)})
    for t0, t1 in itertools.pairwise(edges):
        assert sum(event.ppm for event in written if event.t0 <= t0 and t1 <= event.t1) == WHOLE_DEVICE


def test_an_interval_says_where_and_how_it_was_bought() -> None:
    """Every part of a device, also the rest; and dates follow a clock that was set."""
    place = {"region": "eu", "zone": "eu-a", "purchase": "spot"}
    of = MeteredDevice(instance="i", node="n", device="g", price="h100", **place)
    device = DeviceMeter(of, {"s0": 400_000}, at_ns=0)
    first = device.checkpoint(10)
    device.set_wall(5_000)
    second = device.checkpoint(20)

    assert {(e.slice, e.region, e.zone, e.purchase) for e in first} == {
        ("s0", "eu", "eu-a", "spot"), ("g.rest", "eu", "eu-a", "spot"),
    }  # fmt: skip
    assert [e.wall_ns for e in first + second] == [10, 10, 5_020, 5_020]


def test_a_device_on_which_nothing_changes_is_told_of_once_a_minute() -> None:
    """Free or held; while a call runs, each second; a part that is cut away is told of at once."""
    device = DeviceMeter(MeteredDevice(instance="i", node="n", device="gpu0", price="h100"), {"a": 400_000}, at_ns=0)
    assert not device.may_wait(1)  # nothing was told yet
    device.checkpoint(SECOND)
    assert [device.may_wait(at * SECOND) for at in (2, 60, 61, 62)] == [True, True, False, False]

    device.slice("a").transition(LeaseState.IDLE, 2 * SECOND, ACME)
    assert not device.may_wait(3 * SECOND)
    device.checkpoint(3 * SECOND)
    assert [device.may_wait(at) for at in (62 * SECOND, 63 * SECOND)] == [True, False]
    device.slice("a").call_started("call", "acme", 3 * SECOND)
    assert not device.may_wait(4 * SECOND)
    device.slice("a").call_ended("call", "ok", 4 * SECOND)
    assert not device.may_wait(4 * SECOND)
    device.checkpoint(4 * SECOND)
    assert device.may_wait(4 * SECOND)
    device.slice("a").transition(LeaseState.FREE, 9 * SECOND // 2)
    assert not device.may_wait(5 * SECOND)
    device.checkpoint(5 * SECOND)
    assert device.may_wait(6 * SECOND)
    device.recut({"b": 300_000}, 7 * SECOND)
    assert not device.may_wait(8 * SECOND)

    told = device.checkpoint(9 * SECOND)
    assert [(event.slice, event.t0, event.t1) for event in told if event.slice != "gpu0.rest"] == [
        ("a", 5 * SECOND, 7 * SECOND), ("b", 7 * SECOND, 9 * SECOND),
    ]  # fmt: skip
    device.check_integrity()
