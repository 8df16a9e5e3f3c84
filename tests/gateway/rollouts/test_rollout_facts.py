"""What a decision goes by: what is ready, what carries which share, and whether what serves is still compared."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from pilotlight_core.model.messages.node_messages import ContainerState
from pilotlight_core.model.rollouts.rollout_record import RolloutState
from pilotlight_core.model.spec import AppRecord
from pilotlight_gateway.rollouts.rollout_facts import (
    CountedContainers,
    carried,
    counted,
    is_promoted,
    is_ready,
    paired_functions,
    why_no_pairs,
    why_superseded,
)
from tests.builders.nodes import container, node_report
from tests.gateway.rollouts.kept_rollout import NEW, OLD, QUICK, TWIN, KeptRollout, rollout

TWINNED = rollout(twins={"price": TWIN})


def test_containers_that_take_calls_are_ready() -> None:
    """Not those that start, nor those of a node that drains; calls run in any."""
    reports = [
        node_report(
            "n1", containers=(container("a", NEW, running=2), container("b", NEW, state=ContainerState.LOADING))
        ),
        node_report("n2", draining=True, containers=(container("c", NEW, running=1),)),
    ]
    found = counted(reports)
    assert (found.ready[NEW], found.busy[NEW], found.starting[NEW]) == (1, 3, 1)


def of(ready: dict[str, int], **starting: int) -> CountedContainers:
    return CountedContainers(ready, {}, starting)


@pytest.mark.parametrize(
    ("ready", "is_so"),
    [({OLD: 2, NEW: 1, TWIN: 1}, True), ({OLD: 2, NEW: 1}, False), ({OLD: 2, TWIN: 1}, False), ({}, True)],
)
def test_each_side_has_a_container_wherever_the_old_version_has(ready: dict[str, int], is_so: bool) -> None:
    """A function at zero has no calls to lose."""
    assert is_ready(TWINNED, of(ready)) is is_so
    assert not is_ready(rollout(), of(ready))
    assert is_ready(rollout(terms=replace(QUICK, twin=False)), of({OLD: 2, NEW: 1}))


def test_an_old_version_that_starts_has_calls_to_lose() -> None:
    """They wait for its container, and none of the new version's would take them."""
    starts = of({}, **{OLD: 1})
    assert not is_ready(TWINNED, starts)
    assert carried(TWINNED, starts) == 0
    assert carried(TWINNED, of({NEW: 1, TWIN: 1}, **{OLD: 1})) == 5_000


@pytest.mark.parametrize(
    ("ready", "share"),
    [
        ({OLD: 4, NEW: 1, TWIN: 1}, 2_500),
        ({OLD: 4, NEW: 2, TWIN: 1}, 2_500),
        ({OLD: 4, NEW: 2, TWIN: 2}, 5_000),
        ({OLD: 4, NEW: 0, TWIN: 2}, 0),
        ({}, 5_000),
    ],
)
def test_the_side_with_the_least_capacity_carries_the_share(ready: dict[str, int], share: int) -> None:
    assert carried(TWINNED, of(ready)) == share


def test_at_the_end_the_twin_carries_the_rest_alone() -> None:
    """Of all the traffic nothing is left for it."""
    at_half = replace(TWINNED, step=0, share=5_000)
    assert carried(at_half, of({OLD: 4, NEW: 4, TWIN: 2})) == 10_000
    assert carried(at_half, of({OLD: 4, NEW: 3, TWIN: 2})) == 7_500


def app(**more: Any) -> AppRecord:
    fields: dict[str, Any] = {"tenant": "acme", "app": "shop", "revision": 1, "functions": {"price": OLD}}
    return AppRecord(**fields | more)


def test_what_serves_is_what_is_compared() -> None:
    """Another version in its place, a stopped app, or none, ends it; one that goes back has ended already."""
    assert why_superseded(rollout(), app()) == ""
    assert "price" in why_superseded(rollout(), app(functions={"price": "ver_3"}))
    assert why_superseded(rollout(), app(stopped=True)) == why_superseded(rollout(), None) != ""
    assert why_superseded(rollout(state=RolloutState.ROLLING_BACK), None) == ""


def test_it_is_promoted_when_all_of_it_serves() -> None:
    assert is_promoted(rollout(), app(functions={"price": NEW, "other": "x"}))
    assert not is_promoted(rollout(), app())
    assert not is_promoted(rollout(), None)


def test_pairs_are_made_of_functions_that_allow_shadows() -> None:
    kept = KeptRollout()
    assert list(paired_functions(kept.registry, rollout())) == ["price"]
    del kept.registry.versions[NEW]
    assert paired_functions(kept.registry, rollout()) == {}
    assert "not known" in why_no_pairs(kept.registry, rollout(), "price")
