"""What the controller believes of nodes."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pilotlight_autoscaler.node_drains import NodeDrains
from pilotlight_autoscaler.node_intake import STOP_AGAIN_S, STRAYS_OF_A_NODE, NodeIntake
from pilotlight_autoscaler.observations.world import World
from pilotlight_autoscaler.passes.decide import Pass
from pilotlight_autoscaler.passes.pass_input import PassInput
from pilotlight_core.host.binding_book import MemoryBindings
from pilotlight_core.model import subjects
from pilotlight_core.model.devices import MigMode
from pilotlight_core.model.messages.node_messages import (
    ContainerReport,
    ContainerState,
    EndedContainer,
    NodeNotice,
    NodeReport,
    NoticeKind,
)
from pilotlight_core.model.messages.node_reports.node_checks import NodeFault
from pilotlight_core.model.messages.node_reports.report_revisions import MovingContainer, ReportRevisions, SteadyReport
from pilotlight_core.model.messages.ran import BatchesRan, Ran
from pilotlight_core.model.messages.wire import decode, encode
from pilotlight_core.model.records.nodes import NodeLabels, NodeRecord, NodeState
from pilotlight_core.model.units import GpuAsk
from pilotlight_placement.fleet.audit import check_integrity
from tests.autoscaler.builders import demand, record, report
from tests.builders.calls import credit
from tests.builders.nodes import binding, container, cpu_slot, gpu_device, node_report

FUNCTION = "acme:hello.greet"
BEAT = subjects.beat("local", "n1")


class Place:
    """An intake at the instant `at`; `c1` is bound on `n1`."""

    def __init__(self) -> None:
        self.at = 0.0
        self.world, self.bindings = World(), MemoryBindings()
        self.bindings.bind(binding("c1"))
        self.intake = NodeIntake(self.world, self.bindings, lambda: self.at)

    def containers(self) -> list[str]:
        return [each.id for _, each in self.world.containers(self.at)]


@pytest.fixture
def place() -> Place:
    return Place()


def test_zones_that_took_spot_nodes_away_are_remembered(place: Place) -> None:
    """By what a node says of itself, and by its silence; a node at risk is seen as draining."""
    for node in ("n1", "n2", "n3"):
        said = node_report(node, zone=f"z-{node}", spot=True)
        place.intake.on_report(subjects.beat("local", node), said)
    at_risk = node_report("n3", 2, zone="z-n3", spot=True, notice=NodeNotice(kind=NoticeKind.REBALANCE))
    place.intake.on_report(subjects.beat("local", "n3"), at_risk)
    assert place.world.nodes["n3"].draining
    taken = NodeNotice(kind=NoticeKind.PREEMPT, deadline=1.0)
    place.intake.on_report(BEAT, node_report("n1", 2, zone="z-n1", spot=True, notice=taken))
    zones = ("z-n1", "z-n2", "z-n3", "z-n4")
    assert place.intake.spot_zones.avoided(zones, 0.0) == {"z-n1"}
    place.world.forget(100.0)
    place.intake.stops(7, 100.0)
    assert place.intake.spot_zones.avoided(zones, 100.0) <= {"z-n2", "z-n3"}


def test_a_report_in_another_nodes_name_is_dropped(place: Place) -> None:
    """It is counted for its sender."""
    assert not place.intake.on_report(subjects.beat("local", "evil"), report(container("c1")))

    assert place.world.nodes == {}
    assert place.intake.faults.counts == {NodeFault.OTHER_NODE: 1}


def test_containers_that_nobody_bound_do_not_count_and_are_stopped(place: Place) -> None:
    """Else a node could make a version seem to have all that it needs. A few at a time, and not each second."""
    forged = [container(f"x{n}", slice=f"cpu-{n}") for n in range(50)]
    assert place.intake.on_report(BEAT, report(container("c1"), *forged))

    assert place.containers() == ["c1"]
    stops = place.intake.stops(7, 10.0)
    assert len(stops) == STRAYS_OF_A_NODE
    assert {(node, stop.epoch) for node, stop in stops} == {("n1", 7)}
    assert place.intake.stops(7, 11.0) == []
    assert len(place.intake.stops(7, 10.0 + STOP_AGAIN_S)) == STRAYS_OF_A_NODE
    place.intake.on_report(BEAT, report(container("c1"), seq=2))
    assert place.intake.stops(7, 100.0) == []


def test_one_whose_binding_has_ended_is_a_stray(place: Place) -> None:
    """It was taken for gone, and is there."""
    place.bindings.end("c1")
    place.intake.on_report(BEAT, report(container("c1")))

    assert place.containers() == []
    assert [stop.container for _, stop in place.intake.stops(7, 0.0)] == ["c1"]


def test_a_credit_of_a_forged_container_delays_no_start(place: Place) -> None:
    """That of a bound one does: the next start would fail too."""
    place.intake.on_credit(
        subjects.credit("local", "evil", "ver_1"),
        credit("c1", function=FUNCTION, node="evil", state=ContainerState.GONE),
    )
    place.intake.on_credit(
        subjects.credit("local", "evil", "ver_1"),
        credit("x", function=FUNCTION, node="evil", state=ContainerState.GONE),
    )
    assert not place.world.backoff.is_failing("ver_1")

    place.intake.on_credit(
        subjects.credit("local", "n1", "ver_1"), credit("c1", function=FUNCTION, state=ContainerState.GONE)
    )
    assert place.world.backoff.is_failing("ver_1")


@pytest.mark.parametrize(
    ("node", "sender", "more"),
    [
        ("n1", "evil", {}), ("evil", "evil", {}), ("n1", "n1", {"container": "x"}), ("n1", "n1", {"version": "ver_2"}),
        ("n1", "n1", {"slice": "cpu-1"}),
    ],
)  # fmt: skip
def test_batches_teach_nothing_of_others_containers(
    place: Place, node: str, sender: str, more: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither of another node's nor of another version."""
    learnt: list[Ran] = []
    monkeypatch.setattr(World, "on_ran", lambda _, ran, __: learnt.append(ran))
    fields: dict[str, Any] = {"container": "c1", "version": "ver_1", "slice": "cpu-0", "batch": 1, "count": 1}
    told = Ran(node=node, instance="i1", batches=(BatchesRan(ms=(1.0,), **fields | more),))
    place.intake.on_ran(subjects.ran("local", sender), told)
    assert learnt == []

    place.intake.on_ran(
        subjects.ran("local", "n1"), Ran(node="n1", instance="i1", batches=(BatchesRan(ms=(1.0,), **fields),))
    )
    assert len(learnt) == 1


