"""The batches of one container: the calls that wait for a batched method, and the batch that the guest has.

The guest has one batch of a method at a time; the next one grows meanwhile.
"""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import lru_cache

import msgspec

from pilotlight_core.model.messages.call_messages import Outcome
from pilotlight_core.model.spec import Batching, FunctionSpec
from pilotlight_core.model.tracing.kept_call import MOST_MATES
from pilotlight_core.model.tracing.trace_context import context_within, is_sampled
from pilotlight_core.model.values import decode_opaque
from pilotlight_runtime.calls.batching import BatchFormer, item_cost
from pilotlight_runtime.calls.slot_table import AcceptedCall
from pilotlight_runtime.guest.frames import MAX_FRAME, BatchResult

SLOW_MS = 1_000.0
"""Of a function that names no level."""
RUNNING_MATES = 1_024
"""Whose traceparents are kept for the rest of their batch."""
BATCH_BYTES = MAX_FRAME * 3 // 4
"""The inputs of one batch together must fit one frame."""


@dataclass(kw_only=True, eq=False)
class DynamicBatch:
    """Calls that the guest is given at once."""

    number: int
    method: str
    items: list[AcceptedCall]
    rest: deque[AcceptedCall] = field(default_factory=deque)
    """Items that run after this one, each alone, since their batch raised as a whole."""
    is_retry: bool = False

    @property
    def can_split(self) -> bool:
        return len(self.items) > 1 and not self.is_retry


@dataclass(kw_only=True, eq=False)
class BatchedMethod:
    batching: Batching
    former: BatchFormer
    waiting: dict[str, AcceptedCall] = field(default_factory=dict)
    running: DynamicBatch | None = None

    def is_due(self, at: float) -> bool:
        due = self.former.due_at(at) if self.running is None and self.waiting else None
        return due is not None and due <= at

    @property
    def oldest_at(self) -> float:
        return next(iter(self.waiting.values())).ready_at


class DynamicBatches:
    def __init__(self, spec: FunctionSpec) -> None:
        self._methods = {
            method.name: BatchedMethod(
                batching=method.batching, former=BatchFormer(method.batching, slo_p95_ms=spec.slo.p95_ms)
            )
            for method in spec.methods
            if method.batching is not None
        }
        self._numbers = itertools.count(1)
        self._level_ms = spec.slo.p95_ms

    def __bool__(self) -> bool:
        return bool(self._methods)

    def is_batched(self, call: AcceptedCall) -> bool:
        return call.run.method in self._methods

    def add(self, call: AcceptedCall, at: float) -> bool:
        """Let a call wait for its batch; False if its method is not batched."""
        method = self._methods.get(call.run.method)
        if method is None:
            return False
        method.waiting[call.call_id] = call
        cost = _cost(method.batching, call.input)
        method.former.add(call.call_id, cost=cost, at=at, deadline_at=min(call.start_deadline_at, call.deadline_at))
        return True

    def remove(self, call: AcceptedCall) -> bool:
        """Remove a call that waits for its batch; False if it does not."""
        method = self._methods.get(call.run.method)
        if method is None or method.waiting.pop(call.call_id, None) is None:
            return False
        return method.former.remove(call.call_id)

    def pop_due(self, at: float, before: float) -> DynamicBatch | None:
        """The due batch that has waited longest, if its first call was ready by `before`."""
        due = [method for method in self._methods.values() if method.is_due(at)]
        method = min(due, key=lambda method: method.oldest_at, default=None)
        if method is None or method.oldest_at > before:
            return None
        items = [method.waiting.pop(call) for call in method.former.pop_due(at)]
        fit = _that_fit(items)
        for call in items[fit:]:
            self.add(call, at)
        method.running = self._batch(items[:fit])
        return method.running

    def begin_single(self, call: AcceptedCall, rest: deque[AcceptedCall]) -> DynamicBatch:
        """Run one item of a batch that raised as a whole; `rest` follow."""
        batch = self._batch([call])
        batch.rest, batch.is_retry = rest, True
        self._methods[batch.method].running = batch
        return batch

    def discard(self, batch: DynamicBatch) -> None:
        self._methods[batch.method].running = None

    def finish(self, frame: BatchResult, at: float) -> DynamicBatch | None:
        """The batch that a result ends; None if the guest has no such batch."""
        for method in self._methods.values():
            batch = method.running
            if batch is not None and batch.number == frame.batch:
                if [result.call_id for result in frame.results] != [call.call_id for call in batch.items]:
                    return None
                method.running = None
                method.former.compute.observe(len(batch.items), (at - batch.items[0].started_at) * 1000)
                return batch
        return None

    def stop_waiting(self) -> None:
        for method in self._methods.values():
            method.former.stop_waiting()

    def next_due_at(self, at: float) -> float | None:
        """When the next batch is due if no call comes until then."""
        due = [method.former.due_at(at) for method in self._methods.values() if method.running is None]
        return min((instant for instant in due if instant is not None), default=None)

    def mates_of(self, call: AcceptedCall, outcome: Outcome, at: float) -> tuple[str, ...]:
        """The calls that one which ends has run with, if they are told."""
        batch, call.mates = call.mates, ()
        return traced_mates(call, batch, outcome, (at - call.accepted_at) * 1000, self._level_ms)

    def room(self) -> int:
        room = 0
        for method in self._methods.values():
            room += method.former.room
        return room

    def _batch(self, items: list[AcceptedCall]) -> DynamicBatch:
        return DynamicBatch(number=next(self._numbers), method=items[0].run.method, items=items)


def traced_mates(
    call: AcceptedCall, batch: Iterable[AcceptedCall], outcome: Outcome, took_ms: float, level_ms: float | None
) -> tuple[str, ...]:
    """The other calls of a call's batch, by their traces, where somebody may ask about this one.

    Most calls are fast, end well and belong to no trace that is wanted: of those nothing is told, and nothing is made.
    `took_ms`: at this node; `level_ms`: of its function.
    """
    asked = is_sampled(call.run.traceparent)
    if not asked and outcome is Outcome.OK and took_ms < (SLOW_MS if level_ms is None else level_ms):
        return ()
    others = [each for each in batch if each is not call]
    return tuple([_execution_of(each.call_id, each.run.traceparent) for each in others[:MOST_MATES]])


@lru_cache(RUNNING_MATES)
def _execution_of(call_id: str, traceparent: str) -> str:
    """The traceparent of the span of a call's execution, of which each other call of its batch is told."""
    return context_within(call_id, traceparent).header


def _that_fit(items: list[AcceptedCall]) -> int:
    sizes = itertools.accumulate(len(call.input) for call in items)
    return max(1, sum(size <= BATCH_BYTES for size in sizes))


def _cost(batching: Batching, data: bytes) -> float:
    if batching.cost_of is None:
        return 1.0
    try:
        named = decode_opaque(data)
    except msgspec.DecodeError:
        return 1.0
    return item_cost(batching, named) if isinstance(named, dict) else 1.0
