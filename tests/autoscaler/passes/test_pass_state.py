"""What a pass knows, and the drains that it decides."""

from __future__ import annotations

from pilotlight_autoscaler.observations.world import World
from pilotlight_autoscaler.passes.decision import AddressedCommand
from pilotlight_autoscaler.passes.pass_input import PassInput
from pilotlight_autoscaler.passes.pass_state import DRAIN_MARGIN_S, PassState
from pilotlight_core.model.messages.node_messages import Drain
from tests.autoscaler.builders import record, report
from tests.builders.nodes import container


def test_a_drain_goes_to_the_containers_node_and_leaves_time_for_its_calls() -> None:
    """Its function's timeout, after which none can still run; and the container counts as leaving from then on."""
    world = World()
    world.on_report(report(container("c1", idle_s=1.0)), 1.0)
    version = record(timeout=20.0)
    known = {version.id: version}
    given = PassInput(versions=known, deployed=known, epoch=7, new_id=lambda _: "new", at=1.0)
    state = PassState(world, given)

    state.drain("c1", version, "idle")

    within_ms = (20.0 + DRAIN_MARGIN_S) * 1000.0
    command = Drain(epoch=7, container="c1", within_ms=within_ms, reason="idle")
    assert state.decision.commands == [AddressedCommand(node="n1", command=command)]
    assert state.leaving == {"c1"}
    assert state.decision.notes == [f"{version.ref}: c1 drains: idle"]
