"""The controller over a fleet in memory: cutting, switching, moving, and what it must never do."""

from __future__ import annotations

import random
from typing import Any

import pytest

from pilotlight_autoscaler.observations.world import World
from pilotlight_autoscaler.passes.pass_input import PassOptions
from pilotlight_core.model.devices import MigMode, MigPlacement
from pilotlight_core.model.messages.device_commands import Cut, SwitchMig
from pilotlight_core.model.messages.node_messages import Bind
from pilotlight_core.model.placing import Placing
from pilotlight_core.model.price_book import PriceBook
from pilotlight_core.model.spec import Isolation
from pilotlight_core.model.units import GpuAsk
from pilotlight_placement.asks.options import Prices
from pilotlight_placement.plan.draft import PlanLimits
from tests.autoscaler.fleet import (
    GIB,
    H100,
    FakeFleet,
    FakeGpu,
    FakeNode,
    commands,
    fleet_of,
    h100,
    occupy,
    small,
    version,
)

JUDGED = 3
"""Histories by which a change is judged; `make test-long` has the others."""
REPACKS = PassOptions(limits=PlanLimits(min_residency_s=5.0), repack=True)


def test_an_idle_gpu_is_cut_before_the_container_starts_on_it() -> None:
    """The bind waits until the report shows its instance; the container is counted as coming meanwhile."""
    node = FakeNode(name="n1", gpus=[h100("GPU-1", mig=True)])
    fleet = fleet_of(node, versions=(small(max_containers=1),))

    for _ in range(6):
        fleet.step({"ver_small": 1})

    assert commands(node) == ["Cut", "Bind"]
    assert fleet.running("ver_small") == ["ctr_1"]
    assert node.gpus[0].instances == {MigPlacement(start=6, profile="1g")}
    why = fleet.world.decisions.of_container("ctr_1")
    assert why is not None
    assert why.outcome.record.value is not None
    assert why.outcome.record.value.cut == 1


def test_a_whole_gpu_is_switched_to_mig_where_a_part_would_do() -> None:
    """Switch, cut, start: each when the report shows the one before; nothing else is put on the GPU meanwhile."""
    node = FakeNode(name="n1", gpus=[h100("GPU-1")])
    fleet = fleet_of(node, versions=(small(max_containers=2), version("whole", gpu=H100)))

    for _ in range(8):
        fleet.step({"ver_small": 2, "ver_whole": 1})

    assert commands(node)[:2] == ["SwitchMig", "Cut"]
    assert commands(node).count("SwitchMig") == 1
    assert len(fleet.running("ver_small")) == 2
    assert "in use" in fleet.short["ver_whole"]


def test_mig_mode_is_switched_off_for_a_whole_one() -> None:
    """Idle instances go with it."""
    gpu = h100("GPU-1", mig=True)
    gpu.instances = {MigPlacement(start=4, profile="3g")}
    node = FakeNode(name="n1", gpus=[gpu])
    fleet = fleet_of(node, versions=(version("pair", gpu=(GpuAsk("H100", 2),)),))
    node.gpus.append(h100("GPU-2"))

    for _ in range(5):
        fleet.step({"ver_pair": 1})

    assert commands(node) == ["SwitchMig", "Bind"]
    assert fleet.place_of("ctr_1") in ("n1/GPU-1+GPU-2", "n1/GPU-2+GPU-1")


@pytest.mark.parametrize("only", ["1g", "whole"])
def test_a_trial_has_the_mode_of_an_idle_gpu_switched(only: str) -> None:
    """It takes one kind of slice, which a GPU in the other mode does not have."""
    node = FakeNode(name="n1", gpus=[h100("GPU-1", mig=only == "whole")])
    trial = small("trial", max_containers=1, placing=Placing(slice=f"H100-80GB/{only}"))
    fleet = fleet_of(node, versions=(trial,))

    for _ in range(8):
        fleet.step({"ver_trial": 1})

    assert commands(node) == (["SwitchMig", "Bind"] if only == "whole" else ["SwitchMig", "Cut", "Bind"])
    assert fleet.running("ver_trial") == ["ctr_1"]


def test_an_idle_container_goes_at_once_where_whole_gpus_in_the_other_mode_are_waited_for() -> None:
    """Its scale-down window has not passed by far; then both GPUs leave MIG mode."""
    node = FakeNode(name="n1", gpus=[h100("GPU-1", mig=True), h100("GPU-2", mig=True)], busy=False)
    idle = small(max_containers=1, scaledown_window=3600.0)
    fleet = fleet_of(node, versions=(idle, version("pair", gpu=(GpuAsk("H100", 2),))))
    for _ in range(6):
        fleet.step({"ver_small": 1})
    assert fleet.running("ver_small")

    for _ in range(16):
        fleet.step({"ver_pair": 1})

    assert fleet.running("ver_pair")
    assert commands(node) == ["Cut", "Bind", "Drain", "SwitchMig", "SwitchMig", "Bind"]


