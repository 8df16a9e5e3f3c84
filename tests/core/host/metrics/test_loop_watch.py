"""How late the loop is, and noticing that the process stood still."""

from __future__ import annotations

import asyncio

import pytest

from pilotlight_core.host.metrics import LoopWatch, ProcessMetrics


def test_while_it_runs_what_is_read_is_fresh() -> None:
    """Ticks come in time."""
    watch = LoopWatch(1.0, every_s=0.02)
    assert not watch.tick(1.02)
    assert watch.received_at(1.03) == 1.03


def test_a_tick_that_is_due_later_is_not_late() -> None:
    """Who looks seldom while there is nothing to do says so."""
    watch = LoopWatch(1.0, every_s=0.02)
    assert not watch.tick(1.1, due_s=0.1)
    assert not watch.tick(1.2)

    assert watch.lags.sum == pytest.approx(0.08)


def test_after_a_gap_what_is_read_counts_from_before_it() -> None:
    """Even before the tick that notices, and until everything that had waited was read."""
    watch = LoopWatch(1.0, every_s=0.02)
    watch.tick(1.02)
    assert watch.received_at(6.0) == 1.02

    assert watch.tick(6.01)
    assert watch.received_at(6.02) == 1.02
    assert not watch.tick(6.03)
    assert watch.received_at(6.04) == 1.02
    watch.mark_fresh()

    assert watch.received_at(6.05) == 6.05
    assert (watch.stalls, round(watch.longest_s, 2)) == (1, 4.99)


def test_a_second_gap_does_not_forget_the_first() -> None:
    """Nothing was known to be fresh between them."""
    watch = LoopWatch(1.0, every_s=0.02)
    watch.tick(3.0)
    watch.tick(5.0)

    assert watch.received_at(5.01) == 1.0


def test_the_lag_of_each_tick_is_counted() -> None:
    """By how much later than due it came; one that came early was not late."""
    watch = LoopWatch(1.0, every_s=0.1)
    for at in (1.1, 1.15, 1.29, 2.39):
        watch.tick(at)

    assert dict(watch.lags.buckets()) | {"0.05": 3.0, "0.5": 3.0, "1.0": 4.0} == dict(watch.lags.buckets())
    assert watch.lags.sum == pytest.approx(0.04 + 1.0)
    assert b"pilotlight_loop_lag_seconds_count 4.0" in ProcessMetrics(watch.collect).exposition()


async def test_it_ticks_by_itself_while_its_block_lasts() -> None:
    """What was before the block is no lag; what is read after a gap is fresh, as nothing waits for `mark_fresh`."""
    instants, ticked = iter([100.0, 100.001, 100.003, 101.0]), asyncio.Event()

    def clock() -> float:
        if (at := next(instants, None)) is not None:
            return at
        ticked.set()
        return 101.001

    watch = LoopWatch(1.0, every_s=0.001)
    async with watch.running(clock):
        await ticked.wait()

    assert watch.stalls == 1
    assert watch.longest_s == pytest.approx(0.997)
    assert watch.lags.sum == pytest.approx(0.001 + 0.996, abs=1e-6)
    assert watch.received_at(101.002) == 101.002