@st.composite
def reports(draw: st.DrawFn) -> NodeReport:
    """Hardware within the bounds of its types, and else as it comes: ids twice, impossible cuts, huge memories."""
    ids = st.sampled_from(["cpu-0", "GPU-1", "GPU-2", "", "a+b", "GPU-1:3g@4", "x" * 600])
    slots = st.builds(cpu_slot, st.integers(0, 3), ppm=st.integers(1, 10**8), memory=st.integers(0, 2**60))
    gpus = st.builds(
        gpu_device, ids, kind=st.sampled_from(["H100", "T4", "A100-80GB", "", "cpu"]), gib=st.integers(0, 2**30),
        mig=st.sampled_from(list(MigMode)), shareable=st.booleans(), price=st.sampled_from(["gpu", "h100"]),
    )  # fmt: skip
    return node_report(
        seq=draw(st.integers(1, 9)),
        slices=tuple(draw(st.lists(slots, max_size=4))),
        devices=tuple(draw(st.lists(gpus, max_size=4))),
        containers=tuple(draw(st.lists(st.builds(container, st.just("c1"), slice=ids), max_size=3))),
    )


WANTED = (
    record("ver_1"),
    msgspec.structs.replace(record("ver_2", gpu=(GpuAsk("H100"),), vram=8 * 2**30), function="large"),
    msgspec.structs.replace(record("ver_3", gpu=(GpuAsk("T4"),)), function="small"),
)


