"""Noticing that the process stood still."""

from __future__ import annotations

from pilotlight_runtime.node.agent import StallWatch


def test_while_it_runs_what_is_read_is_fresh() -> None:
    """Ticks come in time."""
    watch = StallWatch(1.0)
    assert not watch.tick(1.02)
    assert watch.received_at(1.03) == 1.03


def test_after_a_gap_what_is_read_counts_from_before_it() -> None:
    """Even before the tick that notices, and until everything that had waited was read."""
    watch = StallWatch(1.0)
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
    watch = StallWatch(1.0)
    watch.tick(3.0)
    watch.tick(5.0)

    assert watch.received_at(5.01) == 1.0
