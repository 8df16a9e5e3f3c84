"""Orders deliveries. Pure: it knows only keys and instants.

Each webhook has a queue by due time. Deliveries under way are limited per webhook, per tenant and in total, and queues
take turns, so a slow receiver delays only its own deliveries.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import NamedTuple

import msgspec

from pilotlight_core.model.timers import Timers


class DeliveryLimits(msgspec.Struct, frozen=True, kw_only=True):
    """Upper bounds of the deliveries under way."""

    webhook: int = 4
    tenant: int = 16
    total: int = 512


class EndpointKey(NamedTuple):
    """A webhook, which has one queue."""

    tenant: str
    webhook: str


class _Due(msgspec.Struct):
    at: float
    line: EndpointKey
    under_way: bool = False


class DeliverySchedule:
    """Pending deliveries by key, with their due instants."""

    def __init__(self, bounds: DeliveryLimits | None = None) -> None:
        self._bounds = bounds or DeliveryLimits()
        self._due: dict[str, _Due] = {}
        self._lines: dict[EndpointKey, Timers[str]] = {}
        """By due instant, without deliveries under way."""
        self._turns: OrderedDict[EndpointKey, None] = OrderedDict()
        self._by_line: dict[EndpointKey, int] = {}
        self._by_tenant: dict[str, int] = {}
        self._under_way = 0
        self._waiting: dict[EndpointKey, int] = {}

    def __len__(self) -> int:
        return len(self._due)

    @property
    def under_way(self) -> int:
        return self._under_way

    def pending(self, line: EndpointKey) -> int:
        """The number of a webhook's deliveries, including those under way."""
        return self._waiting.get(line, 0)

    def waiting(self, line: EndpointKey) -> list[str]:
        """Keys of a webhook's deliveries that are not under way."""
        return list(self._lines.get(line, ()))

    def put(self, key: str, line: EndpointKey, at: float) -> None:
        """Add a delivery, or change its due instant; under way, this applies after `done`."""
        found = self._due.get(key)
        if found is None:
            found = self._due[key] = _Due(at, line)
            self._waiting[line] = self._waiting.get(line, 0) + 1
        found.at = at
        if not found.under_way:
            self._enter(key, found)

    def drop(self, key: str) -> None:
        """Remove a delivery; under way, it counts until `done`."""
        found = self._due.pop(key, None)
        if found is None:
            return
        self._count(self._waiting, found.line, -1)
        if found.under_way:
            self._due_again(found.line)
        else:
            self._lines[found.line].clear(key)

    def take(self, at: float) -> list[str]:
        """The deliveries to send now; they are under way until `done`."""
        taken = []
        for line in list(self._turns):
            while self._under_way < self._bounds.total and self._may(line):
                key = self._pop(line, at)
                if key is None:
                    break
                self._due[key].under_way = True
                self._start(line)
                self._turns.move_to_end(line)
                taken.append(key)
                break  # one per turn
        if taken and self._under_way < self._bounds.total:
            taken += self.take(at)
        return taken

    def done(self, key: str) -> None:
        """A delivery is no longer under way: it is due as last put, unless dropped."""
        found = self._due.get(key)
        if found is None or not found.under_way:
            return
        found.under_way = False
        self._due_again(found.line)
        self._enter(key, found)

    def next_at(self) -> float | None:
        """The earliest instant at which `take` may return something; None: never, without a change."""
        if self._under_way >= self._bounds.total:
            return None
        heads = (self._first(line) for line in list(self._turns) if self._may(line))
        return min((at for at in heads if at is not None), default=None)

    def check_integrity(self) -> None:
        """Raise AssertionError for inconsistent counts."""
        under_way = [due for due in self._due.values() if due.under_way]
        assert sum(self._by_line.values()) == sum(self._by_tenant.values()) == self._under_way  # noqa: S101
        assert len(under_way) == self._under_way <= self._bounds.total  # noqa: S101
        assert all(count <= self._bounds.webhook for count in self._by_line.values())  # noqa: S101
        assert all(count <= self._bounds.tenant for count in self._by_tenant.values())  # noqa: S101
        assert sum(self._waiting.values()) == len(self._due)  # noqa: S101

    def _enter(self, key: str, due: _Due) -> None:
        self._lines.setdefault(due.line, Timers()).set(key, due.at)
        self._turns.setdefault(due.line)

    def _pop(self, line: EndpointKey, at: float) -> str | None:
        return self._lines[line].pop(at) if self._first(line) is not None else None

    def _first(self, line: EndpointKey) -> float | None:
        first = self._lines[line].next() if line in self._lines else None
        if first is None:
            self._lines.pop(line, None)
            self._turns.pop(line, None)
        return first

    def _may(self, line: EndpointKey) -> bool:
        return (
            self._by_line.get(line, 0) < self._bounds.webhook
            and self._by_tenant.get(line.tenant, 0) < self._bounds.tenant
        )

    def _start(self, line: EndpointKey) -> None:
        self._under_way += 1
        self._count(self._by_line, line, 1)
        self._count(self._by_tenant, line.tenant, 1)

    def _due_again(self, line: EndpointKey) -> None:
        self._under_way -= 1
        self._count(self._by_line, line, -1)
        self._count(self._by_tenant, line.tenant, -1)

    @staticmethod
    def _count(counts: dict, of: object, change: int) -> None:  # type: ignore[type-arg]
        counts[of] = counts.get(of, 0) + change
        if not counts[of]:
            del counts[of]
