"""How fast a map submits: at once until a refusal, then one by one, and ever faster."""

from __future__ import annotations

import asyncio

from pilotlight.client.poll_backoff import LARGEST_GAP_S, SMALLEST_GAP_S, PollBackoff


class Clock:
    """Goes on as somebody sleeps."""

    def __init__(self) -> None:
        self.at = 100.0

    def __call__(self) -> float:
        return self.at

    async def sleep(self, seconds: float) -> None:
        self.at += seconds


def turns(backoff: PollBackoff, count: int) -> list[float]:
    """The instants of the next turns."""

    async def main() -> list[float]:
        return [await backoff.wait_turn() for _ in range(count)]

    return asyncio.run(main())


def test_without_refusals_there_is_no_gap() -> None:
    """Every request is sent at once."""
    clock = Clock()
    assert turns(PollBackoff(clock, clock.sleep), 100) == [100.0] * 100


def test_a_refusal_delays_all_requests() -> None:
    """After its Retry-After requests go one by one, with a shrinking gap."""
    clock = Clock()
    backoff = PollBackoff(clock, clock.sleep)
    backoff.note_refusal(100.0, 0.02)
    found = turns(backoff, 8)
    assert found[0] >= 100.02
    assert found[1] - found[0] >= SMALLEST_GAP_S
    assert found[-1] - found[-2] <= SMALLEST_GAP_S


def test_refusals_of_one_round_count_once() -> None:
    """A request that was sent before the first refusal does not count."""
    clock = Clock()
    backoff = PollBackoff(clock, clock.sleep)
    for _ in range(64):
        backoff.note_refusal(99.0, 0.0)
        clock.at += 0.001
    one, two = turns(backoff, 2)
    assert two - one <= 2 * SMALLEST_GAP_S + 1e-6


def test_each_further_round_doubles_the_gap_to_a_bound() -> None:
    """The bound is one request per second."""
    clock = Clock()
    backoff = PollBackoff(clock, clock.sleep)
    for _ in range(20):
        backoff.note_refusal(clock.at, 0.0)
    one, two = turns(backoff, 2)
    assert LARGEST_GAP_S / 2 < two - one <= LARGEST_GAP_S
