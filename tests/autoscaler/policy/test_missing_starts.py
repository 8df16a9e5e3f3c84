"""What waits to be dealt out."""

from __future__ import annotations

from dataclasses import replace

from pilotlight_autoscaler.policy.missing_starts import MissingStarts
from pilotlight_placement.fleet.tenant_holdings import HeldResources


def test_one_that_is_dealt_out_leaves_the_others_of_its_kind() -> None:
    """They ask for the same, for the same tenant."""
    two = MissingStarts(ask="a", tenant="acme", need=HeldResources(1, 0, 0), count=2)

    assert replace(two, count=1) == MissingStarts(ask="a", tenant="acme", need=HeldResources(1, 0, 0), count=1)
