"""Calls are added up by function and minute, within bounds that hold whatever tenants do."""

from __future__ import annotations

import tracemalloc

import msgspec
import pytest

from pilotlight_core.model.messages.call_messages import Spent
from pilotlight_core.model.messages.seeing.tallies import CallTotals, FunctionTally
from pilotlight_gateway.calls.call_sink import FailedCall
from pilotlight_gateway.streams.stream_pace import StreamPace
from pilotlight_gateway.tally.sketch import count_of, quantile_of
from pilotlight_gateway.tally.tallies import FOLD_AT, KEYS, OTHERS, SEALED_BYTES, Tallied, Tallies
from pilotlight_gateway.tally.tally import TallyCounts, calls_of
from tests.builders.calls import prepared_call
from tests.gateway.tally.tallied_calls import WallClock, end, fail, finish, version


@pytest.fixture
def clock() -> WallClock:
    return WallClock()


@pytest.fixture
def tallies(clock: WallClock) -> Tallies:
    return Tallies(clock)


def beat(tallies: Tallies, clock: WallClock, seconds: float = 0.1, times: int = 1) -> None:
    for _ in range(times):
        clock.pass_s(seconds)
        tallies.fold()


def the(tallies: Tallies, function: str = "acme:app.fn") -> Tallied:
    (found,) = [each for each in tallies.each() if each.key.function == function]
    return found


def total(tallies: Tallies, function: str = "acme:app.fn", since_ns: int = 0) -> FunctionTally:
    """All that is known of a function since an instant."""
    together = TallyCounts(0)
    for part in tallies.parts_of(the(tallies, function), since_ns):
        together.merge(part)
    return together.value(together.until_ns)


def test_what_calls_were_is_added_up(tallies: Tallies, clock: WallClock) -> None:
    """Outcomes, durations, stages, batches, bytes, units, starts and service levels."""
    fn = version(p95_ms=50.0)
    for number in range(100):
        end(tallies, fn, float(number + 1), units={"completion_tokens": 3})
    end(tallies, fn, 2_000.0, cold_start={"load": 1_500.0}, attempts=2)
    fail(tallies, fn, "no_capacity")
    fail(tallies, fn, "bad_input")
    fail(tallies, fn, "cancelled", gone=True)
    beat(tallies, clock)

    seen = total(tallies)
    assert (seen.arrivals, seen.ended, seen.gone, seen.inside) == (104, 101, 1, 0)
    assert seen.failures == {"no_capacity": 1, "bad_input": 1}
    assert (seen.good, seen.bad) == ({"availability": 101, "unary": 50}, {"availability": 1, "unary": 51})
    assert quantile_of(seen.durations, 0.5) == pytest.approx(51.0, rel=0.02)
    assert count_of(seen.failed_durations) == 2
    assert count_of(seen.stages["queue"]) == pytest.approx(101, abs=3)
    assert "respond" not in seen.stages
    assert (seen.cold_calls, seen.cold_steps, seen.retried, seen.attempts) == (1, {"load": 1_500.0}, 1, 102)
    assert seen.batches[4].calls == 101
    assert seen.batches[4].gpu_ms == pytest.approx(101.0)
    assert (seen.busy_ns, seen.body_in, seen.body_out) == (202_000_000, 505, 303)
    assert seen.units == {"completion_tokens": 300}
    assert [call.total_us for call in seen.slowest][:2] == [2_000_000, 100_000]
    assert len(seen.samples) == 16
    assert sum(call.weight for call in seen.samples) == pytest.approx(101)


def test_calls_inside_are_an_integral_over_time(tallies: Tallies, clock: WallClock) -> None:
    """Two calls for three seconds, across the end of a minute."""
    fn = version()
    clock.pass_s(58)
    for _ in range(2):
        tallies.call_arrived(fn)
    beat(tallies, clock)
    beat(tallies, clock, 0.5, 6)
    assert the(tallies).counts.inside == 2
    for name in "ab":
        finish(tallies, prepared_call(name, version=fn), 3_100.0)
    tallies.fold()
    seen = total(tallies)
    assert seen.inside_ms == pytest.approx(2 * 3_000.0)
    assert (seen.arrivals, seen.ended, seen.inside) == (2, 2, 0)


