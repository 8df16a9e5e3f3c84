"""How long batches took, until it is told."""

from __future__ import annotations

from pilotlight_runtime.work_log import MOST_KINDS, MOST_MS, Worker, WorkLog

ONE = Worker(container="c1", version="v", slice="cpu-0")


def test_the_latest_durations_are_kept_and_all_are_counted() -> None:
    """Per container and batch size; taken once."""
    log = WorkLog()
    for number in range(MOST_MS + 3):
        log.add(ONE, 4, float(number))
    log.add(ONE, 1, 0.5)

    four, one = log.take()

    assert (four.batch, four.count, len(four.ms)) == (4, MOST_MS + 3, MOST_MS)
    assert {float(MOST_MS), MOST_MS + 1.0, MOST_MS + 2.0} <= set(four.ms)
    assert (one.container, one.version, one.slice, one.ms) == ("c1", "v", "cpu-0", (0.5,))
    assert log.take() == ()


def test_it_is_bounded() -> None:
    """What is too much of a second is left out."""
    log = WorkLog()
    for number in range(MOST_KINDS + 10):
        log.add(ONE, number + 1, 1.0)

    assert len(log.take()) == MOST_KINDS
