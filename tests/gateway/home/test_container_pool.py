"""The containers of a version as a home knows them, and which of them takes the next call."""

from __future__ import annotations

import pytest

from pilotlight_core.model.messages.call_affinity import CallAffinity
from pilotlight_core.model.messages.call_messages import Refusal
from pilotlight_core.model.messages.node_messages import ContainerState, Credit
from pilotlight_gateway.home.breakers import CONTAINER_FAILURES, FIRST_PAUSE_S, ContainerVerdict
from pilotlight_gateway.home.container_pool import (
    FORGET_AFTER_S,
    HEARTBEAT_S,
    PENDING_S,
    QUARANTINE_AFTER_S,
    ContainerPool,
)
from tests.builders.calls import credit


def rooms_of(*spoken: Credit) -> ContainerPool:
    pool = ContainerPool()
    for message in spoken:
        pool.update(message, 0.0)
    return pool


def chosen(pool: ContainerPool, call: str, at: float = 0.0) -> str | None:
    """Choose and reserve, as a home does."""
    pooled = pool.choose()
    if pooled is None:
        return None
    pool.reserve(pooled, call, at)
    pool.check_integrity()
    return pooled.container


def test_no_more_is_given_out_than_there_are_slots() -> None:
    """Grants on their way count as used."""
    pool = rooms_of(credit("c1", slots=2))
    assert [chosen(pool, name) for name in "abc"] == ["c1", "c1", None]


def test_below_target_utilisation_load_is_packed_on_the_oldest() -> None:
    """So the youngest become idle and can scale down."""
    pool = rooms_of(credit("old", 1, slots=10), credit("young", 2, slots=10))
    assert {chosen(pool, str(n)) for n in range(10)} == {"old"}


def test_above_target_utilisation_load_is_spread() -> None:
    """Under pressure the container with most room takes the next call."""
    pool = rooms_of(
        credit("old", 1, *"abcdefgh", slots=10), credit("young", 2, *"ijklmno", slots=10), credit("full", 3, "p")
    )
    assert chosen(pool, "x") == "young"


def test_a_forming_batch_with_room_goes_first_the_fullest_before_others() -> None:
    """An item that joins a batch costs next to nothing, and a full batch starts at once."""
    pool = rooms_of(
        credit("old", 1, slots=8), credit("half", 2, slots=8, batch_room=4), credit("almost", 3, slots=8, batch_room=1)
    )
    assert [chosen(pool, name) for name in "abcdef"] == ["almost", "half", "half", "half", "half", "old"]


@pytest.mark.parametrize("state", [s for s in ContainerState if s is not ContainerState.READY])
def test_only_ready_containers_get_calls(state: ContainerState) -> None:
    """Starting, draining, parked or gone: nothing."""
    assert rooms_of(credit("c1", state=state)).choose() is None


def test_a_silent_container_gets_no_calls_until_its_next_credit() -> None:
    """Three missed heartbeats are a quarantine, not a loss."""
    pool = rooms_of(credit("c1"))
    pool.quarantine(QUARANTINE_AFTER_S + 0.1)
    assert pool.choose() is None
    pool.check_integrity()
    pool.update(credit("c1", 2), 4.0)
    pool.quarantine(4.1)
    assert pool.choose() is not None


def test_an_old_credit_changes_nothing() -> None:
    """Credits that were overtaken are ignored."""
    pool = rooms_of(credit("c1", 5, "a"))
    assert pool.update(credit("c1", 4), 0.0) is None
    assert pool.choose() is None


def test_a_credit_frees_the_calls_that_it_omits() -> None:
    """The message that a call has ended may be lost; the next credit repairs the count."""
    pool = rooms_of(credit("c1", 1, "a", "b", slots=2))
    assert pool.update(credit("c1", 2, "b", slots=2), 1.0) == ("a",)
    assert pool.free == 1


