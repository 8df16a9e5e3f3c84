"""What homes and agents get of a call, and what a tenant's tier and limits mean to the scheduler."""

from __future__ import annotations

import pytest

from pilotlight_core.model.messages.call_messages import WINDOW
from pilotlight_core.model.rollouts.rollout_record import Arm
from pilotlight_core.model.rollouts.split import Side
from pilotlight_gateway.calls.large_bodies import INLINE_BYTES
from pilotlight_gateway.tenancy.scheduling_class import SchedulingClass
from tests.builders.calls import grant, prepared_call


def test_a_call_carries_its_scheduling_class_to_its_home() -> None:
    """All that the scheduler goes by is in the descriptor."""
    scheduling = SchedulingClass(weight=4.0, tier_rank=1, reserved=0.2, queue_calls=5, queue_ms=100.0)
    described = prepared_call(scheduling=scheduling).descriptor(0.0, "gw1", grant_number=0, admitted=False)
    found = (
        described.weight, described.tier_rank, described.reserved, described.queue_calls, described.queue_ms
    )  # fmt: skip
    assert found == (4.0, 1, 0.2, 5, 100.0)


def test_instants_leave_as_durations() -> None:
    """A home gets a call's age and what remains of its time, as of now; a call from the future is new."""
    call = prepared_call(arrived_at=10.0, deadline_at=70.0)
    later = call.descriptor(12.5, "gw1", grant_number=3, admitted=True)
    assert (later.age_ms, later.remaining_ms, later.grant_number, later.admitted) == (2_500.0, 57_500.0, 3, True)
    assert (later.call_id, later.function, later.version, later.gateway) == ("a", "acme:app.fn", "ver_1", "gw1")
    assert call.descriptor(9.0, "gw1", grant_number=0, admitted=False).age_ms == 0.0


def test_a_run_is_for_the_container_that_was_granted() -> None:
    """With the input, the rest of the deadline, and the wish to know of its start."""
    run = prepared_call(input=b"in", stream=True).run(grant(2, container="c2", epoch=7, home="gw2"), 59.0, "gw1")
    assert (run.call_id, run.grant_number, run.container, run.epoch) == ("a", 2, "c2", 7)
    assert (run.gateway, run.home, run.input, run.tell_start) == ("gw1", "gw2", b"in", True)
    assert (run.start_within_ms, run.timeout_ms, run.window) == (1_000.0, 1_000.0, WINDOW)


def test_a_judge_wants_to_know_when_a_call_begins() -> None:
    """One that is compared; of others nobody does."""
    side = Side("rol_1", Arm.CANARY, 0.5, "")
    for asked, of in ((True, side), (False, None), (False, side._replace(rho=0.0)), (True, side._replace(unit="u"))):
        assert prepared_call(side=of).run(grant(), 0.0, "g").tell_start is asked
    assert not prepared_call(side=side, shadow=True).run(grant(), 0.0, "g").tell_start


def test_a_run_says_who_asked() -> None:
    """For the ledger: the key and the call's tags."""
    run = prepared_call(key="key_1", tags={"team": "red"}).run(grant(2), 59.0, "gw1")

    assert (run.key, run.tags) == ("key_1", {"team": "red"})


@pytest.mark.parametrize(("size", "left"), [(INLINE_BYTES, INLINE_BYTES), (INLINE_BYTES + 1, 0)])
def test_an_input_too_large_for_the_bus_does_not_travel_in_the_run(size: int, left: int) -> None:
    """Its sender offers it by reference."""
    assert len(prepared_call(input=b"x" * size).run(grant(), 0.0, "gw1").input) == left


def test_a_run_says_which_start_it_waited_for() -> None:
    """The steps of the container's start together; nothing where a container was there."""
    timeline = {"stage": 100.0, "load": 25.5}
    assert prepared_call().run(grant(start_ms=40.0, timeline=timeline), 0.0, "g").cold_ms == 125.5
    assert prepared_call().run(grant(timeline=timeline), 0.0, "g").cold_ms == 0.0
