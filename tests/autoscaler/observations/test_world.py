"""What the controller has seen, and what it forgets."""

from __future__ import annotations

from itertools import count

import msgspec
import pytest

from pilotlight_autoscaler.command_sender import subject_of_command
from pilotlight_autoscaler.observations.call_rate import CallRate
from pilotlight_autoscaler.observations.pending_commands import PendingBind
from pilotlight_autoscaler.observations.world import DEMAND_KEPT_S, DEMAND_STALE_S, FOLLOW_EVERY_S, World
from pilotlight_autoscaler.passes.decide import Pass
from pilotlight_autoscaler.passes.decision import Decision
from pilotlight_autoscaler.passes.pass_input import PassInput
from pilotlight_autoscaler.plans.plan_execution import AVOID_S
from pilotlight_core.model.api.curve_api import CurveSource
from pilotlight_core.model.messages.node_messages import GIVING_WAY, Bind, ContainerState, EndedContainer
from pilotlight_core.model.messages.ran import BatchesRan, Ran
from pilotlight_core.model.spec import VersionRecord
from pilotlight_placement.fragmentation.histogram import AskShape
from tests.autoscaler.builders import demand, record, report
from tests.builders.nodes import bind, binding, container, gpu_device, gpu_node


def decide(world: World, *versions: VersionRecord, at: float = 1.0, only: str | None = None) -> Decision:
    ids = count(1)
    known = {version.id: version for version in versions}
    return Pass(
        world, PassInput(versions=known, deployed=known, epoch=7, new_id=lambda _: f"new{next(ids)}", at=at)
    ).run(None if only is None else {only})


def test_a_reports_order_is_kept_and_a_new_incarnation_replaces_the_old() -> None:
    """An older report of the same agent is dropped; a restarted agent starts with its first report."""
    world = World()
    world.on_report(report(container(), seq=5), 1.0)
    world.on_report(report(seq=4), 1.1)

    assert len(list(world.containers(1.2))) == 1
    world.on_report(report(seq=1, instance="i2"), 1.3)
    assert list(world.containers(1.4)) == []


def test_a_lost_bind_is_sent_again_with_the_same_id() -> None:
    """Agents know container ids, so a repetition is harmless; after three tries it is dropped."""
    world = World()
    world.pending["new1"] = PendingBind(bind=bind("new1"), node="n1", at=1.0)

    assert world.lost_binds(2.0) == []
    assert [lost.bind.container for lost in world.lost_binds(3.5)] == ["new1"]
    assert world.lost_binds(3.6) == []
    world.forget(20.0)
    assert world.pending == {}


def test_a_bind_for_which_something_gives_way_is_sent_again_ever_more_rarely() -> None:
    """It counts as under way meanwhile, and keeps its id; in the end it is decided on anew."""
    world = World()
    sent, at = bind("new1"), 1.0
    world.pending["new1"] = PendingBind(bind=sent, node="n1", at=at)
    sent_at = []
    while at < 40.0:
        at += 0.02
        world.on_refused(sent, GIVING_WAY, at)
        sent_at += [at for _ in world.lost_binds(at)]
        world.forget(at)

    assert 5 <= sum(one <= 3.0 for one in sent_at) <= 6
    assert len(sent_at) == 11
    assert world.pending == {}
    assert not world.backoff.is_failing(sent.version)


def test_a_gpu_on_which_nothing_gives_way_is_not_chosen_again_at_once() -> None:
    """Others are tried first, until a while later."""
    world = World()
    sent = msgspec.structs.replace(bind("new1"), slice="GPU-1")
    world.pending["new1"] = PendingBind(bind=sent, node="n1", at=1.0)
    world.on_refused(sent, GIVING_WAY, 1.1)
    world.forget(2.0)
    assert world.executions.closed() == set()
    world.forget(10.0)
    assert world.executions.closed() == {("n1", "GPU-1")}
    world.executions.advance(world, 10.0 + AVOID_S + 0.1)
    assert world.executions.closed() == set()


