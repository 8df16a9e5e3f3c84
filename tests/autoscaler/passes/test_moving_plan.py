"""Containers are moved for those without a place: how, whose, and how many."""

from __future__ import annotations

from typing import Any

from pilotlight_autoscaler.observations.pending_commands import PendingBind
from pilotlight_autoscaler.observations.refusal_memory import ROOM_AGAIN_S
from pilotlight_autoscaler.passes.decide import SOUGHT_AT_ONCE
from pilotlight_autoscaler.passes.pass_input import PassOptions
from pilotlight_autoscaler.policy.move_budget import MoveBudget
from pilotlight_core.model.devices import MigPlacement
from pilotlight_core.model.messages.node_messages import Bind, Drain
from pilotlight_core.model.messages.usage_facts import Purpose
from pilotlight_core.model.placing import Placing
from pilotlight_core.model.units import GpuAsk
from pilotlight_placement.plan.draft import PlanLimits
from pilotlight_placement.search.decision_record import NoFit
from tests.autoscaler.fleet import (
    GIB,
    H100,
    FakeFleet,
    FakeGpu,
    FakeNode,
    fleet_of,
    h100,
    occupy,
    small,
    version,
)
from tests.builders.nodes import bind

MOVES_AT_ONCE = PassOptions(limits=PlanLimits(min_residency_s=5.0))


def test_a_container_on_two_gpus_is_moved_as_one() -> None:
    """To two others, so that four of one node are free."""
    nodes = [FakeNode(name=f"n{n}", gpus=[h100(f"GPU-{n}{m}") for m in range(4)]) for n in (1, 2)]
    pair = version("pair", gpu=(GpuAsk("H100", 2),), max_containers=4)
    fleet = fleet_of(*nodes, versions=(pair, version("four", gpu=(GpuAsk("H100", 4),))), bounds=MOVES_AT_ONCE)
    for node in nodes:
        occupy(node, f"{node.gpus[0].id}+{node.gpus[1].id}", "pair", fleet.at - 100.0)
        node.log.clear()

    for _ in range(12):
        fleet.step({"ver_four": 1})
        assert len(fleet.running("ver_pair")) >= 2

    assert fleet.running("ver_four")
    assert len(fleet.running("ver_pair")) == 2


def test_room_is_made_by_moving_and_nothing_stops_before_its_copy_is_ready() -> None:
    """A 3g that two small ones keep apart: one is started elsewhere, then stopped, then the large one starts."""
    one, two = h100("GPU-1", mig=True), h100("GPU-2", mig=True)
    nodes = FakeNode(name="n1", gpus=[one]), FakeNode(name="n2", gpus=[two])
    large = version("large", gpu=H100, vram=60 * GIB, max_containers=1)
    fleet = fleet_of(*nodes, versions=(small(max_containers=4), large), bounds=MOVES_AT_ONCE)
    for node, gpu in zip(nodes, (one, two), strict=True):
        gpu.instances = {MigPlacement(start=6, profile="1g")}
        occupy(node, f"{gpu.id}:1g@6", "small", fleet.at - 100.0)
        node.log.clear()

    most = 0
    for _ in range(12):
        fleet.step({"ver_large": 1})
        most = max(most, len(fleet.running("ver_small")))
        assert len(fleet.running("ver_small")) >= 2
        if fleet.running("ver_large"):
            break

    assert fleet.running("ver_large")
    assert most == 3  # the copy beside the original
    assert any("makes room for acme:hello.large" in note for note in fleet.notes)
    (moved,) = [c for node in nodes for c in node.log if isinstance(c, Drain)]
    assert moved.container.startswith("old_")
    purposes = {(c.version, c.purpose) for node in nodes for c in node.log if isinstance(c, Bind)}
    assert purposes == {("ver_small", Purpose.MOVE), ("ver_large", Purpose.CALL)}


def two_apart(**more: Any) -> tuple[FakeFleet, list[FakeNode]]:
    """Two GPUs, a small container on each: a large one has no place until one of them is moved to the other GPU."""
    nodes = [FakeNode(name=f"n{n}", gpus=[h100(f"GPU-{n}", mig=True)]) for n in (1, 2)]
    large = version("large", gpu=H100, vram=60 * GIB, max_containers=1)
    fleet = fleet_of(*nodes, versions=(small(max_containers=4, **more), large), bounds=MOVES_AT_ONCE)
    for node in nodes:
        node.gpus[0].instances = {MigPlacement(start=6, profile="1g")}
        occupy(node, f"{node.gpus[0].id}:1g@6", "small", fleet.at - 100.0)
        node.log.clear()
    return fleet, nodes


def test_room_is_made_however_much_else_is_started_and_stopped() -> None:
    """Starts in every pass and plans under way do not delay a version that needs a move for ever."""
    fleet, _ = two_apart()
    fleet.nodes.append(FakeNode(name="n3", gpus=[FakeGpu(id=f"GPU-{n}", kind="T4") for n in "abcdefgh"], busy=False))
    for n in range(30):
        made = version(f"c{n}", gpu=(GpuAsk("T4"),), max_containers=1, scaledown_window=1.0)
        fleet.versions[made.id] = made

    for n in range(30):
        assert fleet.step({"ver_large": 1, f"ver_c{n}": 1}).commands

    assert fleet.running("ver_large")


