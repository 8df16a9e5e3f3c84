"""Dynamic batching of one method in one container: who goes together, and when. Plain functions of the instant `at`.

A batch goes as soon as one of these holds, and always in the order in which its calls were granted:
    size      it has `max_batch_size` items
    cost      the next item would bring it beyond `max_batch_cost` (an item that alone is beyond goes alone)
    wait      its first item has waited min(wait_ms, SLO p95 - measured compute - margin)
    deadline  one of its items would be too late otherwise
It waits for company even while the device is idle: whether somebody comes cannot be known, and who cannot wait says so
by `wait_ms` or by its SLO. While the guest works on another batch, a batch that is due goes on growing.
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
"""Recent batches of one size class by which its compute time is known."""
MARGIN_SHARE = 0.1
"""Part of the SLO that is left for everything but waiting and computing: transport, answer, a busy machine."""
MARGIN_LEAST_MS = 1.0


class ComputeModel:
    """How long batches of a size take to compute: the 95th percentile of recent ones, by powers of two."""

    def __init__(self) -> None:
        self._recent: dict[int, deque[float]] = {}
        self._p95: dict[int, float] = {}

    def learn(self, size: int, ms: float) -> None:
        """A batch of `size` items took `ms`."""
        bucket = _bucket(size)
        recent = self._recent.setdefault(bucket, deque(maxlen=SAMPLES))
        recent.append(ms)
        self._p95[bucket] = sorted(recent)[math.ceil(0.95 * len(recent)) - 1]

    def p95_ms(self, size: int) -> float:
        """What to expect for `size` items; 0 when nothing is known.

        A size never seen costs what the next larger one did, or else the largest one in proportion.
        """
        bucket = _bucket(size)
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


class WaitingItem(msgspec.Struct, frozen=True, kw_only=True):
    """One call that waits."""

    cost: float
    added: float
    deadline: float


@dataclass(slots=True)
class FormingBatch:
    """A batch as it forms. Kept up to date by each call that joins, so that looking costs nothing."""

    count: int = 0
    cost: float = 0.0
    complete: bool = False
    """It can take no more."""

    def join(self, cost: float, batching: Batching) -> bool:
        """Whether an item of `cost` is in; if not, the batch is complete without it."""
        most_cost = math.inf if batching.max_batch_cost is None else batching.max_batch_cost
        if self.complete or (self.count and self.cost + cost > most_cost):
            self.complete = True
            return False
        self.count += 1
        self.cost += cost
        self.complete = self.count >= batching.max_batch_size or self.cost >= most_cost
        return True


@dataclass(frozen=True, kw_only=True)
class BatchFormerStatistics:
    """How a former is."""

    waiting: int
    room: int
    wait_ms: float
    """What a first item would wait now."""
    compute_p95_ms: float
    """Of the batch that forms."""


class BatchFormer:
    """The calls of one method that wait for their batch. Instants are monotonic seconds."""

    def __init__(
        self, batching: Batching, *, slo_p95_ms: float | None = None, compute: ComputeModel | None = None
    ) -> None:
        self.compute = compute or ComputeModel()
        self._batching = batching
        self._slo = slo_p95_ms
        self._items: dict[str, WaitingItem] = {}
        self._earliest_deadline = math.inf
        self._first = self._last = FormingBatch()
        self._alone = False

    def __len__(self) -> int:
        return len(self._items)

    def add(self, call: str, *, cost: float = 1.0, at: float, deadline_at: float = math.inf) -> None:
        """A call joins behind all others; it must have been computed by `deadline_at`."""
        self._items[call] = WaitingItem(cost=cost, added=at, deadline=deadline_at)
        self._earliest_deadline = min(self._earliest_deadline, deadline_at)
        self._join(cost)

    def remove(self, call: str) -> bool:
        """Take out a call that nobody waits for; False if it does not wait here."""
        if self._items.pop(call, None) is None:
            return False
        self._form_anew()
        return True

    def expect_nobody(self) -> None:
        """The container drains: nobody else comes, so nobody waits for company."""
        self._alone = True

    def due(self, at: float) -> float | None:
        """When the first batch must go: not after `at` is now, None is never, as nothing waits."""
        if not self._items:
            return None
        if self._first.complete or self._alone:
            return at
        count = self._first.count
        oldest = next(iter(self._items.values())).added
        before_deadline = self._earliest_deadline - (self.compute.p95_ms(count) + self._margin_ms()) / 1000
        return min(oldest + self.wait_ms(count) / 1000, before_deadline)

    def take(self, at: float) -> tuple[str, ...]:
        """The first batch, in order, if it is due; else nothing."""
        due = self.due(at)
        if due is None or due > at:
            return ()
        taken = tuple(islice(self._items, self._first.count))
        for call in taken:
            del self._items[call]
        self._form_anew()
        return taken

    @property
    def room(self) -> int:
        """Items that the batch now forming could still take; 0 when none forms. By size: costs to come are unknown."""
        forms = self._last.count and not self._last.complete
        return self._batching.max_batch_size - self._last.count if forms else 0

    def wait_ms(self, size: int) -> float:
        """How long a first item waits for company when the batch would have `size` items."""
        if self._slo is None:
            return self._batching.wait_ms
        spare = self._slo - self.compute.p95_ms(size) - self._margin_ms()
        return max(0.0, min(self._batching.wait_ms, spare))

    def statistics(self) -> BatchFormerStatistics:
        """What waits, and how long it would."""
        size = max(1, self._first.count)
        return BatchFormerStatistics(
            waiting=len(self._items),
            room=self.room,
            wait_ms=self.wait_ms(size),
            compute_p95_ms=self.compute.p95_ms(size),
        )

    def _margin_ms(self) -> float:
        return max(MARGIN_LEAST_MS, MARGIN_SHARE * (self._slo or 0.0))

    def _join(self, cost: float) -> None:
        if self._last.join(cost, self._batching):
            return
        self._last = FormingBatch()
        self._last.join(cost, self._batching)

    def _form_anew(self) -> None:
        """After items have left: those behind them move up."""
        self._earliest_deadline = min((item.deadline for item in self._items.values()), default=math.inf)
        self._first = self._last = FormingBatch()
        for item in self._items.values():
            self._join(item.cost)


def item_cost(batching: Batching, named: dict[str, Any]) -> float:
    """What one call counts for `max_batch_cost`: 1, the length of a parameter, or its value. `named` is undecoded.

    What cannot be measured (a parameter that is not given, or of another type) counts 1.
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
