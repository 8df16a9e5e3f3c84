"""Answers to questions about placement decisions."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from pilotlight_autoscaler.explain_answers import MOST_TOLD, WAITS_S, answer
from pilotlight_autoscaler.observations.pending_commands import PendingBind
from pilotlight_autoscaler.observations.world import World
from pilotlight_autoscaler.passes.decide import Pass
from pilotlight_autoscaler.passes.pass_input import PassInput
from pilotlight_core.model.api.placement_api import DecisionInfo, DecisionStatus
from pilotlight_core.model.messages.controller_questions import ExplainPlacement, PlacementReply
from pilotlight_core.model.messages.demand import ClassLoad
from pilotlight_core.model.messages.node_messages import Bind, ContainerState, NodeReport
from pilotlight_core.model.spec import VersionRecord
from tests.autoscaler.builders import demand, record, report
from tests.builders.nodes import container

EPOCH = 1_000_000_000.0
"""What the wall clock shows at the world's 0: 2001-09-09T01:46:40Z."""
GREET = "acme:hello.greet"


def decide(world: World, *versions: VersionRecord, at: float, name: str = "no") -> list[str]:
    """One pass of the controller; the containers that it starts."""
    records = {each.id: each for each in versions}
    decision = Pass(world, PassInput(versions=records, deployed=records, epoch=1, new_id=lambda _: name, at=at)).run()
    return [sent.command.container for sent in decision.commands if isinstance(sent.command, Bind)]


def world_that_placed() -> World:
    """One container was placed on n1, and has been ready since."""
    world = World()
    world.on_report(report(slots=1), 1.0)
    world.on_demand(demand(queued=1), 1.0)
    assert decide(world, record(), at=1.0, name="ctr_1") == ["ctr_1"]
    world.on_report(report(container("ctr_1"), slots=1, seq=2), 1.2)
    return world


def ask(world: World, *, at: float = 1.5, **asked: Any) -> PlacementReply:
    return answer(world, ExplainPlacement(**asked), at, EPOCH + at)


def data(told: PlacementReply) -> tuple[DecisionInfo, ...]:
    return msgspec.json.decode(told.decisions, type=tuple[DecisionInfo, ...])


def test_a_container_is_explained_with_its_version_and_when_it_was_placed() -> None:
    """In sentences and as data; so is the last decision of all."""
    world = world_that_placed()

    told = ask(world, container="ctr_1", at=13.0)

    assert told.found
    assert told.lines == (
        "ctr_1 runs on a CPU slot on n1: hello.greet@v1, placed 12 s ago.",
        "Of 1 device or slot 1 would do.",
        "It was the only place that would do.",
    )
    (decision,) = data(told)
    assert decision.winner is not None
    assert decision.winner.slice == "cpu-0"
    assert (decision.version, decision.state) == ("hello.greet@v1", DecisionStatus.RUNNING)
    assert decision.decided_at == "2001-09-09T01:46:41.000Z"
    assert ask(world, at=13.0).lines == told.lines


@pytest.mark.parametrize(
    ("after", "state", "head"),
    [
        (report(slots=1, seq=3), DecisionStatus.GONE, "ctr_1 is gone; it was on a CPU slot on n1: "),
        (
            report(container("ctr_1", state=ContainerState.GONE), seq=3),
            DecisionStatus.GONE,
            "ctr_1 is gone; it was on ",
        ),
        (report(container("ctr_1", state=ContainerState.LOADING), seq=3), DecisionStatus.STARTING, "ctr_1 starts on "),
        (
            report(container("ctr_1", state=ContainerState.DRAINING), seq=3),
            DecisionStatus.LEAVING,
            "ctr_1 is leaving a CPU",
        ),
    ],
)
def test_what_has_become_of_a_container_is_told(after: NodeReport, state: DecisionStatus, head: str) -> None:
    """Nobody takes what is gone for what runs."""
    world = world_that_placed()
    world.on_report(after, 2.0)

    told = ask(world, container="ctr_1", at=2.0)

    assert told.lines[0].startswith(head)
    assert data(told)[0].state is state


def test_a_container_that_was_sent_for_starts() -> None:
    """Before any report shows it."""
    world = World()
    world.on_report(report(slots=1), 1.0)
    world.on_demand(demand(queued=1), 1.0)
    decision = Pass(
        world, PassInput(versions={"ver_1": record()}, deployed={"ver_1"}, epoch=1, new_id=lambda _: "ctr_1", at=1.0)
    ).run()
    assert ask(world, container="ctr_1").lines[0].startswith("ctr_1 is gone")
    (sent,) = decision.commands
    assert isinstance(sent.command, Bind)
    world.pending["ctr_1"] = PendingBind(bind=sent.command, node="n1", at=1.0)

    assert ask(world, function=GREET).lines[1].startswith("  ctr_1 starts on a CPU slot on n1: hello.greet@v1, placed")


def test_of_a_function_what_runs_is_told_before_what_ran() -> None:
    """Each with its version and when; as data the latest is last."""
    world = world_that_placed()
    second = msgspec.structs.replace(record("ver_2"), number=2)
    world.on_report(report(slots=1, seq=3), 60.0)
    world.on_demand(demand("ver_2", queued=1), 61.0)
    assert decide(world, second, at=61.0, name="ctr_2") == ["ctr_2"]
    world.on_report(report(container("ctr_2", version="ver_2"), slots=1, seq=4), 61.2)

    told = ask(world, function=GREET, at=181.0)

    assert [line for line in told.lines if not line.startswith("    ")] == [
        "Now:",
        "  ctr_2 runs on a CPU slot on n1: hello.greet@v2, placed 2 min ago.",
        "Before:",
        "  ctr_1 is gone; it was on a CPU slot on n1: hello.greet@v1, placed 3 min ago.",
    ]
    assert [each.container for each in data(told)] == ["ctr_1", "ctr_2"]


