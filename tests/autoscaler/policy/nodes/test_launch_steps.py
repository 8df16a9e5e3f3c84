"""What is next for a machine."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from pilotlight_autoscaler.policy.nodes.launch_steps import (
    AGAIN_S,
    DRAIN_MOST_S,
    SILENT_S,
    UNLISTED_S,
    LaunchStep,
    MachineSight,
    next_step,
)
from pilotlight_core.model.records.pools import LaunchRecord, LaunchState
from tests.builders.pools import launch

NOW = 100_000.0
GIVE_UP_S = 900.0


def step(state: LaunchState, age_s: float = 10.0, *, known: bool = True, **seen: Any) -> LaunchStep:
    record = launch(state=state, made_at=NOW - age_s, changed_at=NOW - age_s, provider_id="i-1" if known else "")
    fields: dict[str, Any] = {"listed_at": NOW, "is_listed": True} | seen
    return next_step(record, MachineSight(**fields), GIVE_UP_S, NOW).step


@pytest.mark.parametrize(
    ("seen", "wanted"),
    [
        ({"known": False, "is_listed": False}, LaunchStep.LAUNCH),
        ({"known": False, "is_listed": False, "listed_at": 0.0}, LaunchStep.NOTHING),  # it may be there already
        ({"known": False, "is_listed": False, "asked_at": NOW - 1.0}, LaunchStep.NOTHING),
        ({"known": False, "is_listed": False, "asked_at": NOW - AGAIN_S}, LaunchStep.LAUNCH),
        ({"known": False, "is_listed": False, "is_asking": True}, LaunchStep.NOTHING),
        ({}, LaunchStep.NOTHING),
        ({"heard_at": NOW}, LaunchStep.ARRIVE),
        ({"heard_at": NOW - 11.0}, LaunchStep.NOTHING),  # of a machine before it, of the same name
        ({"is_ending": True}, LaunchStep.END),
        ({"is_listed": False, "unlisted_since": NOW - UNLISTED_S - 1.0}, LaunchStep.END),
        (  # one list lacked it, and its provider has not answered since
            {"is_listed": False, "unlisted_since": NOW - UNLISTED_S - 9.0, "listed_at": NOW - UNLISTED_S - 9.0},
            LaunchStep.NOTHING,
        ),
        ({"age_s": GIVE_UP_S + 1.0}, LaunchStep.END),
    ],
)
def test_a_machine_that_comes(seen: dict[str, Any], wanted: LaunchStep) -> None:
    """It is asked for until it is there, and given up after a while."""
    assert step(LaunchState.LAUNCHING, **seen) is wanted


@pytest.mark.parametrize(
    ("seen", "wanted"),
    [
        ({"heard_at": NOW}, LaunchStep.NOTHING),
        ({"age_s": 5_000.0, "heard_at": NOW - SILENT_S - 1.0}, LaunchStep.END),
        ({"age_s": 5_000.0, "watched_since": NOW - 5.0}, LaunchStep.NOTHING),  # a new leader has heard nothing yet
        ({"heard_at": NOW, "is_ending": True}, LaunchStep.END),
        ({"heard_at": NOW, "is_listed": False, "unlisted_since": NOW - 1.0}, LaunchStep.NOTHING),
        ({"heard_at": NOW, "is_listed": False, "unlisted_since": NOW - UNLISTED_S - 1.0}, LaunchStep.END),
        (
            {"heard_at": NOW, "is_listed": False, "unlisted_since": NOW - 300.0, "listed_at": NOW - 300.0},
            LaunchStep.NOTHING,
        ),
    ],
)
def test_a_machine_that_is_up(seen: dict[str, Any], wanted: LaunchStep) -> None:
    """It stays while its agent reports and its provider has it."""
    assert step(LaunchState.UP, **seen) is wanted


@pytest.mark.parametrize(
    ("seen", "wanted"),
    [
        ({}, LaunchStep.NOTHING),
        ({"is_empty": True}, LaunchStep.END),
        ({"age_s": DRAIN_MOST_S + 1.0}, LaunchStep.END),
    ],
)
def test_a_machine_that_drains(seen: dict[str, Any], wanted: LaunchStep) -> None:
    """It ends when it is empty, or after a bound."""
    assert step(LaunchState.DRAINING, **seen) is wanted


@pytest.mark.parametrize(
    ("seen", "wanted"),
    [
        ({}, LaunchStep.TERMINATE),
        ({"asked_at": NOW - 1.0}, LaunchStep.NOTHING),
        ({"is_listed": False}, LaunchStep.FORGET),
        ({"is_listed": False, "listed_at": NOW - 20.0}, LaunchStep.NOTHING),  # a list from before
        ({"is_listed": False, "known": False}, LaunchStep.NOTHING),  # it may come into the list yet
        ({"is_listed": False, "known": False, "age_s": UNLISTED_S + 1.0}, LaunchStep.FORGET),
    ],
)
def test_a_machine_that_ends(seen: dict[str, Any], wanted: LaunchStep) -> None:
    """Its record stands until the provider lists it no more."""
    assert step(LaunchState.ENDING, **seen) is wanted


@pytest.mark.parametrize(
    ("record", "wanted"),
    [
        (launch(1, state=LaunchState.LAUNCHING, provider_id=""), LaunchStep.END),
        (launch(1, state=LaunchState.LAUNCHING, provider_id="i-1"), LaunchStep.NOTHING),
        (launch(1, state=LaunchState.UP, changed_at=NOW), LaunchStep.NOTHING),
        (launch(1, state=LaunchState.ENDING, changed_at=NOW - UNLISTED_S), LaunchStep.NOTHING),
        (launch(1, state=LaunchState.ENDING, changed_at=NOW - UNLISTED_S - 1.0), LaunchStep.FORGET),
    ],
)
def test_a_launch_of_a_pool_that_is_gone_does_not_stay_on_record(record: LaunchRecord, wanted: LaunchStep) -> None:
    """Its provider cannot be asked any more; a node that serves goes on."""
    record = replace(record, made_at=NOW)
    assert next_step(record, MachineSight(watched_since=NOW), GIVE_UP_S, NOW, has_pool=False).step is wanted
