"""What waits to be dealt out."""

from __future__ import annotations

from dataclasses import replace

from pilotlight_autoscaler.policy.missing_starts import MissingStarts, in_turn
from pilotlight_placement.fleet.tenant_holdings import HeldResources


def test_one_that_is_dealt_out_leaves_the_others_of_its_kind() -> None:
    """They ask for the same, for the same tenant."""
    two = MissingStarts(ask="a", tenant="acme", need=HeldResources(1, 0, 0), count=2)

    assert replace(two, count=1) == MissingStarts(ask="a", tenant="acme", need=HeldResources(1, 0, 0), count=1)


def test_of_each_tenant_one_has_its_turn_before_the_second_of_any() -> None:
    """Those of one tenant in the order in which they came."""
    names = ["e1", "e2", "a1", "e3", "b1", "a2"]
    assert list(in_turn(names, lambda name: name[0])) == ["e1", "a1", "b1", "e2", "a2", "e3"]
    assert list(in_turn([], str)) == []
