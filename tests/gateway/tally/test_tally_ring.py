"""Parts are kept as bytes, minutes for an hour and tens for a day."""

from __future__ import annotations

from pilotlight_core.model.messages.seeing.tallies import FunctionTally
from pilotlight_gateway.tally.tally_ring import DAY_NS, HOUR_NS, LEVELS_NS, MINUTE_NS, TEN_NS, TallyRing, sealed

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


def ten(number: int, *, good: int = 9, bad: int = 1) -> FunctionTally:
    """The ten with this number after noon: of all its calls, and of those that have a level."""
    since_ns = NOON + number * TEN_NS
    levels = {"availability": good + bad, "unary": good}
    return FunctionTally(since_ns=since_ns, until_ns=since_ns + TEN_NS, ended=10, good=levels, bad={"unary": bad})


def aged(tens: int) -> TallyRing:
    """A ring after so many tens, each with ten calls."""
    ring = TallyRing()
    for number in range(tens):
        ring.add_ten(sealed(ten(number)))
        ring.add_levels(ten(number))
        ring.forget(NOON + (number + 1) * TEN_NS)
    return ring


def test_levels_reach_back_three_days() -> None:
    """Each call once, wherever tens and hours meet; of a day nothing but tens is told, and of no hour what all have."""
    for tens in (700, 701, 703, 705):
        ring, until_ns = aged(tens), NOON + tens * TEN_NS
        told = [part.tally() for part in ring.parts(until_ns - LEVELS_NS)]
        bad, good = (
            sum(counts.get("unary", 0) for counts in each)
            for each in zip(*[(one.bad, one.good) for one in told], strict=True)
        )
        assert 432 <= bad <= 437
        assert good == 9 * bad
        assert [one.since_ns for one in told[1:]] == [one.until_ns for one in told[:-1]]
        assert 138 <= sum(one.ended for one in told) // 10 <= 144
        day = [part.tally() for part in ring.parts(until_ns - DAY_NS)]
        assert sum(one.ended for one in day) == 1_440
    assert all("availability" not in part.tally().good for part in ring.hours)
    assert len(ring.hours) <= 73
    assert max(len(part.data) for part in ring.hours) < 100


def test_a_function_without_levels_has_no_hours() -> None:
    ring = TallyRing()
    ring.add_levels(FunctionTally(since_ns=NOON, until_ns=NOON + TEN_NS, good={"availability": 9}, ended=9))
    assert not ring.hours


def test_hours_are_told_where_tens_had_no_room() -> None:
    """Up to where minutes begin."""
    ring = aged(700)
    until_ns = NOON + 700 * TEN_NS
    ring.tens.clear()
    ring.minutes.append(sealed(part(7_000)))
    told = [one.tally() for one in ring.parts(until_ns - LEVELS_NS)]
    assert sum(one.bad.get("unary", 0) for one in told) in range(426, 438)
    assert told[-1].ended == 1


def test_what_is_too_old_goes() -> None:
    ring = TallyRing()
    ring.add(sealed(part(0)))
    ring.add_ten(sealed(part(0)))
    size = ring.size
    assert ring.forget(NOON + HOUR_NS) == 0
    assert ring.forget(NOON + HOUR_NS + MINUTE_NS) == size // 2
    assert ring.forget(NOON + DAY_NS + MINUTE_NS) == size // 2
    assert ring.size == 0