def test_a_grant_on_its_way_survives_credits_that_cannot_know_of_it() -> None:
    """A credit that was sent before the call arrived does not free its slot; later ones do."""
    pool = rooms_of(credit("c1"))
    assert chosen(pool, "a", at=0.0) == "c1"
    assert pool.update(credit("c1", 2), 0.5) == ()
    assert pool.choose() is None
    assert pool.is_pending("c1", "a")
    assert pool.update(credit("c1", 3), PENDING_S + 0.1) == ("a",)
    assert pool.choose() is not None


def test_a_full_container_gets_no_calls_until_a_credit_or_an_end() -> None:
    """The agent's `no_slot` overrides the count of the home."""
    pool = rooms_of(credit("c1", 1, "x", slots=3))
    assert chosen(pool, "a") == "c1"
    pool.refuse("c1", "a", Refusal.NO_SLOT)
    assert pool.choose() is None
    pool.release("c1", "x")
    assert pool.choose() is not None
    pool.check_integrity()


@pytest.mark.parametrize("reason", [Refusal.DRAINING, Refusal.GONE, Refusal.STALE_EPOCH])
def test_a_closed_container_stays_closed_until_its_next_credit(reason: Refusal) -> None:
    """Calls that end there do not open it again."""
    pool = rooms_of(credit("c1", 1, "x", slots=3))
    chosen(pool, "a")
    pool.refuse("c1", "a", reason)
    pool.release("c1", "x")
    assert pool.choose() is None
    pool.update(credit("c1", 2, slots=3), 1.0)
    assert pool.choose() is not None


@pytest.mark.parametrize("reason", [Refusal.EXPIRED, Refusal.DUPLICATE, Refusal.UNREADABLE])
def test_a_refusal_that_is_about_the_call_does_not_close_the_container(reason: Refusal) -> None:
    """Another call may go there at once."""
    pool = rooms_of(credit("c1"))
    chosen(pool, "a")
    pool.refuse("c1", "a", reason)
    assert pool.choose() is not None


def test_a_container_that_is_gone_is_not_revived_by_a_late_credit() -> None:
    """It is remembered for a while, then forgotten."""
    pool = rooms_of(credit("c1", 5, "a"))
    assert pool.update(credit("c1", 6, state=ContainerState.GONE), 1.0) == ("a",)
    assert pool.update(credit("c1", 4), 1.1) is None
    assert pool.all() == []
    assert pool.forget_silent(FORGET_AFTER_S) == ()
    assert len(pool) == 1
    assert pool.forget_silent(FORGET_AFTER_S + 2.0) == ()
    assert len(pool) == 0


def test_a_container_whose_last_message_was_lost_is_forgotten_with_its_calls() -> None:
    """A container that is silent for long on a live node is gone."""
    pool = rooms_of(credit("c1", 1, "a", slots=2))
    chosen(pool, "b")
    assert pool.forget_silent(FORGET_AFTER_S + 1.0) == ("a", "b")
    assert pool.running() == 0
    pool.check_integrity()


def test_a_new_incarnation_takes_the_place_of_the_old_one() -> None:
    """What the old one held is free; its sequence numbers mean nothing any more."""
    pool = rooms_of(credit("c1", 9, "a"))
    assert pool.update(credit("c1", 1, instance="i2"), 1.0) == ("a",)
    assert pool.free == 1
    pool.check_integrity()


def test_the_containers_of_an_incarnation_are_gone_with_it() -> None:
    """Containers of other incarnations stay."""
    pool = rooms_of(credit("c1", 1, "a"), credit("c2", 1, "b", node="n2"))
    assert pool.gone("n1", "i0") == ()
    assert pool.gone("n1", "i1") == ("a",)
    assert [pooled.container for pooled in pool.all()] == ["c2"]


def test_a_start_is_timed_and_its_end_is_noted_once() -> None:
    """The home learns how long a start takes, and since when there has been a ready container."""
    pool = rooms_of(credit("c1", 1, state=ContainerState.LOADING))
    assert pool.starting(0.2) == [(None, 1)]
    pool.update(credit("c1", 2, timeline={"bind": 100.0, "load": 400.0}), 0.6)
    assert (pool.start_ms, pool.ready_since) == (500.0, 0.6)
    assert pool.starting(0.6) == []
    pool.update(credit("c2", 3, state=ContainerState.BINDING), 1.0)
    assert pool.starting(1.25) == [(250.0, 1)]
    pool.update(credit("c2", 4), 1.5)
    assert (pool.start_ms, pool.ready_since) == (500.0, 0.6)


