"""What homes see is integrals over time."""

from __future__ import annotations

from pilotlight_core.model.messages.seeing.tallies import HomeTally
from pilotlight_gateway.tally.home_tallies import LONGEST_STEP_S, HomeCounts, HomeTallies
from tests.gateway.tally.tallied_calls import WallClock
from tests.gateway.tally.tally_gateways import load


def total(homes: HomeTallies) -> HomeTally:
    together = HomeCounts(0)
    for known in homes.each():
        for part in homes.parts_of(known, 0):
            together.merge(part)
    return together.value()


def test_samples_add_up_over_minutes() -> None:
    """Credit that is idle while calls wait is seen, and a shortage."""
    homes, clock = HomeTallies(), WallClock()
    homes.note_sample([], clock())
    for second in range(200):
        clock.pass_s(1)
        homes.note_sample([load(queued=2, ready=1, slots=4, has_room=second < 10, is_short=second >= 100)], clock())
    seen = total(homes)
    assert (seen.seen_s, seen.queued_s, seen.ready_s, seen.slots_s) == (200.0, 400.0, 200.0, 800.0)
    assert (seen.idle_credit_s, seen.shortage_s, seen.wanted_s) == (10.0, 100.0, 300.0)
    assert seen.most_queued == 2


def test_a_process_that_stood_still_knows_nothing_of_that_time() -> None:
    homes, clock = HomeTallies(), WallClock()
    homes.note_sample([], clock())
    clock.pass_s(50)
    homes.note_sample([load(queued=1)], clock())
    assert total(homes).queued_s == LONGEST_STEP_S


def test_tens_outlive_the_hour() -> None:
    homes, clock = HomeTallies(), WallClock()
    for _ in range(3 * 3_600 // 5):
        homes.note_sample([load(ready=1)], clock())
        clock.pass_s(5)
    assert total(homes).ready_s > 2.8 * 3_600