def test_what_did_not_run_is_no_arrival(tallies: Tallies, clock: WallClock) -> None:
    fn = version()
    tallies.call_arrived(fn)
    tallies.call_arrived(fn, -1)
    beat(tallies, clock)
    assert list(tallies.parts_of(the(tallies), 0)) == []


def test_what_is_refused_before_it_is_a_call_arrives_with_its_refusal(tallies: Tallies, clock: WallClock) -> None:
    """If it is known for which version it came; else nothing is kept."""
    for called in (version(), None):
        tallies.call_failed(FailedCall("rate_limited", "acme", called, None, None, 1.0, is_client_gone=False))
    beat(tallies, clock)
    seen = total(tallies)
    assert (seen.arrivals, seen.failures, seen.bad) == (1, {"rate_limited": 1}, {})
    assert len(tallies) == 1


def test_how_streams_came(tallies: Tallies, clock: WallClock) -> None:
    """First chunks, gaps, and what waited for its reader; gaps of one that goes on are counted before it ends."""
    fn = version(ttft_ms=100.0, itl_ms=20.0)
    call = prepared_call(version=fn)
    call.pace = pace = StreamPace(80.0, 1.0, 20.0)
    pace.note(1.01, 1)
    pace.note(1.09, 2)
    pace.unread_ms = 5.0
    tallies.add_gaps(call, [(7.0, 3)])
    finish(tallies, call, 90.0)
    beat(tallies, clock)
    seen = total(tallies)
    assert (count_of(seen.first_chunks), count_of(seen.gaps), seen.unread_ms) == (1, 6, 5.0)
    assert (seen.good["first_chunk"], seen.bad["gap"]) == (1, 1)


def test_minutes_are_sealed_and_kept_for_an_hour_and_tens_for_a_day(tallies: Tallies, clock: WallClock) -> None:
    """However old, a window has all calls of it; what is older than a day is gone."""
    fn, began = version(), clock.at_ns
    for _ in range(26 * 60):
        end(tallies, fn)
        beat(tallies, clock, 60)
    assert the(tallies).ring.size == tallies.sealed_bytes
    assert len(the(tallies).ring.minutes) in (59, 60, 61)
    assert len(the(tallies).ring.tens) in (143, 144, 145)
    assert total(tallies, since_ns=clock.at_ns - 30 * 60 * 10**9).ended == 31  # the minute that goes on too
    day = total(tallies, since_ns=clock.at_ns - clock.at_ns % (600 * 10**9) - 24 * 3600 * 10**9)
    assert day.ended == pytest.approx(24 * 60, abs=11)
    assert total(tallies, since_ns=began).ended < 26 * 60
    assert tallies.totals_of(the(tallies)).ended == 26 * 60


def test_a_gateway_adds_up_what_gathers_before_it_is_much(tallies: Tallies) -> None:
    """Without waiting for its beat."""
    for _ in range(FOLD_AT):
        end(tallies, version())
    assert tallies.calls == FOLD_AT


def test_versions_count_apart(tallies: Tallies, clock: WallClock) -> None:
    for number in (1, 2, 2):
        end(tallies, version(number=number))
    beat(tallies, clock)
    assert sorted(each.counts.ended for each in tallies.each()) == [1, 2]


def test_ten_thousand_functions_cost_no_more_than_the_bounds(tallies: Tallies, clock: WallClock) -> None:
    """Two minutes of them: each call is counted somewhere, and memory does not grow with the number of names."""
    fleet = [version(f"f{number}", tenant=f"t{number % 200}") for number in range(10_000)]
    tracemalloc.start()
    try:
        for _ in range(2):
            for one in fleet:
                end(tallies, one, 3.0)
            beat(tallies, clock, 60)
        beat(tallies, clock, 0.1, 80)
        held, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(tallies) <= KEYS + OTHERS + 1
    assert tallies.calls == 20_000
    told = sum(calls_of(part) for each in tallies.each() for part in tallies.parts_of(each, 0))
    assert told == 20_000
    assert held < 40_000_000
    assert tallies.sealed_bytes == sum(each.ring.size for each in tallies.each())


