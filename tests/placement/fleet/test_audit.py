"""The audit of a fleet: whatever drifts from what it derives from is found."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given

from pilotlight_placement.asks.ask import Ask
from pilotlight_placement.fleet.audit import IntegrityError, check_integrity
from pilotlight_placement.fleet.fleet import Fleet
from pilotlight_placement.hardware.node import Node
from tests.example_counts import examples
from tests.placement.makers import CHURN, fill, gpu, instance, node, some_nodes


@examples(60)
@given(some_nodes(), CHURN)
def test_a_fleet_that_was_only_used_is_sound(nodes: list[Node], steps: list[tuple[Ask, int]]) -> None:
    """Whatever came and went."""
    fleet = Fleet(nodes)
    fill(fleet, steps)

    check_integrity(fleet)


def move_mask(fleet: Fleet) -> None:
    next(iter(fleet.units.values())).mask = 1


def lose_state(fleet: Fleet) -> None:
    next(iter(fleet.groups.values())).states.clear()


def miscount_open(fleet: Fleet) -> None:
    next(iter(fleet.groups.values())).open[0] += 1


def miscount_class(fleet: Fleet) -> None:
    next(iter(fleet.groups.values())).class_index.running += 1


def forget_container(fleet: Fleet) -> None:
    fleet.held.clear()


def miscount_hosts(fleet: Fleet) -> None:
    fleet.hosts.free_memory.put(1, 1)


@pytest.mark.parametrize(
    "damage", [move_mask, lose_state, miscount_open, miscount_class, forget_container, miscount_hosts]
)
def test_the_audit_finds_what_is_wrong(damage: Callable[[Fleet], None]) -> None:
    """An index or count that drifts from its devices is named."""
    fleet = Fleet([node("n", gpu("g", mig=True))])
    fleet.hold(instance("a", "3g", 4))
    check_integrity(fleet)

    damage(fleet)

    with pytest.raises(IntegrityError):
        check_integrity(fleet)
