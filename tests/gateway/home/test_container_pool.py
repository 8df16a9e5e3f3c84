"""What a home believes of containers, and which of them takes the next call."""

from __future__ import annotations

import pytest

from pilotlight_core.model.messages.agent_messages import ContainerState, Credit, Refusal
from pilotlight_gateway.home.breakers import CONTAINER_FAILURES, FIRST_PAUSE_S, ContainerVerdict
from pilotlight_gateway.home.container_pool import BURIED_AFTER, HEARTBEAT, PENDING_FOR, QUARANTINE, ContainerPool
from tests.builders.calls import credit


def rooms_of(*spoken: Credit) -> ContainerPool:
    rooms = ContainerPool()
    for message in spoken:
        rooms.hear(message, 0.0)
    return rooms


def chosen(rooms: ContainerPool, call: str, at: float = 0.0) -> str | None:
    """Choose and reserve, as a home does."""
    room = rooms.choose()
    if room is None:
        return None
    rooms.reserve(room, call, at)
    rooms.check_integrity()
    return room.container


def test_no_more_is_given_out_than_there_are_slots() -> None:
    """Grants on their way count as used."""
    rooms = rooms_of(credit("c1", slots=2))
    assert [chosen(rooms, name) for name in "abc"] == ["c1", "c1", None]


def test_below_target_utilisation_load_is_packed_on_the_oldest() -> None:
    """So the youngest become idle and can scale down."""
    rooms = rooms_of(credit("old", 1, slots=10), credit("young", 2, slots=10))
    assert {chosen(rooms, str(n)) for n in range(10)} == {"old"}


def test_above_target_utilisation_load_is_spread() -> None:
    """Under pressure the container with most room takes the next call."""
    rooms = rooms_of(
        credit("old", 1, *"abcdefgh", slots=10), credit("young", 2, *"ijklmno", slots=10), credit("full", 3, "p")
    )
    assert chosen(rooms, "x") == "young"


def test_a_forming_batch_with_room_goes_first_the_fullest_before_others() -> None:
    """An item that joins a batch costs next to nothing, and a full batch starts at once."""
    rooms = rooms_of(
        credit("old", 1, slots=8), credit("half", 2, slots=8, batch_room=4), credit("almost", 3, slots=8, batch_room=1)
    )
    assert [chosen(rooms, name) for name in "abcdef"] == ["almost", "half", "half", "half", "half", "old"]


@pytest.mark.parametrize("state", [s for s in ContainerState if s is not ContainerState.READY])
def test_only_ready_containers_get_calls(state: ContainerState) -> None:
    """Starting, draining, parked or gone: nothing."""
    assert rooms_of(credit("c1", state=state)).choose() is None


def test_a_silent_container_gets_nothing_until_it_speaks_again() -> None:
    """Three missed heartbeats are a quarantine, not a death."""
    rooms = rooms_of(credit("c1"))
    rooms.quarantine(QUARANTINE + 0.1)
    assert rooms.choose() is None
    rooms.check_integrity()
    rooms.hear(credit("c1", 2), 4.0)
    rooms.quarantine(4.1)
    assert rooms.choose() is not None


def test_an_old_credit_changes_nothing() -> None:
    """Credits that were overtaken are ignored."""
    rooms = rooms_of(credit("c1", 5, "a"))
    assert rooms.hear(credit("c1", 4), 0.0) is None
    assert rooms.choose() is None


def test_a_credit_tells_which_calls_are_no_longer_held() -> None:
    """The word that a call has ended may be lost; the next credit heals it."""
    rooms = rooms_of(credit("c1", 1, "a", "b", slots=2))
    assert rooms.hear(credit("c1", 2, "b", slots=2), 1.0) == ("a",)
    assert rooms.free == 1


def test_a_grant_on_its_way_survives_credits_that_cannot_know_of_it() -> None:
    """A credit that was sent before the call arrived does not free its slot; later ones do."""
    rooms = rooms_of(credit("c1"))
    assert chosen(rooms, "a", at=0.0) == "c1"
    assert rooms.hear(credit("c1", 2), 0.5) == ()
    assert rooms.choose() is None
    assert rooms.is_pending("c1", "a")
    assert rooms.hear(credit("c1", 3), PENDING_FOR + 0.1) == ("a",)
    assert rooms.choose() is not None


