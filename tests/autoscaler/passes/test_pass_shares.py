"""The terms of the tenants that hold something or wait."""

from __future__ import annotations

from pilotlight_autoscaler.observations.world import World
from pilotlight_autoscaler.passes.pass_input import PassInput
from pilotlight_autoscaler.passes.pass_shares import free_resources, shares_of
from pilotlight_autoscaler.passes.pass_state import PassState
from pilotlight_core.model.limits import NO_LIMITS, Limits
from pilotlight_placement.fleet.tenant_holdings import HeldResources
from tests.autoscaler.builders import record, report
from tests.builders.nodes import container


def test_terms_are_of_tenants_that_hold_or_wait() -> None:
    """Guarantee and borrowing limit from their limits, and their weight; others are as good as unknown."""
    world = World()
    world.on_report(report(container("c1"), slots=4), 1.0)
    limits = {"acme": Limits(guarantee=0.5, borrow=0.25), "away": Limits(guarantee=0.5)}
    given = PassInput(
        versions={"ver_1": record()}, deployed=("ver_1",), epoch=1, new_id=lambda _: "new", at=1.0,
        limits_of=lambda tenant: limits.get(tenant, NO_LIMITS), weight_of=lambda _: 2.0,
    )  # fmt: skip
    state = PassState(world, given)

    shares = shares_of(state, {"zoo"})

    acme = shares.terms("acme")
    assert (acme.weight, acme.guarantee, acme.most) == (2.0, 0.5, 0.75)
    assert shares.terms("zoo").weight == 2.0
    assert shares.terms("away").guarantee == 0.0
    assert shares.level("acme") == 0.125
    assert free_resources(state.fleet) == HeldResources(slots=3)
