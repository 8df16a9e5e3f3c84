"""Single reasons why a fleet can never hold an ask."""

from __future__ import annotations

from typing import Any

from pilotlight_core.model.placing import Purchase
from pilotlight_placement.asks.ask import GIB, Ask
from pilotlight_placement.fleet.fleet import Fleet
from pilotlight_placement.hardware.node import Domain, Node
from pilotlight_placement.search.decision_record import NoFit
from pilotlight_placement.search.place import place
from tests.placement.makers import ABLE, ask, cpu, gpu, host, node


def refused(fleet: Fleet, wanted: Ask) -> NoFit:
    found = place(fleet, wanted)
    assert isinstance(found, NoFit)
    return found


def test_the_largest_slice_and_what_is_missing_are_named() -> None:
    """Of the types asked for."""
    fleet = Fleet([node("n", gpu("a", "A30", mig=True), gpu("b", "H100-80GB"))])

    told = refused(fleet, ask("A30", gib=30))

    assert told.never
    assert told.reason == (
        "it asks for A30 with 30.0 GiB, and the fleet has 1 A30, 1 H100-80GB; the largest slice that exists is "
        "4g.24gb of A30 with 23.4 GiB: 6.6 GiB are missing"
    )


def test_what_else_rules_everything_out_is_said() -> None:
    """Where it is not memory."""
    fleet = Fleet([node("n", gpu("a", "T4"), zone="x")])

    assert refused(fleet, ask("T4", zones=("y",))).reason.endswith("the fleet has 1 T4: there is no zone y; there is x")


def test_a_type_a_region_or_a_purchase_that_there_is_not_is_named_with_what_there_is() -> None:
    """Only devices of the types asked for are counted as being elsewhere."""
    fleet = Fleet([
        node("n", gpu("a"), slots=(cpu(0), cpu(1)), host=host(8, 16), region="east"),
        node("m", slots=(cpu(2),), host=host(8, 32), region="west"),
    ])  # fmt: skip

    def reason(*types: str, **more: Any) -> str:
        return refused(fleet, ask(*types, **more)).reason

    assert reason("H1000").endswith("there is no GPU type H1000 in the catalogue: did you mean H100?")
    assert "did you mean H100? (vram= gets a part of one)" in reason("H100-MIG-1G")
    assert reason("ANY", regions=("mars",)).endswith("there is no region mars; there is east, west")
    assert reason("H100", regions=("west",)).endswith(": 1 in other regions")
    assert reason("H100", purchase=Purchase.SPOT).endswith(": 1 not on spot nodes")
    assert reason("ANY", purchase=Purchase.SPOT).startswith("it asks for any GPU, and")
    assert reason("H100", memory=2048 * GIB).endswith(
        "no node with such a device or slot has more than 16.0 GiB of host memory for containers (memory=)"
    )
    assert reason(cpu=9000).endswith("no node with such a device or slot has more than 8 cores for containers (cpu=)")
    assert reason(cpu=7000, memory=2048 * GIB).startswith("it asks for a CPU slot and 7 cores and 2048.0 GiB of host")


def test_what_agents_cannot_do_is_named_with_what_would_help() -> None:
    """Only devices of the types asked for are counted; a base environment that there is not, with those there are."""
    able = Domain(zone="x", abilities=ABLE)
    fleet = Fleet([
        Node(name="new", domain=able, slots=(cpu(0), cpu(1))),
        Node(name="old", slots=(cpu(2),)),
        Node(name="gpus", domain=able, gpus=(gpu("a", "T4"),)),
    ])  # fmt: skip

    def reason(**more: Any) -> str:
        return refused(fleet, ask(**more)).reason

    assert reason(base="jax").endswith(": there is no base environment jax; there is default, torch")
    assert reason(base="jax").startswith("it asks for a CPU slot in the base environment jax, and")
    assert reason(base="torch", memory=2048 * GIB, zones=("y",)).endswith("there is no zone y; there is x")
    assert reason(needs=("wings",)).endswith(": 3 on nodes whose agent is older and cannot do wings (upgrade it)")
    assert reason(needs=("sandbox-limits",)).endswith(
        ": 3 on nodes whose agent is older and cannot do sandbox-limits (upgrade it), "
        "or whose sandbox holds no such limits"
    )
    assert reason(base="torch", needs=("limits",), pids=5000).endswith(
        ": 1 on nodes without the base environment torch, "
        "2 on nodes that allow fewer than 5000 processes and threads (pids=)"
    )
    assert reason(needs=("limits",), shm=9 * GIB).endswith(
        ": 1 on nodes whose agent is older and cannot do limits (upgrade it), "
        "2 on nodes that allow less than 9216 MiB of /dev/shm (shm=)"
    )
    assert "2 on nodes that allow less than 9216 MiB of /tmp (scratch=)" in reason(needs=("limits",), scratch=9 * GIB)
