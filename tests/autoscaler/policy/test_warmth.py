"""Which tier a container without calls is worth."""

from __future__ import annotations

import pytest

from pilotlight_autoscaler.policy.warmth import (
    BEARABLE_S,
    LONGEST_S,
    bearable_s,
    can_be_parked,
    stays_s,
    tier_of,
)
from pilotlight_autoscaler.policy.wish import Warmth
from pilotlight_core.model.messages.node_messages import HostMemory
from pilotlight_core.model.spec import SLO
from tests.builders.nodes import container
from tests.builders.specs import function_spec


def test_a_start_that_callers_can_bear_is_not_worth_memory() -> None:
    """The cheapest tier that keeps the promise: by the service level, or half of the default one."""
    plain, strict = function_spec("f"), function_spec("f", slo=SLO(p95_ms=50.0))

    assert (bearable_s(plain), bearable_s(strict)) == (BEARABLE_S, 0.05)
    assert tier_of(plain, BEARABLE_S) is Warmth.NONE
    assert tier_of(plain, 0.3) is Warmth.PARKED
    assert tier_of(strict, 0.1) is Warmth.PARKED
    assert tier_of(strict, 0.1, is_funded=False) is Warmth.NONE


def test_what_starts_slowly_stays_parked_for_long() -> None:
    """Ten minutes for each second, and an hour at most."""
    assert (stays_s(0.5), stays_s(2.0), stays_s(60.0)) == (300.0, 1200.0, LONGEST_S)


@pytest.mark.parametrize(
    ("parks", "memory", "can"),
    [
        ("any", HostMemory(total=1), True),
        ("", HostMemory(total=1), False),
        ("any", HostMemory(total=0), False),
        ("any", None, False),
    ],
)
def test_only_what_its_node_can_park_is_parked(parks: str, memory: HostMemory | None, can: bool) -> None:
    """An older agent parks nothing, nor does one without memory for it, nor a GPU what has no hooks."""
    assert can_be_parked(container("c1", "ver_1", parks=parks), memory) is can
