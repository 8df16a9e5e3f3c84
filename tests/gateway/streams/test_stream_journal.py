"""The journal of a stream: where another container goes on, and that it repeats what was sent."""

from __future__ import annotations

from pilotlight_core.model.messages.call_messages import ResumePoint
from pilotlight_core.model.streams.resuming import JOURNAL_BYTES, MARK_BYTES
from pilotlight_gateway.streams.stream_journal import FRESH_BYTES, STEP_BYTES, StreamJournal


def journal_of(*events: bytes, saved: int | None = None) -> StreamJournal:
    """One whose stream began at 10 s and has had an event each second, saved behind the event `saved`."""
    journal = StreamJournal()
    journal.begin(10.0)
    for number, data in enumerate(events, 1):
        journal.note(number, (data,), 10.0 + number)
        if number == saved:
            journal.save(number, b"state", 10.0 + number)
    return journal


def test_without_a_checkpoint_it_begins_anew() -> None:
    """What was sent is repeated, in the time that it took."""
    assert journal_of(b"a", b"b").point(2) == ResumePoint(after=0, state=b"", sent=2, repeat_ms=2_000.0)


def test_behind_a_checkpoint_only_what_follows_is_repeated() -> None:
    """An event that is not the same, or was never sent, is told apart."""
    journal = journal_of(b"a", b"b", b"c", saved=1)

    assert journal.point(3) == ResumePoint(after=1, state=b"state", sent=3, repeat_ms=2_000.0)
    assert [journal.repeats(seq, data) for seq, data in ((2, b"b"), (3, b"c"), (3, b"x"), (4, b"d"))] == [
        True, True, False, False,
    ]  # fmt: skip


def test_a_checkpoint_while_it_repeats_stands_where_it_was_saved() -> None:
    """The events behind it are known still; an older one than the last changes nothing."""
    journal = journal_of(b"a", b"b", b"c", saved=1)
    journal.save(2, b"later", 20.0)
    journal.save(1, b"older", 21.0)

    assert journal.point(3).state == b"later"
    assert journal.repeats(3, b"c")
    assert not journal.repeats(3, b"b")


def test_it_is_closed_when_it_has_no_room() -> None:
    """It says why, and holds nothing; the next checkpoint opens it."""
    journal = StreamJournal()
    most = JOURNAL_BYTES // MARK_BYTES
    for number in range(1, most + 2):
        journal.note(number, (b"x",), 1.0)

    assert "since the last checkpoint" in journal.closed
    assert (journal.size, journal.wanted) == (0, 0)
    journal.save(most, b"behind what came", 2.0)
    assert journal.closed
    journal.save(most + 1, b"state", 2.0)
    assert not journal.closed
    assert journal.wanted == STEP_BYTES


def test_what_a_function_repeats_by_its_own_doing_is_charged() -> None:
    """It could end its container to work for nothing."""
    journal = StreamJournal()
    journal.begin(1.0)
    journal.note(1, (b"one",), 5.0)
    assert journal.point(1).repeat_ms == 4_000.0
    journal.charge_repeats()
    assert journal.point(1).repeat_ms == 0.0


def test_what_was_under_way_in_a_silent_container_is_repeated_too() -> None:
    """It stays billed there, so as much is free elsewhere; once."""
    journal = journal_of(b"a", saved=1)
    journal.note_silence(15.0, 300.0)
    point = journal.point(1)
    assert (point.repeat_ms, point.fell_silent) == (4_000.0, True)
    journal.begin(20.0)
    journal.note_silence(21.0, 300.0)
    assert journal.point(1).repeat_ms == 4_000.0, "what was free is not given back again"
    journal.begin(30.0)
    journal.note(2, (b"b",), 33.0)
    point = journal.point(2)
    assert (point.repeat_ms, point.fell_silent) == (4_000.0, True), "others may have been produced, a second long"
    journal.note(3, (b"c",), 34.5)
    point = journal.point(3)
    assert (point.repeat_ms, point.fell_silent) == (4_500.0, False), "these were all that there can have been"


def test_the_time_between_containers_makes_no_room() -> None:
    """What is repeated is free for as long as it took, not as long as its stream waited."""
    journal = journal_of(b"a", b"b")
    journal.begin(100.0)
    journal.note_caught_up(101.0)
    journal.note(3, (b"c",), 102.0)

    assert journal.point(3).repeat_ms == 3_000.0


def test_a_state_leaves_nothing_to_repeat() -> None:
    """But for what may have been produced behind it, unheard."""
    journal = journal_of(b"a")
    journal.note_silence(15.0, 300.0)
    journal.begin(20.0)
    journal.save(1, b"state", 21.0)

    assert (journal.point(1).repeat_ms, journal.point(1).fell_silent) == (3_000.0, True)
    journal.save(1, b"state", 24.5)
    assert (journal.point(1).repeat_ms, journal.point(1).fell_silent) == (0.0, False)


def test_a_silence_costs_no_more_than_its_function_may_run() -> None:
    """Whoever notices it late."""
    journal = StreamJournal()
    journal.begin(10.0)
    journal.note(1, (b"a",), 12.0)
    journal.note_silence(1_000.0, 30.0)
    assert journal.point(1).repeat_ms == 32_000.0


def test_only_the_last_events_are_kept_themselves() -> None:
    """All of them are known again, however many came together, and none of those that a state has."""
    journal = StreamJournal()
    large = bytes(FRESH_BYTES)
    journal.note(1, (b"a", b"b", large), 1.0)
    journal.note(4, (b"c", b"d"), 2.0)
    assert journal.size == 5 * MARK_BYTES
    assert [journal.repeats(seq, data) for seq, data in ((1, b"a"), (3, large), (4, b"c"), (5, b"d"))] == [True] * 4
    assert [journal.repeats(seq, data) for seq, data in ((2, b"a"), (3, b"b"), (5, b"c"), (6, b"e"))] == [False] * 4
    journal.save(4, b"state", 3.0)
    assert journal.size == len(b"state") + MARK_BYTES
    assert journal.wanted == STEP_BYTES
    rooms = []
    for journal.room in (0, STEP_BYTES, 2 * STEP_BYTES):
        rooms.append(journal.is_settled)
    assert rooms == [False, True, False]
    assert (journal.repeats(5, b"d"), journal.repeats(5, b"c")) == (True, False)
    journal.save(5, b"", 3.0)
    assert (journal.size, journal.wanted) == (0, 0)
    assert not journal.is_settled