@given(st.lists(reports(), max_size=4))
def test_no_report_stops_the_controller(told: list[NodeReport]) -> None:
    """What cannot be placed on is dropped; the fleet stays whole, and all is decided on."""
    place = Place()
    known = {version.id: version for version in WANTED}
    for each in told:
        place.intake.on_report(BEAT, each)
        place.at += 1.0
        for version in known:
            place.world.on_demand(demand(version, queued=1), place.at)
        given = PassInput(versions=known, deployed=known, epoch=1, new_id=lambda one: f"new_{one.id}", at=place.at)
        Pass(place.world, given).run()
        check_integrity(place.world.fleet(place.at))


def test_an_end_is_believed_of_a_nodes_own_container_only(place: Place) -> None:
    """One that had not become ready delays the next start of its version."""
    place.intake.on_report(
        subjects.beat("local", "n2"),
        node_report("n2", ended=(EndedContainer(id="c1", version="ver_1", tenant="acme"),)),
    )
    place.intake.on_report(BEAT, report(ended=(EndedContainer(id="c1", version="ver_2", tenant="acme"),)))
    assert place.intake.faults.counts == {NodeFault.BOUND_ELSEWHERE: 1, NodeFault.OTHER_VERSION: 1}
    place.intake.on_report(BEAT, report(seq=2, ended=(EndedContainer(id="x", version="ver_3", tenant="acme"),)))
    assert not place.world.backoff.is_failing("ver_1")

    place.intake.on_report(BEAT, report(seq=3, ended=(EndedContainer(id="c1", version="ver_1", tenant="acme"),)))

    assert place.world.backoff.is_failing("ver_1")


def test_the_end_of_what_was_ready_delays_nothing(place: Place) -> None:
    """Whether its node says so, or was seen to report it ready."""
    ended = EndedContainer(id="c1", version="ver_1", tenant="acme")
    place.intake.on_report(BEAT, report(ended=(msgspec.structs.replace(ended, was_ready=True),)))
    assert not place.world.backoff.is_failing("ver_1")

    seen = Place()
    seen.intake.on_report(BEAT, report(container("c1")))
    seen.intake.on_report(BEAT, report(seq=2, ended=(ended,)))
    assert not seen.world.backoff.is_failing("ver_1")


def seen_of(each: ContainerReport) -> ContainerReport:
    """Without what controllers do not read."""
    return msgspec.structs.replace(each, calls=0, memory_bytes=0)


class Reading:
    """A place that reads `n1`'s reports as a controller does, or (`whole`) each of them whole."""

    def __init__(self, *, whole: bool) -> None:
        self.place = Place()
        for number in (2, 3):
            self.place.bindings.bind(binding(f"c{number}", f"ver_{number % 2}", slice=f"cpu-{number}", slots=2))
        self._whole = whole
        self.steady = 0
        """Reports of which only what moves was read."""

    def hear(self, data: bytes) -> None:
        if self._whole:
            self.place.intake.on_report(BEAT, decode(data))
        else:
            self.steady += isinstance(self.place.intake.read(BEAT, data), SteadyReport)

    def knows(self) -> tuple[object, ...]:
        """All that passes and plans go by."""
        world, intake = self.place.world, self.place.intake
        index = world.index
        filed = {
            name: [(one.node, seen_of(one.report)) for one in of.values()] for name, of in index.versions().items()
        }
        return (
            filed, dict(index.idle), dict(index.draining), set(index.changed), set(index.changed_tenants),
            set(index.long_idle), dict(world.seen), dict(world.pending), set(world.backoff.refused({"ver_1": 1}, 1e6)),
            {name: (report.seq, report.revision, report.slices) for name, report in world.nodes.items()},
            dict(intake.faults.counts), intake.stops(1, self.place.at),
        )  # fmt: skip