def test_an_unpark_says_nothing_of_how_long_a_start_takes() -> None:
    """It is what the call waited for, all the same."""
    pool = rooms_of(credit("c1", 1, state=ContainerState.LOADING))
    pool.update(credit("c1", 2, timeline={"load": 500.0}), 0.5)
    pool.update(credit("c1", 3, state=ContainerState.PARKED), 1.0)
    assert (pool.slots, pool.capacity) == (0, 0)
    pool.update(credit("c1", 4, state=ContainerState.LOADING), 2.0)
    pool.update(credit("c1", 5, timeline={"unpark": 2.0}), 2.1)
    assert (pool.start_ms, pool.ready_since) == (500.0, 2.1)


def broken(*, others: bool = True) -> ContainerPool:
    """Two containers, one of which has raised for as long as it takes."""
    pool = rooms_of(credit("bad", 1, slots=2), credit("good", 2, slots=2))
    for n in range(CONTAINER_FAILURES):
        pool.ended("bad", f"b{n}", "t", ContainerVerdict.RAISED, 1.0)
        if others:
            pool.ended("good", f"g{n}", "t", ContainerVerdict.FINE, 1.0)
    pool.check_integrity()
    return pool


def test_a_container_that_fails_while_others_answer_gets_no_calls() -> None:
    """Its device context may be broken for good; what is left is the capacity."""
    pool = broken()
    assert [pooled.container for pooled in pool.broken()] == ["bad"]
    assert {chosen(pool, str(n)) for n in range(3)} == {"good", None}
    assert pool.capacity == 2


def test_a_function_that_raises_everywhere_is_no_broken_container() -> None:
    """Its exceptions are its answers."""
    assert broken(others=False).broken() == []


def test_a_broken_container_gets_one_probe_after_a_pause() -> None:
    """The probe decides: closed again, or a longer pause."""
    pool = broken()
    for n in range(2):
        assert chosen(pool, f"full{n}") == "good"
    pool.probe(1.0 + FIRST_PAUSE_S)
    assert [chosen(pool, name, 2.0) for name in ("probe", "next")] == ["bad", None]
    pool.release("bad", "probe")
    pool.ended("bad", "probe", "t", ContainerVerdict.RAISED, 2.1)
    pool.probe(2.1 + FIRST_PAUSE_S)
    assert chosen(pool, "too soon") is None
    pool.probe(2.1 + 2 * FIRST_PAUSE_S)
    assert chosen(pool, "again", 4.2) == "bad"
    pool.release("bad", "again")
    pool.ended("bad", "again", "t", ContainerVerdict.FINE, 4.3)
    assert pool.broken() == []
    assert pool.capacity == 4
    assert [chosen(pool, name, 4.3) for name in "xy"] == ["bad", "bad"]


def test_a_probe_that_the_container_does_not_take_may_be_another_call() -> None:
    """A refusal proves nothing, so another call probes after the next credit."""
    pool = broken()
    for n in range(2):
        chosen(pool, f"full{n}")
    pool.probe(2.0)
    chosen(pool, "probe", 2.0)
    pool.refuse("bad", "probe", Refusal.EXPIRED, 2.1)
    pool.check_integrity()
    assert chosen(pool, "another", 2.2) == "bad"


def test_a_broken_container_that_is_gone_is_forgotten() -> None:
    """Nothing of it is left in the books."""
    pool = broken()
    pool.update(credit("bad", 3, state=ContainerState.GONE), 2.0)
    assert pool.broken() == []
    pool.check_integrity()