def test_an_idle_container_on_two_gpus_gives_way() -> None:
    """It is one container on both of them, whichever of the two its node lists it on."""
    node = FakeNode(name="n1", gpus=[h100("GPU-1"), h100("GPU-2")], busy=False)
    first, second = (version(name, gpu=(GpuAsk("H100", 2),), scaledown_window=3600.0) for name in ("one", "two"))
    fleet = fleet_of(node, versions=(first, second))
    for _ in range(6):
        fleet.step({"ver_one": 1})
    assert fleet.running("ver_one")

    for _ in range(10):
        fleet.step({"ver_two": 1})

    assert fleet.running("ver_two")


def test_ampere_keeps_the_mode_that_it_has() -> None:
    """A reset would be needed: the call waits, or never comes, but nothing is switched."""
    node = FakeNode(name="n1", gpus=[FakeGpu(id="GPU-1", kind="A100-80GB")])
    fleet = fleet_of(node, versions=(version("small", gpu=(GpuAsk("A100"),), vram=8 * GIB, isolation=Isolation.MIG),))

    for _ in range(4):
        fleet.step({"ver_small": 1})

    assert commands(node) == ["Bind"]


def test_hardly_used_gpus_are_emptied_onto_those_in_use() -> None:
    """Now and then, and the copy is ready before the original goes."""
    nodes = [FakeNode(name=f"n{n}", gpus=[h100(f"GPU-{n}", mig=True)]) for n in (1, 2)]
    fleet = fleet_of(*nodes, versions=(small(min_containers=2, max_containers=4),), bounds=REPACKS)
    for node in nodes:
        node.gpus[0].instances = {MigPlacement(start=6, profile="1g")}
        occupy(node, f"{node.gpus[0].id}:1g@6", "small", fleet.at - 10_000.0)

    for _ in range(10):
        fleet.step()
        assert len(fleet.running("ver_small")) >= 2

    assert sorted(len(node.containers) for node in nodes) == [0, 2]


def test_a_gpu_that_cannot_be_cut_is_left_for_another() -> None:
    """The plan is dropped when the report has the failure, and the GPU accepts nothing new for a while."""
    bad, good = h100("GPU-1", mig=True), FakeGpu(id="GPU-2", kind="A30", mig=MigMode.ON)
    bad.broken = True
    node = FakeNode(name="n1", gpus=[bad, good])
    wanted = version("small", gpu=(GpuAsk("H100"), GpuAsk("A30")), vram=5 * GIB, max_containers=1)
    fleet = fleet_of(node, versions=(wanted,))

    for _ in range(14):
        fleet.step({"ver_small": 1})

    assert any("the driver failed" in note for note in fleet.notes)
    assert [fleet.place_of(name) for name in fleet.running("ver_small")] == ["n1/GPU-2:1g@3"]


def test_a_gpu_that_is_left_alone_for_a_while_is_none_that_is_missing() -> None:
    """Calls that wait for it do not get "never", which would refuse them."""
    gpu = h100("GPU-1", mig=True)
    gpu.broken = True
    fleet = fleet_of(FakeNode(name="n1", gpus=[gpu]), versions=(small(max_containers=1),))

    shortages = [shortage for _ in range(14) for shortage in fleet.step({"ver_small": 1}).shortages]

    assert any("the driver failed" in note for note in fleet.notes)
    assert shortages
    assert not any(shortage.never for shortage in shortages)


def test_a_node_that_falls_silent_takes_its_plan_with_it() -> None:
    """Its waiting steps are dropped, and decided again elsewhere."""
    nodes = [FakeNode(name=f"n{n}", gpus=[h100(f"GPU-{n}", mig=True)]) for n in (1, 2)]
    fleet = fleet_of(*nodes, versions=(small(max_containers=1),))
    fleet.step({"ver_small": 1})
    chosen = next(node for node in nodes if node.log)
    fleet.silent.add(chosen.name)

    for _ in range(20):
        fleet.step({"ver_small": 1})

    assert len(fleet.world.executions) == 0
    (other,) = [node for node in nodes if node is not chosen]
    assert len(other.containers) == 1


def some_nodes(dice: random.Random) -> list[FakeNode]:
    """Four nodes with GPUs of several kinds, some of them in MIG mode."""
    kinds = ("H100-80GB", "H100-80GB", "A100-80GB", "T4")
    nodes = []
    for n in range(4):
        gpus = [FakeGpu(id=f"GPU-{n}{g}", kind=dice.choice(kinds)) for g in range(dice.randint(1, 3))]
        for gpu in gpus:
            gpu.mig = MigMode.ON if gpu.kind != "T4" and dice.random() < 0.6 else MigMode.OFF
        nodes.append(FakeNode(name=f"n{n}", zone=dice.choice("ab"), start_steps=dice.randint(1, 3), gpus=gpus))
    return nodes