@st.composite
def steps(draw: st.DrawFn) -> list[tuple[NodeReport | None, float, str]]:
    """What an agent reports, and after how long; containers that come, go, and are not bound or not any more."""
    agent, told = ReportRevisions(), list[tuple[NodeReport | None, float, str]]()
    names = st.lists(st.sampled_from(["c1", "c2", "c3", "x"]), max_size=3, unique=True)
    there: list[str] = draw(names)
    states = st.sampled_from([*[ContainerState.READY] * 2, ContainerState.LOADING, ContainerState.DRAINING])
    state = dict.fromkeys(["c1", "c2", "c3", "x"], ContainerState.READY)
    for seq in range(1, draw(st.integers(2, 12))):
        match draw(st.integers(0, 9)):
            case 0:
                there = draw(names)
            case 1:
                state[draw(st.sampled_from(["c1", "c2", "c3"]))] = draw(states)
        some = [
            container(
                name, f"ver_{int(name[1:] or 1) % 2}", slice=f"cpu-{name[1:]}" if name not in ("c1", "x") else "cpu-0",
                slots=1 if name in ("c1", "x") else 2, state=state[name], running=draw(st.integers(0, 2)),
                age_s=float(seq), idle_s=draw(st.sampled_from([0.0, 0.5, 1.5, 2.5])),
            )
            for name in there
        ]  # fmt: skip
        numbered = agent.numbered(report(*some, seq=seq))
        ends = draw(st.sampled_from(["", "", "", "", "", "c1", "c2", "c3"]))
        after = draw(st.sampled_from([1.0, 1.0, 4.0]))
        told.append((draw(st.sampled_from([*[numbered] * 4, None])), after, ends))
    return told


@given(steps())
def test_of_steady_reports_as_much_is_known_as_of_whole_ones(told: list[tuple[NodeReport | None, float, str]]) -> None:
    """Some are lost, and bindings end in between."""
    one, other = Reading(whole=False), Reading(whole=True)
    for report_, after, ends in told:
        for each in (one, other):
            each.place.at += after
            if report_ is not None:
                each.hear(encode(report_))
        assert one.knows() == other.knows()
        for each in (one, other):
            if ends:
                each.place.bindings.end(ends)
            each.place.world.forget(each.place.at)
            each.place.world.fleet(each.place.at)


def test_of_a_steady_report_only_what_moves_is_read(place: Place) -> None:
    """From the second one on, until something else is new; a stray, or an end of a binding, wants all of it."""
    one = Reading(whole=False)
    agent = ReportRevisions()
    for seq in range(1, 4):
        one.hear(encode(agent.numbered(report(container("c1", age_s=float(seq), idle_s=1.0 * seq), seq=seq))))
    assert one.steady == 2
    assert [(each.age_s, each.idle_s) for _, each in one.place.world.containers(0.0)] == [(3.0, 3.0)]
    one.hear(encode(agent.numbered(report(container("c1", running=1), seq=3))))  # a late one
    assert one.steady == 3
    assert [each.running for _, each in one.place.world.containers(0.0)] == [0]

    one.place.bindings.end("c1")
    one.hear(encode(agent.numbered(report(container("c1"), seq=4))))
    one.hear(encode(agent.numbered(report(container("c1"), seq=5))))
    assert one.steady == 3
    assert one.place.intake.faults.counts == {NodeFault.NOT_BOUND: 2}


def test_a_steady_report_of_more_calls_than_slots_is_not_believed() -> None:
    """Nor one in another node's name."""
    one = Reading(whole=False)
    agent = ReportRevisions()
    one.hear(encode(agent.numbered(report(container("c1")))))
    one.hear(encode(agent.numbered(report(container("c1", running=9), seq=2))))
    assert (one.steady, one.place.intake.faults.counts) == (0, {NodeFault.MORE_ROOM: 1})

    agent = ReportRevisions()
    other = Reading(whole=False)
    other.hear(encode(agent.numbered(report(container("c1")))))
    steady = SteadyReport(node="n1", instance="i1", seq=2, revision=1, containers=())
    assert not other.place.intake.on_steady_report(subjects.beat("local", "evil"), steady)
    assert not other.place.intake.on_steady_report(BEAT, steady)