def test_a_full_container_gets_nothing_until_it_speaks_or_a_call_ends() -> None:
    """The agent's `no_slot` is the truth, whatever was counted."""
    rooms = rooms_of(credit("c1", 1, "x", slots=3))
    assert chosen(rooms, "a") == "c1"
    rooms.refuse("c1", "a", Refusal.NO_SLOT)
    assert rooms.choose() is None
    rooms.release("c1", "x")
    assert rooms.choose() is not None
    rooms.check_integrity()


@pytest.mark.parametrize("reason", [Refusal.DRAINING, Refusal.GONE, Refusal.STALE_EPOCH])
def test_a_closed_container_stays_closed_until_it_says_otherwise(reason: Refusal) -> None:
    """Calls that end there do not open it again."""
    rooms = rooms_of(credit("c1", 1, "x", slots=3))
    chosen(rooms, "a")
    rooms.refuse("c1", "a", reason)
    rooms.release("c1", "x")
    assert rooms.choose() is None
    rooms.hear(credit("c1", 2, slots=3), 1.0)
    assert rooms.choose() is not None


@pytest.mark.parametrize("reason", [Refusal.EXPIRED, Refusal.DUPLICATE, Refusal.UNREADABLE])
def test_a_refusal_that_is_about_the_call_does_not_close_the_container(reason: Refusal) -> None:
    """Another call may go there at once."""
    rooms = rooms_of(credit("c1"))
    chosen(rooms, "a")
    rooms.refuse("c1", "a", reason)
    assert rooms.choose() is not None


def test_a_container_that_is_gone_is_not_raised_by_a_late_credit() -> None:
    """It is remembered for a while, then forgotten."""
    rooms = rooms_of(credit("c1", 5, "a"))
    assert rooms.hear(credit("c1", 6, state=ContainerState.GONE), 1.0) == ("a",)
    assert rooms.hear(credit("c1", 4), 1.1) is None
    assert rooms.all() == []
    assert rooms.bury(BURIED_AFTER) == ()
    assert len(rooms) == 1
    assert rooms.bury(BURIED_AFTER + 2.0) == ()
    assert len(rooms) == 0


def test_a_container_whose_last_word_was_lost_is_forgotten_with_its_calls() -> None:
    """Silent for long on a node that lives: it is not there any more."""
    rooms = rooms_of(credit("c1", 1, "a", slots=2))
    chosen(rooms, "b")
    assert rooms.bury(BURIED_AFTER + 1.0) == ("a", "b")
    assert rooms.running() == 0
    rooms.check_integrity()


def test_a_new_incarnation_takes_the_place_of_the_old_one() -> None:
    """What the old one held is free; its sequence numbers mean nothing any more."""
    rooms = rooms_of(credit("c1", 9, "a"))
    assert rooms.hear(credit("c1", 1, instance="i2"), 1.0) == ("a",)
    assert rooms.free == 1
    rooms.check_integrity()


def test_a_node_takes_its_containers_along() -> None:
    """Everything of the incarnation is gone, nothing of another."""
    rooms = rooms_of(credit("c1", 1, "a"), credit("c2", 1, "b", node="n2"))
    assert rooms.gone("n1", "i0") == ()
    assert rooms.gone("n1", "i1") == ("a",)
    assert [room.container for room in rooms.all()] == ["c2"]


def test_a_start_is_timed_and_its_end_is_noted_once() -> None:
    """The home learns how long a start takes, and since when there has been a ready container."""
    rooms = rooms_of(credit("c1", 1, state=ContainerState.LOADING))
    assert rooms.starting(0.2) == [(None, 1)]
    rooms.hear(credit("c1", 2, timeline={"bind": 100.0, "load": 400.0}), 0.6)
    assert (rooms.start_ms, rooms.ready_since) == (500.0, 0.6)
    assert rooms.starting(0.6) == []
    rooms.hear(credit("c2", 3, state=ContainerState.BINDING), 1.0)
    assert rooms.starting(1.25) == [(250.0, 1)]
    rooms.hear(credit("c2", 4), 1.5)
    assert (rooms.start_ms, rooms.ready_since) == (500.0, 0.6)


