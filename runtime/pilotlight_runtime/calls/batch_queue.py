"""The batches of one container: calls that gather for a batched method, and the batch of it that the guest has.

`batching.BatchFormer` says who goes together and when; here are the calls themselves. A method has one batch with the
guest at a time, and the next one grows meanwhile.
"""

from __future__ import annotations

import itertools
from collections import deque
from dataclasses import dataclass, field

import msgspec

from pilotlight_core.model.spec import Batching, FunctionSpec
from pilotlight_core.model.values import decode_opaque
from pilotlight_runtime.calls.accepted_call import AcceptedCall
from pilotlight_runtime.calls.batching import BatchFormer, item_cost
from pilotlight_runtime.guest.frames import MAX_FRAME, BatchResult

BATCH_BYTES = MAX_FRAME * 3 // 4
"""Of the inputs of one batch: together they must fit one frame."""


@dataclass(kw_only=True, eq=False)
class DynamicBatch:
    """Calls that the guest is given at once."""

    number: int
    method: str
    items: list[AcceptedCall]
    rest: deque[AcceptedCall] = field(default_factory=deque)
    """Those that run after this one, each alone, since the batch had raised as a whole."""
    is_retry: bool = False

    @property
    def can_split(self) -> bool:
        """Whether its items may do better alone."""
        return len(self.items) > 1 and not self.is_retry


@dataclass(kw_only=True, eq=False)
class BatchedMethod:
    """One batched method."""

    batching: Batching
    former: BatchFormer
    waiting: dict[str, AcceptedCall] = field(default_factory=dict)
    with_guest: DynamicBatch | None = None

    def due(self, at: float) -> bool:
        """Whether its next batch must go now."""
        due = self.former.due(at) if self.with_guest is None else None
        return due is not None and due <= at

    @property
    def oldest(self) -> float:
        """Since when its first call waits."""
        return next(iter(self.waiting.values())).ready


class DynamicBatches:
    """All batched methods of one container."""

    def __init__(self, spec: FunctionSpec) -> None:
        self._lanes = {
            method.name: BatchedMethod(
                batching=method.batching, former=BatchFormer(method.batching, slo_p95_ms=spec.slo.p95_ms)
            )
            for method in spec.methods
            if method.batching is not None
        }
        self._numbers = itertools.count(1)

    def __bool__(self) -> bool:
        return bool(self._lanes)

    def has(self, held: AcceptedCall) -> bool:
        """Whether its method is a batched one."""
        return held.run.method in self._lanes

    def add(self, held: AcceptedCall, at: float) -> bool:
        """Let a call gather; False if its method is not batched."""
        lane = self._lanes.get(held.run.method)
        if lane is None:
            return False
        lane.waiting[held.run.call] = held
        cost = _cost(lane.batching, held.input)
        lane.former.add(held.run.call, cost=cost, at=at, deadline_at=min(held.start_by, held.ends_by))
        return True

    def remove(self, held: AcceptedCall) -> bool:
        """Take a call out that gathers; False if it does not."""
        lane = self._lanes.get(held.run.method)
        if lane is None or lane.waiting.pop(held.run.call, None) is None:
            return False
        return lane.former.remove(held.run.call)

    def take(self, at: float, before: float) -> DynamicBatch | None:
        """The batch that is due and has waited longest, if its first call came before that instant."""
        due = [lane for lane in self._lanes.values() if lane.due(at)]
        lane = min(due, key=lambda lane: lane.oldest, default=None)
        if lane is None or lane.oldest > before:
            return None
        items = [lane.waiting.pop(call) for call in lane.former.take(at)]
        fit = _that_fit(items)
        for held in items[fit:]:
            self.add(held, at)
        lane.with_guest = self._batch(items[:fit])
        return lane.with_guest

    def alone(self, held: AcceptedCall, rest: deque[AcceptedCall]) -> DynamicBatch:
        """A batch of one, of those that raised as a whole; `rest` are still to come."""
        batch = self._batch([held])
        batch.rest, batch.is_retry = rest, True
        self._lanes[batch.method].with_guest = batch
        return batch

    def dropped(self, batch: DynamicBatch) -> None:
        """Nothing of it was given to the guest."""
        self._lanes[batch.method].with_guest = None

    def answered(self, frame: BatchResult, at: float) -> DynamicBatch | None:
        """The batch that the guest has ended; None if it has none that this answers."""
        for lane in self._lanes.values():
            batch = lane.with_guest
            if batch is not None and batch.number == frame.batch:
                if [result.call for result in frame.results] != [held.run.call for held in batch.items]:
                    return None
                lane.with_guest = None
                lane.former.compute.learn(len(batch.items), (at - batch.items[0].started) * 1000)
                return batch
        return None

    def expect_nobody(self) -> None:
        """No more calls come: nobody waits for company."""
        for lane in self._lanes.values():
            lane.former.expect_nobody()

    def wake(self, at: float) -> float | None:
        """When the next batch is due if nothing happens until then."""
        due = [lane.former.due(at) for lane in self._lanes.values() if lane.with_guest is None]
        return min((instant for instant in due if instant is not None), default=None)

    def room(self) -> int:
        """Items that a batch now forming could still take."""
        return sum(lane.former.room for lane in self._lanes.values())

    def _batch(self, items: list[AcceptedCall]) -> DynamicBatch:
        return DynamicBatch(number=next(self._numbers), method=items[0].run.method, items=items)


def _that_fit(items: list[AcceptedCall]) -> int:
    """How many of the first fit one frame; at least one."""
    sizes = itertools.accumulate(len(held.input) for held in items)
    return max(1, sum(size <= BATCH_BYTES for size in sizes))


def _cost(batching: Batching, data: bytes) -> float:
    if batching.cost_of is None:
        return 1.0
    try:
        named = decode_opaque(data)
    except msgspec.DecodeError:
        return 1.0
    return item_cost(batching, named) if isinstance(named, dict) else 1.0
