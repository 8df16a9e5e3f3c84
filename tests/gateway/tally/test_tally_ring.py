"""Parts are kept as bytes, minutes for an hour and tens for a day."""

from __future__ import annotations

from pilotlight_core.model.messages.seeing.tallies import FunctionTally
from pilotlight_gateway.tally.tally_ring import DAY_NS, HOUR_NS, MINUTE_NS, TEN_NS, TallyRing, sealed

NOON = 3_000_000 * TEN_NS


def part(minute: int, ended: int = 1) -> FunctionTally:
    return FunctionTally(since_ns=NOON + minute * MINUTE_NS, until_ns=NOON + (minute + 1) * MINUTE_NS, ended=ended)


def test_what_was_sealed_is_read_as_it_was() -> None:
    tally = part(3, 7)
    assert sealed(tally).tally() == tally
    assert len(sealed(tally).data) < 100


def test_a_ten_is_ripe_once_it_is_over() -> None:
    """All of its minutes at once, also where some are missing; then the next one."""
    ring = TallyRing()
    for minute in (0, 1, 8, 12):
        ring.add(sealed(part(minute)))
    assert ring.ripe(NOON + 9 * MINUTE_NS) == []
    assert [each.since_ns for each in ring.ripe(NOON + 10 * MINUTE_NS)] == [
        NOON + minute * MINUTE_NS for minute in (0, 1, 8)
    ]
    ring.add_ten(sealed(part(9)))
    assert ring.ripe(NOON + 10 * MINUTE_NS) == []
    assert [each.since_ns for each in ring.ripe(NOON + 30 * MINUTE_NS)] == [NOON + 12 * MINUTE_NS]


def test_a_window_has_minutes_and_before_them_tens() -> None:
    """No call twice."""
    ring = TallyRing()
    ring.add_ten(sealed(FunctionTally(since_ns=NOON - TEN_NS, until_ns=NOON, ended=10)))
    ring.add(sealed(part(0)))
    assert [each.tally().ended for each in ring.parts(NOON - TEN_NS)] == [10, 1]
    assert [each.tally().ended for each in ring.parts(NOON)] == [1]
    assert list(ring.parts(NOON + MINUTE_NS)) == []


def test_what_is_too_old_goes() -> None:
    ring = TallyRing()
    ring.add(sealed(part(0)))
    ring.add_ten(sealed(part(0)))
    size = ring.size
    assert ring.forget(NOON + HOUR_NS) == 0
    assert ring.forget(NOON + HOUR_NS + MINUTE_NS) == size // 2
    assert ring.forget(NOON + DAY_NS + MINUTE_NS) == size // 2
    assert ring.size == 0