def broken(*, others: bool = True) -> ContainerPool:
    """Two containers, one of which has raised for as long as it takes."""
    rooms = rooms_of(credit("bad", 1, slots=2), credit("good", 2, slots=2))
    for n in range(CONTAINER_FAILURES):
        rooms.ended("bad", f"b{n}", "t", ContainerVerdict.RAISED, 1.0)
        if others:
            rooms.ended("good", f"g{n}", "t", ContainerVerdict.FINE, 1.0)
    rooms.check_integrity()
    return rooms


def test_a_container_that_fails_while_others_answer_gets_no_calls() -> None:
    """Its device context may be broken for good; what is left is the capacity."""
    rooms = broken()
    assert [room.container for room in rooms.broken()] == ["bad"]
    assert {chosen(rooms, str(n)) for n in range(3)} == {"good", None}
    assert rooms.capacity == 2


def test_a_function_that_raises_everywhere_is_no_broken_container() -> None:
    """Its exceptions are its answers."""
    assert broken(others=False).broken() == []


def test_a_broken_container_gets_one_probe_after_a_pause() -> None:
    """The probe decides: closed again, or a longer pause."""
    rooms = broken()
    for n in range(2):
        assert chosen(rooms, f"full{n}") == "good"
    rooms.probe(1.0 + FIRST_PAUSE_S)
    assert [chosen(rooms, name, 2.0) for name in ("probe", "next")] == ["bad", None]
    rooms.release("bad", "probe")
    rooms.ended("bad", "probe", "t", ContainerVerdict.RAISED, 2.1)
    rooms.probe(2.1 + FIRST_PAUSE_S)
    assert chosen(rooms, "too soon") is None
    rooms.probe(2.1 + 2 * FIRST_PAUSE_S)
    assert chosen(rooms, "again", 4.2) == "bad"
    rooms.release("bad", "again")
    rooms.ended("bad", "again", "t", ContainerVerdict.FINE, 4.3)
    assert rooms.broken() == []
    assert rooms.capacity == 4
    assert [chosen(rooms, name, 4.3) for name in "xy"] == ["bad", "bad"]


def test_a_probe_that_the_container_does_not_take_may_be_another_call() -> None:
    """It says nothing of the container; the next one probes as soon as it speaks."""
    rooms = broken()
    for n in range(2):
        chosen(rooms, f"full{n}")
    rooms.probe(2.0)
    chosen(rooms, "probe", 2.0)
    rooms.refuse("bad", "probe", Refusal.EXPIRED, 2.1)
    rooms.check_integrity()
    assert chosen(rooms, "another", 2.2) == "bad"


def test_a_broken_container_that_is_gone_is_forgotten() -> None:
    """Nothing of it is left in the books."""
    rooms = broken()
    rooms.hear(credit("bad", 3, state=ContainerState.GONE), 2.0)
    assert rooms.broken() == []
    rooms.check_integrity()


def test_a_full_container_is_capacity_all_the_same() -> None:
    """That it had no slot for a moment is no reason to shed calls."""
    rooms = rooms_of(credit("c1", 1, "x", slots=3))
    chosen(rooms, "a")
    rooms.refuse("c1", "a", Refusal.NO_SLOT)
    assert (rooms.slots, rooms.capacity) == (0, 3)
    rooms.check_integrity()


def test_a_node_that_nobody_hears_is_not_used_until_it_speaks() -> None:
    """The bus knows at once that an agent is dead; silence takes three seconds."""
    rooms = rooms_of(credit("c1", 1), credit("c2", 1, node="n2"), credit("c3", 2))
    rooms.unheard("n1")
    assert rooms.capacity == 1
    assert [chosen(rooms, name) for name in "ab"] == ["c2", None]
    rooms.hear(credit("c3", 3), 0.5)
    assert chosen(rooms, "c", 0.5) == "c3"


def test_gone_from_a_silent_node_is_the_node() -> None:
    """Where no container has spoken for longer than a heartbeat, nobody was there to refuse the call."""
    rooms = rooms_of(credit("c1", 1), credit("c2", 2))
    chosen(rooms, "a")
    rooms.refuse("c1", "a", Refusal.GONE, 0.5)
    assert rooms.capacity == 1
    chosen(rooms, "b")
    rooms.refuse("c2", "b", Refusal.GONE, HEARTBEAT + 0.1)
    assert rooms.capacity == 0
