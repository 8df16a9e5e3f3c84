"""From node reports to the fleet."""

from __future__ import annotations

from typing import Any

import msgspec

from pilotlight_core.model.devices import DeviceReport, InstanceReport, MigMode, MigPlacement, ProfileReport
from pilotlight_core.model.messages.node_messages import (
    ContainerState,
    HostShare,
    NodeReport,
    SandboxCeilings,
    SliceReport,
)
from pilotlight_core.model.placing import Purchase
from pilotlight_placement.asks.ask import GIB, Ask
from pilotlight_placement.fleet.audit import check_integrity
from pilotlight_placement.fleet.reports import (
    FleetMirror,
    IncomingContainer,
    ReportOverlay,
    abilities_of,
    is_same_node,
    name_of,
    node_of,
    slice_named,
)
from pilotlight_placement.hardware.node import BlankPlace, NodeAbilities, ParkedPlace, PlacedContainer
from pilotlight_placement.search.decision_record import NoFit, Placement
from pilotlight_placement.search.filters import refusal_at
from pilotlight_placement.search.place import place
from tests.builders.nodes import container, cpu_slot, gpu_device, gpu_slice, node_report
from tests.builders.specs import function_spec
from tests.placement.makers import ask


def cpu(number: int, holder: str = "") -> SliceReport:
    return cpu_slot(number, container=holder, memory=GIB)


def gpu(name: str, kind: str, gib: int, **more: Any) -> SliceReport:
    return gpu_slice(name, **{"gpu_type": kind, "memory": gib * GIB} | more)


def report(node: str, *slices: SliceReport, **more: Any) -> NodeReport:
    return node_report(node, **{"slices": slices} | more)


def found(mirror: FleetMirror, wanted: Ask) -> str:
    placed = place(mirror.fleet, wanted)
    return f"{placed.slice.node}/{placed.slice.id}" if isinstance(placed, Placement) else placed.reason


def test_a_type_asked_for_without_its_size_takes_any_size() -> None:
    """ "A100" is either kind; a size means only itself, and no other product has the same prefix."""
    mirror = FleetMirror()
    mirror.sync([report("a", gpu("x", "A10", 24), gpu("s", "A100-40GB", 40), gpu("l", "A100-80GB", 80))])

    assert found(mirror, ask("A100")) == "a/s"
    assert found(mirror, ask("A100", gib=60)) == "a/l"
    assert found(mirror, ask("A100-80GB")) == "a/l"
    assert found(mirror, ask("A10")) == "a/x"
    assert "the fleet has 1 A10, 1 A100-40GB, 1 A100-80GB" in found(mirror, ask("A1"))


def test_the_preferred_gpu_wins_and_several_of_a_reported_kind_never_fit() -> None:
    """A fallback list is an order of preference; agents give each slice as it is."""
    mirror = FleetMirror()
    mirror.sync([report("a", gpu("t", "T4", 16)), report("b", gpu("h", "H100", 80), gpu("i", "H100", 80))])

    assert found(mirror, ask("H100", "T4")) in ("b/h", "b/i")
    assert found(mirror, ask("H100:2")) == (
        "it asks for H100:2, and the fleet has 2 H100-80GBs, 1 T4: 2 that are given one at a time"
    )


def test_containers_and_what_is_on_its_way_take_their_slices() -> None:
    """The report precedes a bind on the same slice; a container that is gone from both is released."""
    mirror = FleetMirror()
    running = container("c1", "ver_1", slice="cpu-0")
    first = report("a", cpu(0, "c1"), cpu(1), containers=(running,))
    coming = (
        IncomingContainer(container="c2", node="a", slice="cpu-1"),
        IncomingContainer(container="c3", node="a", slice="cpu-0"),
    )

    fleet = mirror.sync([first], ReportOverlay(coming=coming))

    assert set(fleet.held) == {"c1", "c2"}
    assert fleet.held["c1"].function == "acme:hello.greet"
    assert fleet.zones("acme:hello.greet") == {("local", "z"): 1}
    assert "in use" in found(mirror, ask())
    check_integrity(fleet)
    assert set(mirror.sync([report("a", cpu(0), cpu(1))]).held) == set()
    assert found(mirror, ask()).startswith("a/cpu-")


def test_only_what_changed_is_changed() -> None:
    """The same reports leave the fleet's revision alone, and what a pass had held for itself is taken back."""
    mirror = FleetMirror()
    reports = [report("a", cpu(0), cpu(1)), report("b", cpu(0))]
    fleet = mirror.sync(reports)
    revision = fleet.revision
    mirror.sync(reports)
    assert fleet.revision == revision

    placed = place(fleet, ask())
    assert isinstance(placed, Placement)
    fleet.hold(PlacedContainer(container="mine", slice=placed.slice))
    mirror.sync(reports)
    assert fleet.held == {}

    mirror.sync(reports[:1])
    assert set(fleet.places) == {"a"}


