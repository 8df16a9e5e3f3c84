"""A call in a slot: its time limits, its phases, and where its time went."""

from __future__ import annotations

import pytest

from pilotlight_core.model.messages.agent_messages import BodyRef
from pilotlight_runtime.calls.accepted_call import AcceptedCall, CallPhase
from tests.builders.calls import run


def test_time_limits_count_from_when_the_run_was_received() -> None:
    """The agent may read a run long after it came."""
    call = AcceptedCall.of(run(start_within_ms=2_000.0, timeout_ms=10_000.0), at=105.0, received_at=100.0)

    assert (call.accepted_at, call.start_deadline_at, call.deadline_at) == (105.0, 102.0, 110.0)


def test_a_call_is_named_by_its_run() -> None:
    """Id and grant number are those of the wire."""
    call = AcceptedCall.of(run("call_1", 7), at=1.0, received_at=1.0)

    assert (call.call_id, call.grant_number) == ("call_1", 7)


def test_a_call_counts_as_started_from_the_guest_to_the_upload_of_its_answer() -> None:
    """Whatever waits or is fetched has not started."""
    call = AcceptedCall.of(run(), at=1.0, received_at=1.0)
    started = {}
    for phase in CallPhase:
        call.phase = phase
        started[phase.name] = call.was_started

    assert started == {"FETCHING": False, "WAITING": False, "RUNNING": True, "UPLOADING": True}


def test_a_start_is_dated() -> None:
    """By the slot table, right before the guest gets the call."""
    call = AcceptedCall.of(run(), at=1.0, received_at=1.0)
    call.start(2.0)

    assert (call.phase, call.started_at) == (CallPhase.RUNNING, 2.0)


def test_stages_say_where_the_time_went() -> None:
    """Fetching and waiting for a batch apart; the fetch only of a call whose input was fetched."""
    fetched = AcceptedCall.of(run(body=BodyRef(url="http://gw/1", token="t")), at=1.0, received_at=1.0)
    fetched.ready_at = 1.25
    fetched.start(1.75)
    fetched.execute_ms = 100.0

    stages = fetched.stages(2.0)
    times = (stages.fetch, stages.batch_wait, stages.execute, stages.total)
    assert times == pytest.approx((250.0, 500.0, 100.0, 1000.0))

    waiting = AcceptedCall.of(run(), at=1.0, received_at=1.0)
    assert waiting.stages(1.5).fetch == 0.0
    assert waiting.stages(1.5).batch_wait == pytest.approx(500.0)