def test_a_tenant_that_had_its_moves_waits_and_others_do_not() -> None:
    """Room is made for the one that had none."""
    fleet, _ = two_apart()
    fleet.world.moves = MoveBudget(per_hour=4)
    for _ in range(2):
        fleet.world.moves.spend(fleet.at, "acme")

    for _ in range(6):
        fleet.step({"ver_large": 1})
    assert "2 containers were moved for acme in the last hour" in fleet.short["ver_large"]
    other = version("other", tenant="zoo", gpu=H100, vram=60 * GIB, max_containers=1)
    fleet.versions[other.id] = other
    for _ in range(8):
        fleet.step({"ver_large": 1, "ver_other": 1})

    assert fleet.running("ver_other")
    assert not fleet.running("ver_large")


def test_a_trial_has_nobody_moved() -> None:
    """Whoever only measures waits for a slice that is free."""
    fleet, nodes = two_apart()
    fleet.versions["ver_large"] = version(
        "large", gpu=H100, vram=60 * GIB, max_containers=1, placing=Placing(slice="H100-80GB/7g")
    )

    for _ in range(8):
        fleet.step({"ver_large": 1})

    assert [command for node in nodes for command in node.log] == []


def test_who_is_on_its_way_or_leaves_is_not_moved() -> None:
    """A bind that no report shows yet, and a container that ends its last calls."""
    fleet, (one, two) = two_apart()
    one.containers["old_n1"].leaving = True
    two.containers.clear()
    fleet.silent.add("n1")
    fleet.world.on_report(one.report(fleet.at), fleet.at)
    on_its_way = bind("new_n2", "ver_small", slice="GPU-2:1g@6", function="acme:hello.small")
    fleet.world.pending["new_n2"] = PendingBind(bind=on_its_way, node="n2", at=fleet.at)

    made = fleet.step({"ver_large": 1})

    assert not made.executions
    assert "in use" in fleet.short["ver_large"]


def test_the_young_are_not_moved() -> None:
    """Before their minimum residency everybody waits."""
    nodes = [FakeNode(name=f"n{n}", gpus=[h100(f"GPU-{n}", mig=True)]) for n in (1, 2)]
    large = version("large", gpu=H100, vram=60 * GIB)
    fleet = fleet_of(*nodes, versions=(small(), large), bounds=PassOptions(limits=PlanLimits(min_residency_s=500.0)))
    for node in nodes:
        node.gpus[0].instances = {MigPlacement(start=6, profile="1g")}
        occupy(node, f"{node.gpus[0].id}:1g@6", "small", fleet.at - 100.0)
        node.log.clear()

    for _ in range(6):
        fleet.step({"ver_large": 1})

    assert [command for node in nodes for command in node.log] == []
    assert "in use" in fleet.short["ver_large"]


def test_room_is_looked_for_for_a_few_in_one_pass_and_for_the_others_in_the_next() -> None:
    """Those that are looked at later are not forgotten."""
    many = [version(f"large{n}", gpu=H100, vram=60 * GIB, max_containers=1) for n in range(2 * SOUGHT_AT_ONCE + 1)]
    node = FakeNode(name="n1", gpus=[h100("GPU-1")])
    fleet = fleet_of(node, versions=(version("there", gpu=H100), *many), bounds=MOVES_AT_ONCE)
    occupy(node, "GPU-1", "there", fleet.at - 1.0)

    def sought() -> int:
        refusals = fleet.world.refusals
        return sum(not refusals.is_room_due([each.id], fleet.at) for each in many)

    found = []
    for _ in range(3):
        fleet.step({each.id: 1 for each in many} | {"ver_there": 1})
        found.append(sought())

    assert found == [SOUGHT_AT_ONCE, 2 * SOUGHT_AT_ONCE, len(many)]


def test_room_is_looked_for_again_after_a_while() -> None:
    """However often its version is looked at meanwhile: what could be moved is dear to find."""
    nodes = [FakeNode(name=f"n{n}", gpus=[h100(f"GPU-{n}", mig=True)]) for n in (1, 2)]
    large = version("large", gpu=H100, vram=60 * GIB)
    fleet = fleet_of(*nodes, versions=(small(), large), bounds=MOVES_AT_ONCE)
    began = fleet.at
    for node in nodes:
        node.gpus[0].instances = {MigPlacement(start=6, profile="1g")}
        occupy(node, f"{node.gpus[0].id}:1g@6", "small", began)
        node.log.clear()

    while not any(node.log for node in nodes) and fleet.at < began + 3 * ROOM_AGAIN_S:
        fleet.step({"ver_large": 1})

    assert any(node.log for node in nodes)
    assert fleet.at - began >= ROOM_AGAIN_S


def test_no_more_is_moved_in_an_hour_than_may_be_and_that_is_said() -> None:
    """A blocked version's shortage says why no room is made, and when it may be."""
    nodes = [FakeNode(name=f"n{n}", gpus=[h100(f"GPU-{n}", mig=True)]) for n in (1, 2)]
    large = version("large", gpu=H100, vram=60 * GIB)
    fleet = fleet_of(*nodes, versions=(small(max_containers=4), large), bounds=MOVES_AT_ONCE)
    fleet.world.moves = MoveBudget(per_hour=1)
    fleet.world.moves.spend(fleet.at)
    for node in nodes:
        node.gpus[0].instances = {MigPlacement(start=6, profile="1g")}
        occupy(node, f"{node.gpus[0].id}:1g@6", "small", fleet.at - 100.0)
        node.log.clear()

    for _ in range(6):
        fleet.step({"ver_large": 1})

    assert [command for node in nodes for command in node.log] == []
    assert "1 containers were moved in the last hour, which is as many as may be" in fleet.short["ver_large"]
    told, *_ = (each.outcome for each in fleet.world.decisions.of_function("acme:hello.large"))
    assert isinstance(told, NoFit)
    assert "--moves-per-hour" in told.reason
    fleet.at += 3600.0
    for _ in range(8):
        fleet.step({"ver_large": 1})
    assert fleet.running("ver_large")
