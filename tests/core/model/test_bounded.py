"""No message of a node brings a number or a length that no honest agent has."""

from __future__ import annotations

import math
from typing import Any

import msgspec
import pytest

from pilotlight_core.model.messages.call_messages import Ended, Outcome, Spent, Stages
from pilotlight_core.model.messages.logs import LogBatch, LogLine
from pilotlight_core.model.messages.ran import BatchesRan, Ran
from pilotlight_core.model.messages.wire import decode, encode
from tests.builders.calls import credit
from tests.builders.nodes import container, cpu_slot, gpu_device, node_report


def ended(**more: Any) -> Ended:
    return Ended(call_id="a", grant_number=1, container="c1", outcome=Outcome.OK, **more)


def ran(**more: Any) -> Ran:
    fields: dict[str, Any] = {"container": "c1", "version": "v", "slice": "s", "batch": 1, "count": 1, "ms": (1.0,)}
    return Ran(node="n1", instance="i1", batches=(BatchesRan(**fields | more),))


BEYOND = {
    "an epoch below zero": credit(epoch=-1),
    "an epoch beyond all": credit(epoch=2**63),
    "slots below zero": credit(slots=-1),
    "a start that takes for ever": credit(timeline={"bind": math.inf}),
    "a start that takes no number": credit(timeline={"bind": math.nan}),
    "endless names": credit("c" * 2_000),
    "endless calls": credit("c1", 1, *("a",) * 20_000),
    "time below zero": ended(spent=Spent(ns=-1, ppm=1, price="cpu")),
    "time beyond all": ended(spent=Spent(ns=2**64 - 1, ppm=1, price="cpu")),
    "a part of nothing": ended(spent=Spent(ns=1, ppm=0, price="cpu")),
    "a stage without a number": ended(stages=Stages(execute_ms=math.nan)),
    "a slice below zero": node_report(slices=(cpu_slot(ppm=-1),)),
    "memory below zero": node_report(devices=(gpu_device(gib=-1),)),
    "an age without a number": node_report(containers=(container(age_s=math.nan),)),
    "a batch of nothing": ran(batch=0),
    "a batch that takes no number": ran(ms=(math.nan,)),
    "a line of no time": LogBatch(lines=(LogLine(math.nan, "stdout", "x", "c1"),)),
}


@pytest.mark.parametrize("message", list(BEYOND.values()), ids=list(BEYOND))
def test_what_is_beyond_all_bounds_is_no_message(message: Any) -> None:
    """The decoder refuses it, before anything is computed from it."""
    with pytest.raises(msgspec.ValidationError):
        decode(encode(message))


@pytest.mark.parametrize("message", [credit(), ended(), ran(), node_report(slices=(cpu_slot(),))])
def test_what_agents_send_is_a_message(message: Any) -> None:
    """The bounds are far from it."""
    assert decode(encode(message)) == message