def park_one(fleet: FakeFleet, node: FakeNode, dice: random.Random) -> None:
    """A container leaves its GPU, unless a plan has it end."""
    told = fleet.world.executions.containers() | fleet.world.draining.keys()
    still = [name for name, each in node.containers.items() if not each.leaving and name not in told]
    if still and not node.draining and node.name not in fleet.silent:
        node.park(dice.choice(still))


def happens(fleet: FakeFleet, dice: random.Random) -> None:
    """Something, or nothing."""
    node, event = dice.choice(fleet.nodes), dice.random()
    if event < 0.05:
        node.draining = not node.draining
    elif event < 0.1:
        fleet.silent ^= {node.name}
    elif event < 0.15:
        dice.choice(node.gpus).broken = True
    elif event < 0.25:
        park_one(fleet, node, dice)
    elif event < 0.4:
        node.busy = dice.random() < 0.6


@pytest.mark.parametrize("seed", [pytest.param(n, marks=pytest.mark.long if n >= JUDGED else ()) for n in range(24)])
def test_whatever_comes_the_promises_hold(seed: int) -> None:
    """Demands, draining nodes, silence and broken GPUs at random: nodes assert what must never be done to them.

    Whoever asks for a thing that fits an empty fleet is served in the end.
    """
    dice = random.Random(seed)
    nodes = some_nodes(dice)
    options: dict[str, Any] = {"gpu": (GpuAsk("ANY"),), "max_containers": 3, "scaledown_window": 3.0}
    versions = tuple(
        version(f"f{n}", vram=gib * GIB, tenant=("acme", "rival")[n % 2], **options)
        for n, gib in enumerate((5, 9, 14, 38, 70))
    )
    fleet = fleet_of(*nodes, versions=versions, bounds=REPACKS)
    for _ in range(120):
        happens(fleet, dice)
        fleet.step({f"ver_f{dice.randrange(5)}": dice.randint(1, 4) for _ in range(dice.randint(0, 3))})

    fleet.silent.clear()
    for node in nodes:
        node.draining = node.busy = False
        for gpu in node.gpus:
            gpu.broken, gpu.refused = False, ""
    served = set()
    for _ in range(200):
        fleet.step({"ver_f0": 1, "ver_f1": 1})
        served |= {name for name in ("ver_f0", "ver_f1") if fleet.running(name)}
    assert served == {"ver_f0", "ver_f1"}
    assert len(fleet.world.executions) <= 1


@pytest.mark.parametrize("tenant", ["acme", "rival"])
def test_what_is_parked_is_left_alone_as_long_as_there_is_another_place(tenant: str) -> None:
    """Then it ends before its GPU is cut, as a part of the plan: the agent never has to refuse the cut."""
    node = FakeNode(name="n1", gpus=[h100("GPU-1", mig=True)])
    first, others = small("first", gib=38, max_containers=1), small("others", gib=8, max_containers=7, tenant=tenant)
    fleet = fleet_of(node, versions=(first, others))
    for n in range(10):
        fleet.step({"ver_first": 1} if n < 5 else None)
    (there,) = fleet.running("ver_first")
    node.park(there)
    sizes = []
    for wanted in range(1, 8):
        for _ in range(6):
            fleet.step({"ver_others": wanted})
        sizes.append((len(fleet.running("ver_others")), list(node.parked)))

    assert sizes[:3] == [(1, [there]), (2, [there]), (3, [there])]
    assert sizes[-1] == (7, [])
    assert any("which is parked, ends: its GPU is needed for" in note for note in fleet.notes)
    assert not any("failed" in note for note in fleet.notes)


def test_a_leader_forgets_the_plans_of_the_one_before() -> None:
    """Copies that were started are surplus then, and go like any other."""
    node = FakeNode(name="n1", gpus=[h100("GPU-1", mig=True)])
    fleet = fleet_of(node, versions=(small(max_containers=1),))
    fleet.step({"ver_small": 1})
    assert len(fleet.world.executions) == 1
    fleet.world.executions.clear()

    for _ in range(5):
        fleet.step({"ver_small": 1})

    assert [type(command) for command in node.log if not isinstance(command, SwitchMig)] == [Cut, Bind]


@pytest.mark.parametrize(("t4", "chosen"), [(10**9, "T4"), (3 * 10**9, "A10")])
def test_the_cheaper_gpu_is_the_one_in_the_operators_book(t4: int, chosen: str) -> None:
    """Where the order of the list does not count."""
    nodes = [FakeNode(name=kind, gpus=[FakeGpu(id=f"GPU-{kind}", kind=kind)]) for kind in ("A10", "T4")]
    either = version("f", gpu=(GpuAsk("T4"), GpuAsk("A10")), placing=Placing(by_cost=True))
    fleet = FakeFleet(
        nodes=nodes,
        versions={either.id: either},
        world=World(prices=Prices(book=PriceBook(rates={"t4": t4, "a10": 2 * 10**9}))),
    )

    fleet.step({either.id: 1})

    assert fleet.place_of("ctr_1").startswith(f"{chosen}/")
