"""The slot table: fence, room, duplicates, time."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pilotlight_core.model.messages.call_messages import BodyRef, Outcome, Reconcile, Refusal, Run
from pilotlight_runtime.calls import slot_table
from pilotlight_runtime.calls.slot_table import (
    ORPHANED_AFTER_S,
    AcceptedCall,
    CallPhase,
    ReleasedCall,
    SlotTable,
    whole_us,
)
from tests.builders.calls import run


@pytest.fixture
def table() -> SlotTable:
    made = SlotTable(instance="i1")
    made.open("c1", "ver_1", 2)
    return made


def ids(held: tuple[AcceptedCall, ...]) -> list[tuple[str, int, bool]]:
    return [(call.call_id, call.grant_number, call.was_started) for call in held]


def accepts(table: SlotTable, run: Run, at: float) -> bool:
    return isinstance(table.accept(run, at), AcceptedCall)


def test_a_container_never_holds_more_than_its_slots(table: SlotTable) -> None:
    """Whatever homes believe."""
    assert accepts(table, run("a"), 0.0)
    assert accepts(table, run("b"), 0.0)
    assert table.accept(run("c"), 0.0) is Refusal.NO_SLOT
    assert (table.held("c1"), table.room("c1")) == (("a", "b"), 0)
    assert table.release("a", 1)
    assert not table.release("a", 1)
    assert accepts(table, run("d"), 0.0)
    table.check_integrity()


def test_what_is_decided_first_stands() -> None:
    """A later outcome changes nothing of the call."""
    call = AcceptedCall(run("a"), 1.0, 1.0)

    assert call.decide(Outcome.CANCELLED, reason="deadline") is Outcome.CANCELLED
    assert call.decide(Outcome.OK, output=b"late") is Outcome.CANCELLED
    assert (call.outcome, call.reason, call.output) == (Outcome.CANCELLED, "deadline", b"")


def test_a_home_that_was_replaced_is_refused(table: SlotTable) -> None:
    """Per version: once a newer home has spoken, the older one's grants are stale."""
    table.open("d1", "ver_2", 1)
    assert accepts(table, run("a", epoch=5), 0.0)
    assert table.accept(run("b", epoch=4), 0.0) is Refusal.STALE_EPOCH
    assert accepts(table, run("c", epoch=4, container="d1", version="ver_2"), 0.0)
    assert (table.epoch("ver_1"), table.epoch("ver_2"), table.epoch("ver_3")) == (5, 4, 0)