def test_two_nodes_that_speak_of_one_container_both_have_their_slice_taken() -> None:
    """One of them is behind."""
    mirror = FleetMirror()

    fleet = mirror.sync([report("a", cpu(0, "c1")), report("b", cpu(0, "c1"))])

    assert len(fleet.held) == 2
    assert "in use" in found(mirror, ask())


def test_a_container_on_several_gpus_is_one() -> None:
    """Its node lists each of them with it; it holds them as the one slice that it was bound to."""
    gpus = [gpu(f"GPU-{n}", "H100", 80, container="c1") for n in (1, 2)]
    told = report("a", *gpus, containers=(container("c1", slice="GPU-1+GPU-2"),), devices=(device(), device("GPU-2")))

    fleet = FleetMirror().sync([told])

    assert {name: held.slice.ids for name, held in fleet.held.items()} == {"c1": ("GPU-1", "GPU-2")}


def test_draining_nodes_and_small_hosts_take_nothing() -> None:
    """A draining node does not even count as possible; the host is what its agent reports of it."""
    mirror = FleetMirror()
    mirror.sync([report("a", cpu(0), draining=True)])
    refused = place(mirror.fleet, ask())
    assert isinstance(refused, NoFit)
    assert (refused.reason, refused.never) == ("it asks for a CPU slot, and the fleet has nothing", True)

    mirror.sync([report("a", cpu(0), cpu(1), host=HostShare(cpu_millis=2000, memory=2 * GIB))])
    assert found(mirror, ask(memory=2 * GIB, cpu=2000)).startswith("a/")
    refused = place(mirror.fleet, ask(memory=3 * GIB))
    assert isinstance(refused, NoFit)
    assert refused.never
    assert "3.0 GiB of host memory" in refused.reason


def test_what_containers_were_promised_is_taken_whether_they_are_reported_or_on_their_way() -> None:
    """Also more than there is, where a report shows it: the agent is the truth."""
    mirror, share = FleetMirror(), HostShare(cpu_millis=500, memory=3 * GIB)
    host = HostShare(cpu_millis=2000, memory=8 * GIB)
    there = container("c1", slice="cpu-0", host=share)
    slots = (cpu(0, "c1"), cpu(1), cpu(2))
    coming = IncomingContainer(container="c2", node="a", slice="cpu-1", host=share)

    fleet = mirror.sync([report("a", *slots, containers=(there,), host=host)], ReportOverlay(coming=(coming,)))

    check_integrity(fleet)
    assert fleet.places["a"].free_host == HostShare(cpu_millis=1000, memory=2 * GIB)
    assert isinstance(place(fleet, ask(memory=3 * GIB)), NoFit)
    fleet = mirror.sync([report("a", *slots, seq=2, containers=(there,), host=HostShare(memory=GIB, cpu_millis=100))])
    check_integrity(fleet)
    assert fleet.places["a"].free_host == HostShare(cpu_millis=-400, memory=-2 * GIB)
    assert isinstance(place(fleet, ask(memory=1)), NoFit)


def test_slices_with_one_name_count_once() -> None:
    """A report that contradicts itself must not stop the controller."""
    mirror = FleetMirror()

    fleet = mirror.sync([report("a", cpu(0), cpu(0))])

    assert fleet.size == 1


def device(name: str = "GPU-1", kind: str = "H100", gib: int = 80, *instances: str, **more: Any) -> DeviceReport:
    """`device("GPU-1", "H100", 80, "3g@4", "1g@0:ctr_a")`: a GPU with instances and their containers."""
    parts = []
    for each in instances:
        where, _, holder = each.partition(":")
        profile, _, start = where.partition("@")
        place_ = MigPlacement(start=int(start), profile=profile)
        parts.append(
            InstanceReport(
                slice=f"{name}:{where}", place=place_, name=profile, uuid="MIG-1", memory=GIB, ppm=1, container=holder
            )
        )
    mode = MigMode.ON if instances else MigMode.OFF
    return gpu_device(name, kind, gib, **{"instances": tuple(parts), "mig": mode} | more)