def test_what_a_steady_report_continues_must_be_known_and_believed() -> None:
    """Another number, a binding that was written anew, or a price that was not believed."""
    one, agent = Reading(whole=False), ReportRevisions()
    one.hear(encode(agent.numbered(report(container("c1")))))
    moved = (MovingContainer(id="c1", running=1, age_s=1.0, idle_s=0.0),)
    steady = SteadyReport(node="n1", instance="i1", seq=2, revision=1, containers=moved)
    assert not one.place.intake.on_steady_report(BEAT, msgspec.structs.replace(steady, revision=2))
    assert not one.place.intake.on_steady_report(BEAT, msgspec.structs.replace(steady, instance="i2"))
    one.place.bindings.bind(binding("c1"))
    assert not one.place.intake.on_steady_report(BEAT, steady)
    one.hear(encode(agent.numbered(report(container("c1"), seq=2))))
    assert one.place.intake.on_steady_report(BEAT, msgspec.structs.replace(steady, seq=3))

    other, agent = Reading(whole=False), ReportRevisions()
    for seq in (1, 2, 3):
        other.hear(encode(agent.numbered(node_report(seq=seq, slices=(cpu_slot(price="h100"),)))))
    assert other.place.intake.faults.counts == {NodeFault.OTHER_PRICE: 3}


def test_a_steady_report_of_what_is_ready_ends_the_delay_of_starts() -> None:
    """As each report of a container of the version does."""
    one, agent = Reading(whole=False), ReportRevisions()
    one.hear(encode(agent.numbered(report(container("c1")))))
    one.place.world.backoff.failed("ver_1", "acme", 0.0)
    one.hear(encode(agent.numbered(report(container("c1"), seq=2))))

    assert one.steady == 1
    assert not one.place.world.backoff.is_failing("ver_1")


def test_a_late_report_changes_nothing_of_what_is_believed() -> None:
    """Else a container whose binding has ended could go on to count."""
    one = Reading(whole=False)
    one.place.intake.on_report(BEAT, report(container("c1"), seq=10, revision=5))
    one.place.intake.on_report(BEAT, report(seq=3, revision=4))
    one.place.bindings.end("c1")
    moved = (MovingContainer(id="c1", running=0, age_s=1.0, idle_s=1.0),)

    steady = SteadyReport(node="n1", instance="i1", seq=11, revision=5, containers=moved)
    assert not one.place.intake.on_steady_report(BEAT, steady)


def test_a_container_that_is_reported_twice_is_read_whole() -> None:
    """It is filed as the report has it last."""
    one, agent = Reading(whole=False), ReportRevisions()
    twice = (container("c1", idle_s=100.0), container("c1", running=1))
    for seq in (1, 2):
        one.hear(encode(agent.numbered(report(*twice, seq=seq))))

    assert one.steady == 0
    assert one.place.world.index.idle == {}


def test_a_node_is_seen_by_its_record() -> None:
    """Its labels, and whether it takes anything; from the next report on, though that says nothing new."""
    records: dict[str, NodeRecord] = {}
    world, bindings = World(), MemoryBindings()
    intake, revisions = NodeIntake(world, bindings, lambda: 0.0, record_of=records.get), ReportRevisions()

    def send(seq: int) -> NodeReport:
        intake.read(BEAT, encode(revisions.numbered(report(seq=seq))))
        return world.nodes["n1"]

    own = send(1)
    assert (own.zone, own.draining, len(own.slices)) == ("z", False, 4)
    labels = NodeLabels(region="eu", zone="eu-1", spot=True)
    told = (
        NodeRecord(node="n1", labels=labels),
        NodeRecord(node="n1", state=NodeState.DRAINING),
        NodeRecord(node="n1", state=NodeState.CORDONED),
    )
    for seq, said in enumerate(told, start=2):
        records["n1"] = said
        intake.on_record("node.n1", said)
        seen = send(seq)
        if said.joined:
            assert (seen.region, seen.zone, seen.spot) == ("eu", "eu-1", True)
        assert seen.draining is (said.state is NodeState.DRAINING)
        assert len(seen.slices) == (0 if said.state is NodeState.CORDONED else 4)


def test_what_runs_on_a_drained_node_is_ended(place: Place) -> None:
    """With what nobody has bound."""
    drains = NodeDrains([NodeRecord(node="n1", state=NodeState.DRAINING)])
    intake = NodeIntake(place.world, place.bindings, lambda: 0.0, drains=drains)
    intake.on_report(BEAT, report(container("c1", idle_s=60.0), container("x1", slice="cpu-1")))

    assert {(type(command).__name__, command.container) for _, command in intake.stops(7, 0.0)} == {
        ("Drain", "c1"), ("Stop", "x1"),
    }  # fmt: skip