def test_a_function_of_which_nothing_runs_says_so() -> None:
    """Its former containers are still described."""
    world = world_that_placed()
    world.on_report(report(slots=1, seq=3), 60.0)

    lines = ask(world, function=GREET, at=60.0).lines

    assert lines[:3] == ("Now:", "  It has no container, and none waits for a place.", "Before:")


def test_why_not_is_answered_on_the_fleet_as_it_was() -> None:
    """Also after it has changed; without a subject by the last decision."""
    world = world_that_placed()

    assert ask(world, container="ctr_1", node="n1").lines == (
        "ctr_1 is on n1 (hello.greet@v1, decided 500 ms ago):", "n1 was chosen: a CPU slot.",
    )  # fmt: skip
    told = ask(world, node="n7", at=13.0)
    assert told.lines[0] == "Why ctr_1 is not on n7 (hello.greet@v1, decided 12 s ago):"
    assert told.lines[1].startswith("There was no node n7 at revision")
    world.on_report(report(slots=1, seq=3), 13.0)
    assert ask(world, node="n7", at=13.0).lines[0].startswith("Why ctr_1 was not on n7")


def test_a_refusal_is_told_as_long_as_it_is_repeated() -> None:
    """Since when it waits; then, when it was. The placement before it is remembered still."""
    world = world_that_placed()
    world.on_report(report(container("ctr_1", running=1), slots=1, seq=3), 1.2)
    for at in (2.0, 3.0, 4.0):
        world.on_demand(demand(queued=9), at)
        decide(world, record(), at=at)

    waiting = ask(world, function=GREET, at=4.5).lines
    refused = "the only device or slot that could hold a CPU slot and 2.0 GiB of host memory is in use"

    assert waiting[1].startswith("  ctr_1 runs on a CPU slot on n1: ")
    assert [line for line in waiting if "has no place" in line] == [
        f"  hello.greet@v1 has no place, for 2 s now: {refused}."
    ]
    assert ask(world, at=4.5).lines[0].startswith("hello.greet@v1 has no place")
    over = ask(world, function=GREET, at=64.0)
    assert over.lines[-2] == f"  hello.greet@v1 had no place 60 s ago, first 62 s ago: {refused}."
    assert [each.state for each in data(over)] == [DecisionStatus.RUNNING, DecisionStatus.OVER]
    assert data(ask(world, at=4.0 + WAITS_S))[0].state is DecisionStatus.WAITING
    assert data(over)[1].since == "2001-09-09T01:46:42.000Z"
    world.on_demand(demand(function=GREET, queued=9), 64.0)
    world.refusals.note(["ver_1"], 4.0, room=False)  # nothing was freed, so it is not sought again
    assert [each.state for each in data(ask(world, function=GREET, at=64.0))][1] is DecisionStatus.WAITING


def test_of_many_containers_the_latest_are_told() -> None:
    """The others are counted."""
    world = World()
    world.on_report(report(slots=MOST_TOLD + 2), 1.0)
    names = [f"ctr_{number}" for number in range(MOST_TOLD + 2)]
    for number, name in enumerate(names):
        assert decide(world, record(min_containers=number + 1), at=1.0 + number, name=name) == [name]
        there = [container(each, slice=f"cpu-{n}", running=1) for n, each in enumerate(names[: number + 1])]
        world.on_report(report(*there, slots=MOST_TOLD + 2, seq=2 + number), 1.0 + number)

    told = ask(world, function=GREET, at=len(names) + 1.0)

    assert [each.container for each in data(told)] == names[2:]
    assert told.lines[-1] == "  … and 2 more of its containers."


def test_what_is_not_remembered_is_said_to_be_so() -> None:
    """A new leader did not decide on a running container, but knows its version."""
    world = World()
    assert not ask(world).found
    world.on_report(report(container("ctr_9")), 1.0)

    assert "another controller decided it" in ask(world, container="ctr_9").lines[0]
    assert "Nothing is remembered of a container ctr_0" in ask(world, container="ctr_0").lines[0]
    assert "Nothing is remembered of acme:x.y" in ask(world, function="acme:x.y").lines[0]
    told = answer(world, ExplainPlacement(function=GREET), 1.5, EPOCH, lambda _: "hello.greet@v1")
    assert told.lines == (
        "Now:",
        "  ctr_9 is on n1, on cpu-0: hello.greet@v1. Why is not remembered: another controller decided it.",
    )
    assert not ask(world, function=GREET, node="n1").found


def test_a_function_is_told_with_what_waits_and_runs() -> None:
    """As the homes of its versions told it last; nothing of what an older home tells, or of idle versions."""
    world, classes = World(), {"batch": ClassLoad(queued=2), "interactive": ClassLoad(queued=1, running=1)}
    busy = demand(
        "ver_1", queued=3, running=1, oldest_run_ms=41_000.0, backlog=120, held_jobs=7, classes=classes, function=GREET
    )
    world.on_demand(busy, 1.0)
    world.on_demand(demand("ver_2", running=2, function=GREET), 1.0)
    world.on_demand(demand("ver_3", queued=2), 1.0)
    world.on_demand(demand("ver_4", function=GREET), 1.0)

    assert ask(world, function=GREET).lines == (
        "Now:",
        (
            "  ver_1: 3 calls wait (2 batch, 1 interactive), the first for 10 ms; 1 call runs, the first for 41 s; "
            "jobs of the function that wait behind them: at least 120; "
            "jobs that limits of their tenant hold back: at least 7."
        ),
        "  ver_2: 2 calls run.",
        "  It has no container, and none waits for a place.",
    )