def test_a_gpu_comes_with_its_instances_and_who_runs_on_them() -> None:
    """An idle instance goes before one that must be made; one in use is taken."""
    mirror = FleetMirror()
    on_it = container("c1", "ver_1", slice="GPU-1:3g@4")
    fleet = mirror.sync([report("a", devices=(device("GPU-1", "H100", 80, "3g@4:c1", "1g@3"),), containers=(on_it,))])

    found_ = place(fleet, ask("H100", gib=8))

    assert isinstance(found_, Placement)
    assert (found_.slice.id, found_.record.value is not None and found_.record.value.cut) == ("GPU-1:1g@3", 0)
    assert fleet.held["c1"].slice.profile == "3g"
    assert fleet.held["c1"].function == "acme:hello.greet"
    check_integrity(fleet)


def test_names_of_slices_go_both_ways() -> None:
    """The name of a chosen slice, as sent to an agent, parses to the same slice."""
    mirror = FleetMirror()
    gpus = (device("GPU-1"), device("GPU-2"), device("GPU-3", shareable=True), device("GPU-4", "H100", 80, "7g@0"))
    fleet = mirror.sync([report("a", cpu(0), devices=gpus)])

    for wanted in (ask(), ask("H100:2"), ask("H100", gib=8), ask("H100"), ask("H100", gib=30)):
        found_ = place(fleet, wanted)
        assert isinstance(found_, Placement)
        name = name_of(found_.slice, "ctr_a_1")
        again = slice_named(fleet.places["a"].node, name)
        assert again == found_.slice
    assert slice_named(fleet.places["a"].node, "GPU-9") is None
    assert slice_named(fleet.places["a"].node, "a b") is None
    assert slice_named(fleet.places["a"].node, "GPU-4:5g@0") is None


def test_what_is_ill_or_changing_takes_nothing_new_and_keeps_what_it_has() -> None:
    """Its containers are still counted where they are."""
    mirror = FleetMirror()
    ill = device("GPU-1", "H100", 80, "3g@4:c1", withdrawn="Xid 79")
    fleet = mirror.sync([report("a", devices=(ill, device("GPU-2", changing=True)))])

    assert set(fleet.held) == {"c1"}
    assert fleet.size == 1
    refused = place(fleet, ask("H100"))
    assert isinstance(refused, NoFit)
    assert not refused.never, "what is being changed will be back"
    refusals = {unit.id: refusal_at(fleet, unit, ask("H100")) for unit in fleet.units.values()}
    assert {name: why[1] for name, why in refusals.items() if why} == {
        "GPU-1": "GPU-1 takes nothing new: Xid 79", "GPU-2": "nothing that would do is free: it is being changed",
    }  # fmt: skip


def test_a_driver_that_contradicts_the_catalogue_is_believed() -> None:
    """Its memory counts; where its placements are others, the GPU is given whole or, being cut, not at all."""
    mirror = FleetMirror()
    other = (ProfileReport(name="3g.40gb", memory=40448, sms=60, size=3, starts=(0, 4)),)
    more = (ProfileReport(name="3g.40gb", memory=44000, sms=60, size=4, starts=(0, 4)),)
    gpus = (
        device("GPU-1", profiles=other),
        device("GPU-2", "H100", 80, "3g@4", profiles=other),
        device("GPU-3", "H100", 80, "3g@4", profiles=more),
    )
    fleet = mirror.sync([report("a", devices=gpus)])
    by_id = fleet.places["a"].by_id

    assert by_id["GPU-1"].group.device is not None
    assert by_id["GPU-1"].group.device.family is None
    assert by_id["GPU-2"].gpu is not None
    assert "cut otherwise than is known" in by_id["GPU-2"].gpu.withdrawn
    assert found(mirror, ask("H100", gib=42)) == "a/GPU-3:3g@4"


def test_a_gpu_that_is_about_to_change_takes_nothing_new() -> None:
    """The overlay closes it before the agent reports it; loaded weights count as resident."""
    mirror = FleetMirror()
    gpus = (device("GPU-1"), device("GPU-2"))
    beside = ReportOverlay(closed={("a", "GPU-1")}, resident={"a": frozenset({"acme:llama"})})

    fleet = mirror.sync([report("a", devices=gpus)], beside)

    assert found(mirror, ask("H100")) == "a/GPU-2"
    assert fleet.resident.keys() == {"acme:llama"}
    mirror.sync([report("a", devices=gpus)])
    assert fleet.resident == {}


def test_a_container_keeps_the_instant_at_which_it_came() -> None:
    """Its age in later reports does not move it, so nothing changes while it runs."""
    mirror = FleetMirror()
    revisions = set()
    for second in range(3):
        aged = msgspec.structs.replace(container("c1", "ver_1", slice="cpu-0"), age_s=5.0 + second * 1.01)
        fleet = mirror.sync([report("a", cpu(0, "c1"), containers=(aged,))], at=100.0 + second)
        revisions.add(fleet.revision)
        assert fleet.held["c1"].since == 95.0
    assert len(revisions) == 1