def test_an_idle_function_makes_room_for_another_one(clock: WallClock) -> None:
    """Which counts as one of the others until then."""
    tallies = Tallies(clock, keys=2)
    for name in ("a", "b", "c"):
        end(tallies, version(name))
    beat(tallies, clock)
    assert {each.key.function for each in tallies.each()} == {"acme:app.a", "acme:app.b", "acme:"}
    beat(tallies, clock, 60, 3)
    end(tallies, version("b"))
    beat(tallies, clock)
    end(tallies, version("c"))
    beat(tallies, clock)
    assert {each.key.function for each in tallies.each()} == {"acme:app.b", "acme:app.c", "acme:"}


def test_the_oldest_minutes_make_room(clock: WallClock) -> None:
    """Of whatever function, when sealed parts are too many bytes together; it is counted."""
    tallies = Tallies(clock, most_sealed=20_000)
    for _ in range(30):
        for name in ("a", "b", "c", "d"):
            end(tallies, version(name))
        beat(tallies, clock, 60)
    beat(tallies, clock, 0.1, 5)
    assert tallies.sealed_bytes <= 20_000 + 2_000
    assert tallies.dropped > 0
    assert tallies.sealed_bytes == sum(each.ring.size for each in tallies.each())
    assert SEALED_BYTES == 64_000_000


def test_a_minute_of_many_different_durations_is_sealed_early(clock: WallClock) -> None:
    """And nothing of it is lost."""
    tallies = Tallies(clock, live_buckets=100)
    for number in range(200):
        end(tallies, version(), 1.1**number / 1000)
    beat(tallies, clock, 0.1, 10)
    assert the(tallies).ring.minutes
    assert total(tallies).ended == 200


@pytest.mark.parametrize("lie", [{"batch_size": 2**40}, {"steps": 1e12}])
def test_what_a_node_makes_up_spoils_no_counts(tallies: Tallies, clock: WallClock, lie: dict[str, float]) -> None:
    """Sums beyond what the readers of a sealed minute take would be unreadable for an hour, and so would all others."""
    fn, size = version(), int(lie.get("batch_size", 4))
    for _ in range(3):
        spent = Spent(ns=2_000_000, ppm=500_000, price="h100", batch_size=size)
        end(tallies, fn, cold_start={"load": lie.get("steps", 1.0)}, spent=spent)
    end(tallies, version("honest"))
    beat(tallies, clock, 60.0, times=12)

    assert total(tallies).ended == 3
    assert total(tallies, "acme:app.honest").ended == 1
    encoded = msgspec.msgpack.encode(tallies.totals_of(the(tallies)))
    assert msgspec.msgpack.decode(encoded, type=CallTotals).batched == 3


def test_a_functions_counters_do_not_fall_as_its_old_versions_are_forgotten(clock: WallClock) -> None:
    """A Prometheus takes a counter that fell for one that began anew, and adds all of it once more."""
    tallies = Tallies(clock, keys=2)
    for _ in range(5):
        end(tallies, version(number=1))
    beat(tallies, clock, 130.0)
    end(tallies, version(number=2))
    beat(tallies, clock, 130.0, times=2)
    end(tallies, version(number=2))
    beat(tallies, clock)
    assert sum(tallies.totals_of(each).ended for each in tallies.each()) == 7
    end(tallies, version("another"))
    beat(tallies, clock, 70.0, times=2)

    counted = {each.key.function: tallies.totals_of(each).ended for each in tallies.each()}
    assert counted == {"acme:app.fn": 7, "acme:app.another": 1}