@pytest.mark.parametrize(("reason", "least", "most"), [(GIVING_WAY, 4, 6), ("slice_taken", 50, 200)])
def test_few_commands_are_sent_while_something_gives_way(reason: str, least: int, most: int) -> None:
    """Two seconds of passes: one container is asked for. A slice that is merely taken is decided on anew each time."""
    world, sent, at = World(), [], 1.0
    while at < 3.0:
        at += 0.02
        world.on_report(report(seq=int(at * 1e3), slots=1), at)
        world.on_demand(demand(queued=1), at)
        binds = [one.command for one in decide(world, record(), at=at).commands if isinstance(one.command, Bind)]
        for each in binds:
            world.pending[each.container] = PendingBind(bind=each, node="n1", at=at)
        sent += [*binds, *(lost.bind for lost in world.lost_binds(at))]
        for each in binds or [pending.bind for pending in world.pending.values()]:
            world.on_refused(each, reason, at)
        world.forget(at)

    assert least <= len(sent) <= most


def test_a_version_whose_check_fails_waits_as_one_that_does_not_start() -> None:
    """Each container becomes ready before it fails, and is told of several times."""
    world, delays = World(), []
    for number in range(1, 5):
        name, at = f"c{number}", number * 100.0
        world.on_report(report(container(name), seq=3 * number), at)
        drains = container(name, state=ContainerState.DRAINING, unfit=True)
        world.on_report(report(drains, seq=3 * number + 1), at)
        ended = EndedContainer(id=name, version="ver_1", tenant="acme", was_ready=True, unfit=True)
        world.on_report(report(seq=3 * number + 2, ended=(ended,)), at + 0.1)
        delays.append(next(wait for wait in count() if not world.backoff.refused(["ver_1"], at + wait / 2)) / 2)

    assert delays == [0.5, 1.0, 2.0, 4.0]


def test_containers_of_a_silent_node_are_forgotten() -> None:
    """After six seconds without a report the node has no containers."""
    world = World()
    world.on_report(report(container()), 1.0)
    world.forget(8.0)

    assert list(world.containers(8.0)) == []


def test_what_ran_is_learnt_by_the_slice_of_its_container() -> None:
    """Of a node that is known, and of the same incarnation of its agent."""
    world = World()
    world.on_report(report(container("c1"), slots=2), 1.0)
    decide(world, record())
    done = BatchesRan(container="c1", version="ver_1", slice="cpu-0", batch=1, count=50, ms=(10.0,))
    elsewhere = msgspec.structs.replace(done, slice="cpu-9")

    world.on_ran(Ran(node="n1", instance="other", batches=(done,)), 1.0)
    world.on_ran(Ran(node="n2", instance="i1", batches=(done,)), 1.0)
    world.on_ran(Ran(node="n1", instance="i1", batches=(elsewhere,)), 1.0)
    assert world.learner.due(2.0, 0.0) == {}
    world.on_ran(Ran(node="n1", instance="i1", batches=(done,)), 1.0)

    (curve,) = world.learner.due(2.0, 0.0)["ver_1"]
    assert (curve.gpu, curve.slice, curve.source) == ("CPU", "slot", CurveSource.LEARNT)
    assert curve.points[0].throughput == 100.0


def test_a_node_that_takes_no_such_container_is_not_asked_again_and_again() -> None:
    """Such as one whose sandbox allows one tenant only. A refusal that the next report resolves is decided again at
    once.
    """
    for reason, soon in (("other_tenant", []), ("slice_taken", ["new1"])):
        world = World()
        world.on_report(report(), 1.0)
        world.on_demand(demand(queued=1), 1.0)
        (sent,) = decide(world, record()).commands
        assert isinstance(sent.command, Bind)

        world.on_refused(sent.command, reason, 1.0)

        assert [subject_of_command(again.command) for again in decide(world, record(), at=1.1).commands] == soon
        assert [subject_of_command(again.command) for again in decide(world, record(), at=1.6).commands] == ["new1"]


def test_a_steady_rate_is_found_within_seconds() -> None:
    """25 calls each 250 ms are 100 a second."""
    rate = CallRate()
    for number in range(40):
        rate.count(25, number * 0.25)

    assert rate.value == pytest.approx(100.0, rel=0.02)


def test_what_comes_after_a_pause_came_at_its_end() -> None:
    """One call after an idle hour is no rate of one an hour, nor what was before."""
    rate = CallRate(value=500.0, at=0.0)
    rate.count(10, 3600.0)

    assert rate.value == pytest.approx(10 * (1 - 2.718281828**-0.5), rel=0.01)


