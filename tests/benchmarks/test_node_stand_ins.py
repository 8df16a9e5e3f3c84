"""Nodes of the controller's benchmark tell what agents would."""

from __future__ import annotations

import random

from msgspec.structs import replace

from benchmarks.controlled.busy_fleet import FleetSize, make_busy_fleet
from benchmarks.controlled.node_stand_ins import START_S
from benchmarks.controller import stand_ins
from pilotlight_core.model.messages.node_messages import Drain
from pilotlight_core.model.messages.node_reports.report_revisions import ReportRevisions
from pilotlight_runtime.calls.credits import REPEAT_GONE_S
from tests.builders.nodes import bind


def test_their_reports_are_numbered_as_an_agents_are() -> None:
    """Another number whenever more is new than what moves: starts, their ends, drains, and what has ended long ago."""
    rng = random.Random(1)
    fleet = make_busy_fleet(FleetSize(gpus=16, containers=12, busy=3, deployed=10, blocked=2), rng)
    node = max(stand_ins(fleet, rng).values(), key=lambda each: len(each.containers))
    agent, numbers, at = ReportRevisions(), list[int](), 1_000.0

    def tell(seconds: float) -> None:
        nonlocal at
        for _ in range(int(seconds) + 2):
            report = node.report(at)
            numbers.append(report.revision)
            assert agent.numbered(replace(report, revision=0)).revision == report.revision
            at += 1.0

    tell(3.0)
    node.obey(bind("new", slice="cpu-7", function="acme:hello.greet"), at)
    tell(START_S)
    node.obey(Drain(epoch=1, container="new", within_ms=1.0), at)
    tell(REPEAT_GONE_S)

    assert numbers == sorted(numbers)
    assert numbers[-1] == 5  # as it was, a start, its end, a drain, and as it was
