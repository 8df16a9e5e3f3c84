"""What whoever compares versions is told of a start that has failed."""

from __future__ import annotations

from pilotlight_core.model.rollouts.rollout_record import Arm
from pilotlight_core.model.rollouts.split import Side
from pilotlight_gateway.calls.attempts import Attempts
from pilotlight_gateway.calls.call_port import CallResult
from pilotlight_gateway.calls.effects import FailedStart, failed_start, ignore_failed_start
from tests.builders.calls import grant, prepared_call

COMPARED = Side("rol_1", Arm.TWIN, 0.5, "")


def started() -> Attempts:
    attempts = Attempts(0.0)
    attempts.granted(grant(1), 1.0)
    attempts.nth, attempts.batch = 7, 3
    return attempts


def test_a_start_is_told_with_its_place_in_its_container() -> None:
    """So that a batch that failed is one failure, on either side."""
    (told,) = failed_start(prepared_call(side=COMPARED), "function_raised", started())
    assert told == FailedStart("function_raised", CallResult(output=b"", container="c1", nth=7, batch=3))


def test_of_calls_that_are_of_no_rollout_nothing_is_told() -> None:
    """Those of one that compares nothing yet say what is usual."""
    usual = COMPARED._replace(rho=0.0)
    assert len(failed_start(prepared_call(side=usual), "function_raised", started())) == 1
    assert failed_start(prepared_call(), "function_raised", started()) == []
    assert failed_start(prepared_call(side=COMPARED), "container_died", Attempts(0.0)) == []


def test_where_nobody_compares_it_is_ignored() -> None:
    ignore_failed_start(prepared_call(), "function_raised", None)
