"""The journal of what stands, and trails of what does not yet."""

from __future__ import annotations

from pilotlight_placement.fleet.history import Journal, Op, Trail, chain


def test_the_journal_tells_what_came_after_a_revision() -> None:
    """Newest first; nothing after the present."""
    journal = Journal()
    ops = [Op(revision=number) for number in range(1, 5)]
    for op in ops:
        journal.add(op)

    assert journal.since(2, now=4) == [ops[3], ops[2]]
    assert journal.since(0, now=4) == ops[::-1]
    assert journal.since(4, now=4) == []


def test_what_is_forgotten_or_to_come_is_not_told() -> None:
    """A bounded journal returns None if it lacks an op."""
    journal = Journal(most=2)
    for number in range(1, 5):
        journal.add(Op(revision=number))

    assert journal.since(1, now=4) is None
    assert journal.since(2, now=4) is not None
    assert journal.since(9, now=4) is None


def test_a_trail_is_read_from_its_end() -> None:
    """And one that branches keeps both ends."""
    first = Trail(op=Op(revision=1), earlier=None)
    one, other = (Trail(op=Op(revision=number), earlier=first) for number in (2, 3))

    assert [op.revision for op in chain(one)] == [2, 1]
    assert [op.revision for op in chain(other)] == [3, 1]
    assert list(chain(None)) == []
