"""Starts of containers are counted once each."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import cast

import pytest

from pilotlight_core.model.messages.node_messages import ContainerState
from pilotlight_runtime.containers.container import Container
from pilotlight_runtime.containers.start_counts import StartCounts


@dataclass(kw_only=True)
class Serving:
    is_unfit: bool = False


@dataclass(kw_only=True)
class Life:
    """What is asked of a container."""

    id: str = "c1"
    state: ContainerState = ContainerState.LOADING
    serving: Serving | None = None
    timeline: dict[str, float] = field(default_factory=dict)


def test_a_start_counts_once_however_often_it_is_noted() -> None:
    """With the sum of its steps, in seconds; also if it was over before anybody looked."""
    counts, life = StartCounts(), Life(timeline={"blank": 20.0, "import": 230.0})
    counts.note(cast("Container", life))
    assert sum(counts.ready.counts) == 0
    life.serving, life.state = Serving(), ContainerState.READY
    for state in (ContainerState.READY, ContainerState.DRAINING, ContainerState.GONE):
        life.state = state
        counts.note(cast("Container", life))
    counts.note(cast("Container", Life(id="c2", serving=Serving(), state=ContainerState.GONE)))

    assert sum(counts.ready.counts) == 2
    assert counts.ready.sum == pytest.approx(0.25)
    assert counts.failed == counts.unfit == 0
    assert (counts.steps["import"].sum, sum(counts.steps["check"].counts)) == (0.23, 0)


def test_a_container_that_a_check_has_taken_out_counts_once() -> None:
    """It was ready before, so its start has not failed."""
    counts, life = StartCounts(), Life(serving=Serving(is_unfit=True), state=ContainerState.DRAINING)
    counts.note(cast("Container", life))
    life.state = ContainerState.GONE
    counts.note(cast("Container", life))

    assert (counts.unfit, counts.failed) == (1, 0)


def test_one_that_never_became_ready_has_failed() -> None:
    """Once it is gone."""
    counts, life = StartCounts(), Life()
    counts.note(cast("Container", life))
    life.state = ContainerState.GONE
    counts.note(cast("Container", life))

    assert (counts.failed, sum(counts.ready.counts)) == (1, 0)