def test_a_demand_of_a_home_that_is_done_is_forgotten_soon() -> None:
    """One of a silent home is kept for a while: it may have calls."""
    world = World()
    world.on_demand(demand("ver_done"), 1.0)
    world.on_demand(demand("ver_calls", running=1), 1.0)

    world.forget(1.0 + 2 * DEMAND_STALE_S + 0.1)
    assert world.demands.keys() == {"ver_calls"}
    world.forget(1.0 + DEMAND_KEPT_S + 0.1)
    assert not world.demands


def test_only_a_container_that_was_never_ready_is_a_failed_start() -> None:
    """Also if its last report has it draining, or it was gone before its node said that it had ended."""
    for last in (ContainerState.READY, ContainerState.DRAINING, None):
        world = World()
        world.on_report(report(container("c1", slice="cpu-0"), seq=1), 1.0)
        left = () if last is None else (container("c1", slice="cpu-0", state=last),)
        world.on_report(report(*left, seq=2), 2.0)
        ended = EndedContainer(id="c1", version="ver_1", tenant="acme")
        world.on_report(report(seq=3, ended=(ended,)), 3.0)
        assert not world.backoff.is_failing("ver_1"), last

    world = World()
    world.on_report(report(container("c1", slice="cpu-0", state=ContainerState.LOADING), seq=1), 1.0)
    world.on_report(report(seq=2, ended=(ended,)), 2.0)
    assert world.backoff.is_failing("ver_1")
    world.on_report(report(container("c2", slice="cpu-0"), seq=3), 3.0)
    assert not world.backoff.is_failing("ver_1")


def test_an_end_that_is_repeated_is_news_once() -> None:
    """Agents repeat it for some seconds; another one is news."""
    world = World()
    world.on_report(report(container("c1"), container("c2", "ver_2")), 1.0)
    of = {"c1": "ver_1", "c2": "ver_2"}
    ended = [EndedContainer(id=name, version=version, tenant="acme") for name, version in of.items()]
    world.on_report(report(container("c2", "ver_2"), seq=2, ended=(ended[0],)), 2.0)
    assert world.changed == {"ver_1"}
    world.changed.clear()

    world.on_report(report(container("c2", "ver_2"), seq=3, ended=(ended[0],)), 3.0)
    assert world.changed == set()
    world.on_report(report(seq=4, ended=tuple(ended)), 4.0)
    assert world.changed == {"ver_2"}


def test_places_are_scored_by_what_is_asked_for_now_and_then() -> None:
    """All steps of one mix follow each other; the next mix waits."""
    world = World()
    world.on_report(gpu_node(devices=(gpu_device(),)), 0.0)
    groups = world.fleet(0.0).device_groups
    world.asked.observe(AskShape(mib=8 * 1024), 0.0)
    for step in range(4):
        world.follow_demand(0.1 * step)
    assert groups.mix == world.asked.shares()

    world.asked.observe(AskShape(mib=0), 1.0, count=9.0)
    for step in range(4):
        world.follow_demand(1.0 + 0.1 * step)
    assert groups.mix != world.asked.shares()
    for step in range(4):
        world.follow_demand(1.0 + FOLLOW_EVERY_S + 0.1 * step)
    assert groups.mix == world.asked.shares()


def test_an_agents_last_word_leaves_nothing_of_it() -> None:
    """Not even a container that no report before it had named."""
    world = World()
    world.on_report(report(), 0.0)
    world.on_report(report(container("c1"), seq=2, stopped=True), 1.0)
    assert (world.nodes, world.index.versions()) == ({}, {})

    fresh = World()
    fresh.on_report(report(container("c1"), stopped=True), 1.0)
    assert fresh.index.versions() == {}


def test_what_was_refused_for_containers_that_are_not_there_is_looked_at_again() -> None:
    """When all nodes have had the time to report: a limit of its tenant may be far away."""
    world = World()
    world.note_unheard([binding("c1")])
    world.refusals.note_limit("ver_1", "acme", 0.0)
    assert world.refusals.due(0.5, room=False) == []

    world.note_unheard(())

    assert world.refusals.due(0.6, room=False) == ["ver_1"]


def test_a_start_that_a_drain_has_ended_is_no_failure() -> None:
    """Its node is taken away: the version starts elsewhere at once."""
    world = World()
    world.on_report(report(container("c1", state=ContainerState.LOADING)), 1.0)
    ended = EndedContainer(id="c1", version="ver_1", tenant="acme")
    world.on_report(report(seq=2, ended=(ended,), draining=True), 2.0)
    assert not world.backoff.is_failing("ver_1")
