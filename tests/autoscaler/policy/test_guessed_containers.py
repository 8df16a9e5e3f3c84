"""Which containers are there by the platform's guess."""

from __future__ import annotations

from typing import Any

import pytest

from pilotlight_autoscaler.policy.guessed_containers import taken_otherwise
from pilotlight_autoscaler.policy.scaling_policy import VersionView
from pilotlight_core.model.messages.node_messages import ContainerReport
from tests.builders.nodes import container
from tests.builders.specs import function_spec

WINDOW_S = 60.0


def idle(name: str, idle_s: float, *, guessed: bool | None = False, **more: Any) -> ContainerReport:
    return container(name, idle_s=idle_s, age_s=900.0, guessed=guessed, **more)


def told(*there: ContainerReport, declared: int = 0, deployed: bool = True, **more: Any) -> dict[str, bool]:
    """What agents are to be told of a version's containers, whose window is a minute."""
    spec = function_spec(scaledown_window=WINDOW_S, **more)
    view = VersionView(spec=spec, deployed=deployed, demand=None, containers=there)
    return {each.id: is_guess for each, is_guess in taken_otherwise(view, declared)}


def test_what_is_idle_beyond_its_window_is_a_guess() -> None:
    """The longest idle ones beyond what their tenant asks for; within the window it is the tenant's."""
    there = [idle("a", 90.0), idle("b", 70.0), idle("c", 61.0), idle("d", 59.0)]
    assert told(*there) == {"a": True, "b": True, "c": True}
    assert told(*there, declared=2) == {"a": True, "b": True}
    assert told(*there, declared=4) == {}


def test_what_an_agent_knows_it_is_not_told_again() -> None:
    """It counts for what is beyond, whatever its idle time."""
    assert told(idle("a", 90.0), idle("b", 10.0, guessed=True), declared=1) == {}


def test_a_guess_that_is_asked_for_now_is_none_any_more() -> None:
    """The shortest idle first, as the others would go before."""
    there = [idle("a", 90.0, guessed=True), idle("b", 70.0, guessed=True)]
    assert told(*there, declared=1) == {"b": False}
    assert told(*there, declared=5) == {"a": False, "b": False}


def test_a_start_that_is_a_guess_is_the_tenants_as_soon_as_it_is_declared() -> None:
    """While it loads, too."""
    assert told(idle("a", 0.0, guessed=True), declared=1) == {"a": False}


def test_the_last_one_has_a_window_of_its_own() -> None:
    """As its function says."""
    there = [idle("a", 90.0), idle("b", 90.0)]
    assert told(*there, zero_window=300.0) == {"a": True}
    assert told(*there, zero_window=80.0) == {"a": True, "b": True}
    assert told(idle("a", 90.0, guessed=True), idle("b", 90.0), zero_window=300.0) == {}


@pytest.mark.parametrize("running", [0, 1])
def test_agents_of_before_and_busy_containers_are_told_nothing(running: int) -> None:
    """The first would not understand, and a call makes its container the tenant's."""
    assert told(idle("a", 90.0, guessed=None)) == {}
    assert told(idle("a", 0.0, running=running)) == {}


def test_nothing_is_said_where_nothing_is_known() -> None:
    """Of a version whose home is silent; a superseded one ends at once."""
    spec = function_spec(scaledown_window=WINDOW_S)
    silent = VersionView(
        spec=spec, deployed=True, demand=None, containers=(idle("a", 90.0), idle("b", 9.0, guessed=True)),
        home_is_silent=True,
    )  # fmt: skip
    assert list(taken_otherwise(silent, 2)) == []
    assert told(idle("a", 90.0), deployed=False) == {}
