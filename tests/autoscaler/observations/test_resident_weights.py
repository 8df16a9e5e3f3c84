"""Which nodes have which weights."""

from __future__ import annotations

import pytest

from pilotlight_autoscaler.observations.resident_weights import MOST_OF_NODE, ResidentWeights
from pilotlight_autoscaler.observations.world import World
from pilotlight_core.model.messages.node_messages import WeightsReport
from pilotlight_core.model.placing import Placing
from pilotlight_placement.hardware.node import in_memory
from tests.autoscaler.builders import decide, demand, record, report
from tests.builders.nodes import node_report
from tests.builders.specs import function_spec, version_record

DIGEST = "a" * 64


def told(tenant: str = "acme", digest: str = DIGEST) -> WeightsReport:
    return WeightsReport(tenant=tenant, digest=digest, size=1)


def test_nodes_tell_of_what_was_pushed() -> None:
    """By tenant; what has not changed is the same object."""
    weights, nodes = ResidentWeights(), {"n1": node_report("n1", weights=(told(),)), "n2": node_report("n2")}
    found = weights.by_node(nodes)
    assert found == {"n1": frozenset({f"acme:@{DIGEST}"})}
    assert weights.by_node(nodes)["n1"] is found["n1"]

    assert weights.by_node({"n1": node_report("n1", seq=2)}) == {}
    assert weights.by_node({"n1": node_report("n1", weights=(told("rival"),))}) == {
        "n1": frozenset({f"rival:@{DIGEST}"})
    }


@pytest.mark.parametrize(("resident", "is_loaded"), [(0, False), (89, False), (90, True), (100, True)])
def test_what_is_in_memory_is_told_beside(resident: int, is_loaded: bool) -> None:
    """As good as all of it."""
    one = WeightsReport(tenant="acme", digest=DIGEST, size=100, resident=resident)
    (found,) = ResidentWeights().by_node({"n1": node_report("n1", weights=(one,))}).values()
    assert (in_memory(f"acme:@{DIGEST}") in found) is is_loaded


def test_a_name_is_where_a_container_of_it_became_ready() -> None:
    """As long as that agent runs; of weights that were pushed the nodes know better."""
    weights, first = ResidentWeights(), node_report("n1", instance="i1")
    named, pushed = (
        version_record(function_spec("f", placing=Placing(weights=text))) for text in ("llama", f"@{DIGEST}")
    )
    weights.note_version("v1", named)
    weights.note_version("v2", pushed)
    assert dict(weights.named) == {"v1": f"{named.tenant}:llama"}

    weights.note_ready(first, "acme:llama")
    assert weights.by_node({"n1": first}) == {"n1": frozenset({"acme:llama", in_memory("acme:llama")})}
    assert weights.by_node({"n1": node_report("n1", instance="i2")}) == {}
    weights.note_version("v1", None)
    assert dict(weights.named) == {}


def test_what_is_remembered_of_a_node_is_bounded() -> None:
    """The oldest go; a lost node is forgotten."""
    weights, node = ResidentWeights(), node_report("n1")
    for number in range(MOST_OF_NODE + 1):
        weights.note_ready(node, f"acme:{number}")
    assert len(weights.by_node({"n1": node})["n1"]) == 2 * MOST_OF_NODE
    weights.forget("n1")
    assert weights.by_node({"n1": node}) == {}


@pytest.mark.parametrize("has", ["n1", "n2", "n3"])
def test_a_container_starts_where_its_weights_are(has: str) -> None:
    """Before it has run anywhere, and of no other tenant's."""
    world = World()
    for node in ("n1", "n2", "n3"):
        weights = (told(),) if node == has else (told("rival"),)
        world.on_report(report(node=node, weights=weights), 1.0)
    world.on_demand(demand(queued=1), 1.0)

    (sent,) = decide(world, record(placing=Placing(weights=f"@{DIGEST}"))).commands

    assert sent.node == has