def test_containers_that_two_reports_put_on_one_part_stop_nobody() -> None:
    """The first counts."""
    mirror = FleetMirror()
    both = (container("c1", slice="GPU-1:3g@4"), container("c2", slice="GPU-1:1g@5"))

    fleet = mirror.sync([report("a", devices=(device("GPU-1", "H100", 80, "3g@4:c1"),), containers=both)])

    assert set(fleet.held) == {"c1"}
    check_integrity(fleet)


def test_spot_nodes_are_told_apart() -> None:
    """As they say of themselves."""
    mirror = FleetMirror()
    mirror.sync([report("a", cpu(0), spot=True), report("b", cpu(0))])

    assert found(mirror, ask(purchase=Purchase.ON_DEMAND)) == "b/cpu-0"
    assert found(mirror, ask(purchase=Purchase.SPOT)) == "a/cpu-0"


def test_what_an_agent_can_do_is_as_it_says() -> None:
    """One that says nothing is older: it has one base environment, no feature and no limits to name."""
    most = SandboxCeilings(shm=GIB, scratch=2 * GIB, pids=512)
    new = report("new", bases=("torch", "default"), features=("b", "a"), ceilings=most)

    assert abilities_of(new) == NodeAbilities(
        bases=("default", "torch"), features=("a", "b"), shm=GIB, scratch=2 * GIB, pids=512
    )
    assert abilities_of(report("old")) == NodeAbilities(bases=("default",), shm=0, scratch=0, pids=0)
    mirror = FleetMirror()
    mirror.sync([report("old", cpu(0))])
    assert found(mirror, ask()) == "old/cpu-0"
    assert "there is no base environment torch; there is default" in found(mirror, ask(base="torch"))
    mirror.sync([report("old", cpu(0)), report("new", cpu(1), bases=("default", "torch"))])
    assert found(mirror, ask(base="torch")) == "new/cpu-1"


def test_a_node_that_has_built_an_environment_goes_first() -> None:
    """As one that has weights; when it has it no more, it goes like others."""
    mirror = FleetMirror()
    small, large = report("small", cpu(0)), report("large", cpu(0), cpu(1))
    wanted = Ask.of(function_spec(), tenant="acme", environment="env_1")
    mirror.sync([small, large])
    assert found(mirror, wanted) == "small/cpu-0"

    built = msgspec.structs.replace(large, environments=("env_1",))
    mirror.sync([small, built])
    assert found(mirror, wanted) == "large/cpu-0"
    beside = ReportOverlay(resident={"large": frozenset({"w"})})
    mirror.update({"large": built}, beside, 0.0)
    assert mirror.fleet.places["large"].node.resident == {"env_1", "w"}
    mirror.sync([small, large])
    assert found(mirror, wanted) == "small/cpu-0"


def test_what_is_warm_is_as_the_report_says() -> None:
    """Blanks on slices and on CPU slots, and what is parked off a GPU; the fleet's index follows."""
    name = "GPU-1:3g@4"
    on_gpu = container("p", slice="", state=ContainerState.PARKED, parks=name)
    on_cpu = container("q", slice="", state=ContainerState.PARKED, parks="any")
    one = report(
        "a", cpu(0), gpu("GPU-2", "T4", 16, blank="torch"), containers=(on_cpu, on_gpu), blanks={"default": 2, "x": 0},
        devices=(gpu_device(mig=MigMode.ON), gpu_device("GPU-2", "T4", 16)),
    )  # fmt: skip
    node = node_of(one)
    assert node.blanks == {BlankPlace("", "default"), BlankPlace("GPU-2", "torch")}
    assert node.parked == (ParkedPlace("p", "acme", "GPU-1", "3g", 4),)

    mirror = FleetMirror()
    mirror.sync([one])
    check_integrity(mirror.fleet)
    assert mirror.fleet.places["a"].by_id["GPU-1"].parked == node.parked
    gone = msgspec.structs.replace(one, containers=(on_cpu,), blanks={})
    assert not is_same_node(one, gone)
    assert is_same_node(one, msgspec.structs.replace(one, blanks={"default": 1}))
    assert not is_same_node(one, msgspec.structs.replace(one, blanks={"default": 2, "x": 1}))
    mirror.sync([gone])
    check_integrity(mirror.fleet)
    assert not mirror.fleet.places["a"].by_id["GPU-1"].parked