def test_the_epochs_of_versions_that_are_elsewhere_are_forgotten_first(
    table: SlotTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A fence that stands before a container here stays up, however many versions came and went."""
    monkeypatch.setattr(slot_table, "EPOCHS", 3)
    table.accept(run("a", epoch=5), 0.0)
    for number in range(9):
        table.accept(run(f"x{number}", epoch=2, container="c9", version=f"other_{number}"), 0.0)

    assert table.accept(run("b", epoch=4), 0.0) is Refusal.STALE_EPOCH
    assert [table.epoch(f"other_{number}") for number in (6, 7, 8)] == [0, 2, 2]
    table.check_integrity()


def test_even_a_refused_run_raises_the_fence(table: SlotTable) -> None:
    """The newer home has spoken, whatever the answer."""
    table.accept(run("a", epoch=9, container="c9"), 0.0)
    assert table.accept(run("b", epoch=8), 0.0) is Refusal.STALE_EPOCH


def test_draining_and_gone_containers_take_nothing(table: SlotTable) -> None:
    """A draining one finishes what it holds."""
    table.accept(run("a"), 0.0)
    table.drain("c1")
    table.drain("c9")
    assert table.accept(run("b"), 0.0) is Refusal.DRAINING
    assert table.room("c1") == 0
    assert table.start("a", 1, 0.1) is None
    assert table.accept(run("c", container="c9"), 0.0) is Refusal.GONE
    assert table.accept(run("d", version="ver_2"), 0.0) is Refusal.GONE


def test_a_grant_is_answered_once(table: SlotTable) -> None:
    """A copy is refused while the call is held, after it has ended, and also if the first was refused."""
    table.accept(run("a", 2), 0.0)
    assert table.accept(run("a", 2), 0.0) is Refusal.DUPLICATE
    assert table.accept(run("a", 1), 0.0) is Refusal.DUPLICATE
    table.release("a", 2)
    assert table.accept(run("a", 2), 0.0) is Refusal.DUPLICATE
    assert accepts(table, run("a", 3), 0.0)
    assert table.accept(run("b", container="c9"), 0.0) is Refusal.GONE
    assert table.accept(run("b"), 0.0) is Refusal.DUPLICATE


def test_the_memory_of_what_has_ended_is_bounded() -> None:
    """And what is held is never forgotten."""
    table = SlotTable(memory=3)
    table.open("c1", "ver_1", 2)
    table.accept(run("held"), 0.0)
    for n in range(10):
        table.accept(run(f"x{n}"), 0.0)
        table.release(f"x{n}", 1)
    assert table.statistics().remembered == 3
    assert table.accept(run("held"), 0.0) is Refusal.DUPLICATE
    assert table.accept(run("x9"), 0.0) is Refusal.DUPLICATE
    table.check_integrity()


def test_a_call_that_could_not_start_in_time_never_starts(table: SlotTable) -> None:
    """An agent that was paused wakes up with calls whose callers have gone."""
    assert table.accept(run("late", start_within_ms=0.0), 0.0) is Refusal.EXPIRED
    table.accept(run("a", start_within_ms=1_000.0), 0.0)
    table.accept(run("b", start_within_ms=1_000.0), 0.0)
    assert table.start("a", 1, 0.5) is None
    assert table.start("b", 1, 1.5) is Refusal.EXPIRED
    assert table.held("c1") == ("a",)
    assert table.release_overdue(9.0) == ()


def test_overdue_calls_free_their_slots(table: SlotTable) -> None:
    """What waits in a batch for too long is given up in one sweep."""
    table.accept(run("a", start_within_ms=1_000.0), 0.0)
    assert table.release_overdue(1.0) == ()
    assert ids(table.release_overdue(1.1)) == [("a", 1, False)]
    assert table.room("c1") == 2


def test_a_cancelled_call_never_starts(table: SlotTable) -> None:
    """Before its start it is removed, afterwards it keeps its slot until it ends, and before it came it never comes."""
    table.accept(run("a"), 0.0)
    table.accept(run("b"), 0.0)
    table.start("b", 1, 0.1)
    assert ids(table.cancel("a")) == [("a", 1, False)]
    assert table.start("a", 1, 0.2) is Refusal.GONE
    assert ids(table.cancel("b")) == [("b", 1, True)]
    assert table.held("c1") == ("b",)
    table.release("b", 1)
    assert table.cancel("early") == ()
    assert table.accept(run("early", 7), 0.3) is Refusal.DUPLICATE
    table.check_integrity()


def test_a_closed_container_tells_what_it_held_and_what_had_started(table: SlotTable) -> None:
    """Only what had started may be lost; the rest goes elsewhere."""
    table.accept(run("a"), 0.0)
    table.accept(run("b"), 0.0)
    table.start("a", 1, 0.1)
    assert ids(table.close("c1")) == [("a", 1, True), ("b", 1, False)]
    assert table.close("c1") == ()
    assert table.start("b", 1, 0.2) is Refusal.GONE
    assert table.statistics().held == 0
    table.check_integrity()


def ask(*calls: str, **grants: int) -> Reconcile:
    return Reconcile(gateway="gw1", calls=calls, grants=grants, instance="i1")


def test_what_an_origin_does_not_want_any_more_is_an_orphan(table: SlotTable) -> None:
    """But not what came so lately that the list may be older, nor what belongs to another gateway."""
    table.accept(run("old"), 0.0)
    table.accept(run("theirs", gateway="gw2"), 0.0)
    assert table.reconcile(ask(), 1.0).orphans == ()
    assert ids(table.reconcile(ask(), ORPHANED_AFTER_S + 0.1).orphans) == [("old", 1, False)]
    assert table.reconcile(ask("old"), ORPHANED_AFTER_S + 0.1).orphans == ()


def test_a_run_that_was_given_up_is_an_orphan_too(table: SlotTable) -> None:
    """The call lives, with a newer grant: the old run is nobody's."""
    table.accept(run("a", 1), 0.0)
    assert ids(table.reconcile(ask("a", a=2), 5.0).orphans) == [("a", 1, False)]


def test_an_origin_learns_what_became_of_a_silent_call(table: SlotTable) -> None:
    """Ended, refused, or never come; and what never came cannot come afterwards."""
    table.accept(run("ended"), 0.0)
    table.start("ended", 1, 0.0)
    table.release("ended", 1)
    table.accept(run("refused", container="c9"), 0.0)
    table.accept(run("here"), 0.0)
    found = table.reconcile(ask(ended=1, refused=1, here=1, never=3), 5.0)
    assert found.released == (
        ReleasedCall("ended", 1, was_started=True),
        ReleasedCall("refused", 1, was_started=False),
        ReleasedCall("never", 3, was_started=False),
    )
    assert table.accept(run("never", 3), 5.1) is Refusal.DUPLICATE
    assert accepts(table, run("never", 4), 5.2)


def test_once_something_was_forgotten_the_unknown_counts_as_started() -> None:
    """It may be what was forgotten: claiming that it never ran could run it twice."""
    table = SlotTable(instance="i1", memory=1)
    table.open("c1", "ver_1", 1)
    for name in "ab":
        table.accept(run(name), 0.0)
        table.release(name, 1)
    (past,) = table.reconcile(ask(unknown=1), 5.0).released
    assert past.was_started


def test_a_new_incarnation_says_nothing_of_what_the_old_one_was_sent(table: SlotTable) -> None:
    """It has never seen the call, and that proves nothing."""
    message = Reconcile(gateway="gw1", calls=("a",), grants={"a": 1}, instance="i0")
    assert table.reconcile(message, 5.0).released == ()
    assert accepts(table, run("a", 1), 5.1)


def test_who_does_not_say_which_incarnation_is_meant_gets_the_careful_answer(table: SlotTable) -> None:
    """It may have been another one: the call counts as started."""
    (past,) = table.reconcile(Reconcile(gateway="gw1", calls=("a",), grants={"a": 1}), 5.0).released
    assert past.was_started


steps = st.lists(
    st.tuples(st.sampled_from("aaaassrrcxdo"), st.integers(0, 5), st.integers(1, 4), st.integers(0, 1)), max_size=150
)


@given(steps=steps)
def test_any_history_keeps_the_books_in_order(steps: list[tuple[str, int, int, int]]) -> None:
    """Accepts, starts, releases, cancels, deaths in any order: no slot leaks, and no grant starts twice."""
    table = SlotTable(memory=50)
    starts: list[tuple[str, int]] = []
    for at, (step, name, grant, where) in enumerate(steps):
        call, container = f"call{name}", f"c{where}"
        if step == "o" and not table.held(container):
            table.open(container, "ver_1", 2)
        elif step == "a":
            table.accept(run(call, grant, container=container, start_within_ms=20_000.0), float(at))
        elif step == "s" and call in {*table.held("c0"), *table.held("c1")}:
            if table.start(call, grant, float(at)) is None:
                starts.append((call, grant))
                table.release(call, grant)
        elif step == "r":
            table.release(call, grant)
        elif step == "c":
            table.cancel(call)
        elif step == "x":
            table.close(container)
        elif step == "d":
            table.drain(container)
        table.check_integrity()
    assert len(starts) == len(set(starts))


def test_time_limits_count_from_when_the_run_was_received() -> None:
    """The agent may read a run long after it came."""
    call = AcceptedCall(run(start_within_ms=2_000.0, timeout_ms=10_000.0), at=105.0, received_at=100.0)

    assert (call.accepted_at, call.start_deadline_at, call.deadline_at) == (105.0, 102.0, 110.0)


def test_a_call_is_named_by_its_run() -> None:
    """Id and grant number are those of the wire."""
    call = AcceptedCall(run("call_1", 7), at=1.0, received_at=1.0)

    assert (call.call_id, call.grant_number) == ("call_1", 7)


def test_a_call_counts_as_started_from_the_guest_to_the_upload_of_its_answer() -> None:
    """Whatever waits or is fetched has not started."""
    call = AcceptedCall(run(), at=1.0, received_at=1.0)
    started = {}
    for phase in CallPhase:
        call.phase = phase
        started[phase.name] = call.was_started

    assert started == {"FETCHING": False, "WAITING": False, "RUNNING": True, "UPLOADING": True}


def test_a_start_is_dated() -> None:
    """By the slot table, right before the guest gets the call."""
    call = AcceptedCall(run(), at=1.0, received_at=1.0)
    call.start(2.0)

    assert (call.phase, call.started_at) == (CallPhase.RUNNING, 2.0)


def test_stages_say_where_the_time_went() -> None:
    """Fetching and waiting for a batch apart; the fetch only of a call whose input was fetched."""
    fetched = AcceptedCall(run(body=BodyRef(url="http://gw/1", token="t")), at=1.0, received_at=1.0)
    fetched.ready_at = 1.25
    fetched.start(1.75)
    fetched.execute_ms = 100.0

    stages = fetched.stages(2.0)
    times = (stages.fetch_ms, stages.batch_wait_ms, stages.execute_ms, stages.total_ms)
    assert times == pytest.approx((250.0, 500.0, 100.0, 1000.0))

    waiting = AcceptedCall(run(), at=1.0, received_at=1.0)
    assert waiting.stages(1.5).fetch_ms == 0.0
    assert waiting.stages(1.5).batch_wait_ms == pytest.approx(500.0)


def test_stages_are_whole_microseconds() -> None:
    """And never below zero, whatever the clock did."""
    assert [whole_us(ms) for ms in (-1.0, 0.0, 0.0004, 0.0006, 1.23449, 1.2346)] == [0.0, 0.0, 0.0, 0.001, 1.234, 1.235]