def test_a_full_container_is_capacity_all_the_same() -> None:
    """That it had no slot for a moment is no reason to shed calls."""
    pool = rooms_of(credit("c1", 1, "x", slots=3))
    chosen(pool, "a")
    pool.refuse("c1", "a", Refusal.NO_SLOT)
    assert (pool.slots, pool.capacity) == (0, 3)
    pool.check_integrity()


def test_a_node_without_a_listener_is_not_used_until_its_next_credit() -> None:
    """The bus reports a missing agent at once, while silence takes three seconds."""
    pool = rooms_of(credit("c1", 1), credit("c2", 1, node="n2"), credit("c3", 2))
    pool.quarantine_node("n1")
    assert pool.capacity == 1
    assert [chosen(pool, name) for name in "ab"] == ["c2", None]
    pool.update(credit("c3", 3), 0.5)
    assert chosen(pool, "c", 0.5) == "c3"


def test_a_refusal_as_gone_from_a_silent_node_quarantines_the_node() -> None:
    """If no container of the node had a credit within a heartbeat, no agent was there to refuse the call."""
    pool = rooms_of(credit("c1", 1), credit("c2", 2))
    chosen(pool, "a")
    pool.refuse("c1", "a", Refusal.GONE, 0.5)
    assert pool.capacity == 1
    chosen(pool, "b")
    pool.refuse("c2", "b", Refusal.GONE, HEARTBEAT_S + 0.1)
    assert pool.capacity == 0


def near(pool: ContainerPool, call: str, affinity: CallAffinity) -> str | None:
    pooled = pool.choose_near(affinity)
    if pooled is None:
        return None
    pool.reserve(pooled, call, 0.0)
    return pooled.container


def test_a_call_of_an_engine_goes_where_its_prompt_is() -> None:
    """And a new one to where most room is."""
    pool = rooms_of(credit("c1", 1, slots=10), credit("c2", 2, slots=10))
    assert near(pool, "a", CallAffinity("", (1, 2))) == "c1"
    assert near(pool, "b", CallAffinity("", (7, 8))) == "c2", "there is more room"
    assert near(pool, "c", CallAffinity("", (7, 8, 9))) == "c2"
    assert near(pool, "d", CallAffinity("", (1, 5))) == "c1"


def test_an_adapter_goes_before_a_prompt() -> None:
    """Loading one takes longer."""
    pool = rooms_of(credit("c1", 1, slots=10), credit("c2", 2, slots=10))
    assert near(pool, "a", CallAffinity("", (1, 2, 3))) == "c1"
    assert near(pool, "b", CallAffinity("lora", (5,))) == "c2"
    assert near(pool, "c", CallAffinity("lora", (1, 2, 3))) == "c2"


def test_keys_and_values_make_a_container_full_too() -> None:
    """Few calls may have most of its room: what it has in memory counts no more then, and of equals it goes last."""
    pool = rooms_of(credit("c1", 1, slots=10), credit("c2", 2, slots=10))
    assert near(pool, "a", CallAffinity("", (1, 2))) == "c1"
    pool.update(credit("c1", 3, "a", slots=10, pressure=0.15), 0.1)
    assert near(pool, "b", CallAffinity("", (1, 2))) == "c1"
    pool.update(credit("c1", 4, "a", "b", slots=10, pressure=0.9), 0.2)
    assert near(pool, "c", CallAffinity("", (1, 2))) == "c2"

    pool = rooms_of(credit("c1", 1, slots=10, pressure=0.1), credit("c2", 2, slots=10, pressure=0.05))
    assert near(pool, "a", CallAffinity("", (1, 2))) == "c2"


def test_a_prompt_that_all_share_does_not_crowd_one_container() -> None:
    """Up to a bound it goes where it is, then elsewhere."""
    pool = rooms_of(credit("c1", 1, slots=10), credit("c2", 2, slots=10))
    went = [near(pool, str(n), CallAffinity("", (1, 2))) for n in range(20)]
    assert went[:3] == ["c1", "c1", "c1"]
    assert went.count("c2") == 10
    assert near(pool, "x", CallAffinity()) is None
