"""Dynamic batching of one method in one container: which calls run together, and when. Pure; `at` is an argument.

A batch takes calls in the order of their grants, and is due as soon as one of these holds:
    size      it has `max_batch_size` items
    cost      the next item would exceed `max_batch_cost` (an item that alone exceeds it goes alone)
    wait      its first item has waited min(wait_ms, SLO p95 - measured compute - margin)
    deadline  one of its items would be too late otherwise
It waits even while the device is idle, since more calls may come. A due batch grows while the guest runs another one.
"""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass
from itertools import islice
from typing import Any

import msgspec

from pilotlight_core.model import values
from pilotlight_core.model.errors import BadInput
from pilotlight_core.model.spec import Batching

SAMPLES = 64
"""Recent batches of one size class from which its compute time is estimated."""
MARGIN_SHARE = 0.1
"""Part of the SLO kept for transport, the answer and a busy machine."""
MARGIN_LEAST_MS = 1.0


class ComputeModel:
    """How long batches of a size compute: the 95th percentile of recent ones, by powers of two."""

    def __init__(self) -> None:
        self._recent: dict[int, deque[float]] = {}
        self._p95: dict[int, float] = {}

    def observe(self, size: int, ms: float) -> None:
        bucket = _bucket(size)
        recent = self._recent.setdefault(bucket, deque(maxlen=SAMPLES))
        recent.append(ms)
        self._p95[bucket] = sorted(recent)[math.ceil(0.95 * len(recent)) - 1]

    def p95_ms(self, size: int) -> float:
        """The expected milliseconds for `size` items; 0 when nothing is known.

        An unseen size costs as much as the next larger one, or else the largest one in proportion.
        """
        bucket = _bucket(size)
        known = self._p95.get(bucket)
        if known is not None:
            return known
        larger = [b for b in self._p95 if b >= bucket]
        if larger:
            return self._p95[min(larger)]
        if not self._p95:
            return 0.0
        largest = max(self._p95)
        return self._p95[largest] * 2.0 ** (bucket - largest)


def _bucket(size: int) -> int:
    """0 for 1, 1 for 2, 2 for 3 and 4, 3 for 5 to 8, …"""
    return (size - 1).bit_length()


class WaitingItem:
    __slots__ = ("added_at", "cost", "deadline_at")

    def __init__(self, cost: float, added_at: float, deadline_at: float) -> None:
        self.cost = cost
        self.added_at = added_at
        self.deadline_at = deadline_at


@dataclass(slots=True)
class FormingBatch:
    count: int = 0
    cost: float = 0.0
    is_full: bool = False

    def try_add(self, cost: float, batching: Batching) -> bool:
        """Add an item of `cost`; False if it does not fit, which makes the batch full."""
        most_cost = math.inf if batching.max_batch_cost is None else batching.max_batch_cost
        if self.is_full or (self.count and self.cost + cost > most_cost):
            self.is_full = True
            return False
        self.count += 1
        self.cost += cost
        self.is_full = self.count >= batching.max_batch_size or self.cost >= most_cost
        return True


@dataclass(frozen=True, kw_only=True)
class BatchFormerStatistics:
    waiting: int
    room: int
    wait_ms: float
    """How long a first item would wait now."""
    compute_p95_ms: float
    """Of the forming batch."""


class BatchFormer:
    """The calls of one method that wait for their batch. Instants are monotonic seconds."""

    def __init__(
        self, batching: Batching, *, slo_p95_ms: float | None = None, compute: ComputeModel | None = None
    ) -> None:
        self.compute = compute or ComputeModel()
        self._batching = batching
        self._slo_ms = slo_p95_ms
        self._items: dict[str, WaitingItem] = {}
        self._earliest_deadline_at = math.inf
        self._first = self._last = FormingBatch()
        self._is_draining = False

    def __len__(self) -> int:
        return len(self._items)

    def add(self, call_id: str, *, at: float, cost: float = 1.0, deadline_at: float = math.inf) -> None:
        """Append a call whose computing must end by `deadline_at`."""
        self._items[call_id] = WaitingItem(cost, at, deadline_at)
        if deadline_at < self._earliest_deadline_at:
            self._earliest_deadline_at = deadline_at
        self._join(cost)

    def remove(self, call_id: str) -> bool:
        if self._items.pop(call_id, None) is None:
            return False
        self._rebuild()
        return True

    def stop_waiting(self) -> None:
        """Make every batch due at once."""
        self._is_draining = True

    def due_at(self, at: float) -> float | None:
        """When the first batch must go; `at` if now, None if no call waits."""
        if not self._items:
            return None
        if self._first.is_full or self._is_draining:
            return at
        count = self._first.count
        oldest_at = next(iter(self._items.values())).added_at
        latest_start_at = self._earliest_deadline_at - (self.compute.p95_ms(count) + self._margin_ms()) / 1000
        return min(oldest_at + self.wait_ms(count) / 1000, latest_start_at)

    def pop_due(self, at: float) -> tuple[str, ...]:
        """The first batch, in order, if it is due; else nothing."""
        due = self.due_at(at)
        if due is None or due > at:
            return ()
        taken = tuple(islice(self._items, self._first.count))
        for call_id in taken:
            del self._items[call_id]
        self._rebuild()
        return taken

    @property
    def room(self) -> int:
        """Items that the forming batch can still take, by `max_batch_size`; 0 when none forms."""
        forms = self._last.count and not self._last.is_full
        return self._batching.max_batch_size - self._last.count if forms else 0

    def wait_ms(self, size: int) -> float:
        """How long a first item waits for more when the batch would have `size` items."""
        if self._slo_ms is None:
            return self._batching.wait_ms
        spare = self._slo_ms - self.compute.p95_ms(size) - self._margin_ms()
        return max(0.0, min(self._batching.wait_ms, spare))

    def statistics(self) -> BatchFormerStatistics:
        size = max(1, self._first.count)
        return BatchFormerStatistics(
            waiting=len(self._items),
            room=self.room,
            wait_ms=self.wait_ms(size),
            compute_p95_ms=self.compute.p95_ms(size),
        )

    def _margin_ms(self) -> float:
        return max(MARGIN_LEAST_MS, MARGIN_SHARE * (self._slo_ms or 0.0))

    def _join(self, cost: float) -> None:
        if self._last.try_add(cost, self._batching):
            return
        self._last = FormingBatch()
        self._last.try_add(cost, self._batching)

    def _rebuild(self) -> None:
        self._earliest_deadline_at = min((item.deadline_at for item in self._items.values()), default=math.inf)
        self._first = self._last = FormingBatch()
        for item in self._items.values():
            self._join(item.cost)


def item_cost(batching: Batching, named: dict[str, Any]) -> float:
    """What one call counts for `max_batch_cost`: 1, or the length or value of a parameter. `named` is undecoded.

    A parameter that is missing or of another type counts 1.
    """
    if batching.cost_of is None:
        return 1.0
    kind, _, parameter = batching.cost_of.partition(":")
    value = named.get(parameter)
    cost = _length(value) if kind == "len" else _number(value)
    return 1.0 if cost is None or math.isnan(cost) else max(0.0, cost)


def _length(value: Any) -> float | None:
    if isinstance(value, msgspec.msgpack.Ext):
        try:
            header, _ = values.unpack_array(memoryview(value.data))
        except BadInput:
            return None
        return float(header.shape[0]) if header.shape else None
    return float(len(value)) if isinstance(value, str | bytes | list | dict) else None


def _number(value: Any) -> float | None:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None
