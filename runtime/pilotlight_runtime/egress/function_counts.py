"""What functions have had through the proxy, from what it says of their containers. Pure: time is an argument."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace

from pilotlight_runtime.egress.proxy_messages import CountedBytes

COUNTS_KEPT = 256
"""Functions that are counted apart."""
OF_TENANT = 64
OTHERS = "other"
RESTS_S = 3600.0
"""A function that has no container, and had nothing for so long, gives its place away; it begins anew."""
LAST_WORD_S = 60.0
"""For the last count of a container whose way has been closed."""


@dataclass(frozen=True)
class EgressCounts:
    """Of a function, on this node, since the agent began."""

    sent_bytes: int = 0
    received_bytes: int = 0
    connections: int = 0
    refused: int = 0

    def __add__(self, other: EgressCounts) -> EgressCounts:
        return EgressCounts(
            self.sent_bytes + other.sent_bytes,
            self.received_bytes + other.received_bytes,
            self.connections + other.connections,
            self.refused + other.refused,
        )

    def __sub__(self, other: EgressCounts) -> EgressCounts:
        return self + EgressCounts(-other.sent_bytes, -other.received_bytes, -other.connections, -other.refused)


@dataclass(frozen=True)
class _Counted:
    """A container, and what this process of the proxy has said of it."""

    tenant: str
    function: str
    said: EgressCounts = EgressCounts()
    closed_at: float | None = None


@dataclass
class _Function:
    tenant: str
    counts: EgressCounts
    changed_at: float


class FunctionCounts:
    """By function, within bounds; those beyond them together."""

    def __init__(self) -> None:
        self._containers: dict[str, _Counted] = {}
        self._functions: dict[str, _Function] = {}
        self._of_tenant = Counter[str]()

    @property
    def counts(self) -> dict[str, EgressCounts]:
        return {name: each.counts for name, each in self._functions.items()}

    @property
    def containers(self) -> int:
        """How many are counted."""
        return len(self._containers)

    def open(self, container: str, tenant: str, function: str) -> None:
        """Count a container from now on."""
        self._containers[container] = _Counted(tenant, function)

    def close(self, container: str, at: float) -> None:
        """Expect a last count of a container, for a while."""
        if (known := self._containers.get(container)) is not None:
            self._containers[container] = replace(known, closed_at=at)

    def restart(self) -> None:
        """Begin with another process of the proxy, which knows the open ways alone, and has counted nothing."""
        left = {name: each for name, each in self._containers.items() if each.closed_at is None}
        self._containers = {name: replace(each, said=EgressCounts()) for name, each in left.items()}

    def add(self, counted: CountedBytes, at: float) -> str:
        """Add what a container has had since it was last counted; its function, or "" if it is not known."""
        known = self._containers.get(counted.container)
        if known is None:
            return ""
        now = EgressCounts(counted.sent, counted.received, counted.connections, counted.refused)
        place = self._place(known, at)
        place.counts += now - known.said
        place.changed_at = at
        self._containers[counted.container] = replace(known, said=now)
        if counted.is_last:
            del self._containers[counted.container]
        return known.function

    def forget(self, at: float) -> None:
        """Drop containers of which no last word came, and the functions that have rested for long."""
        for name, each in list(self._containers.items()):
            if each.closed_at is not None and at - each.closed_at >= LAST_WORD_S:
                del self._containers[name]
        there = {each.function for each in self._containers.values()}
        for name, function in list(self._functions.items()):
            if name not in there and name != OTHERS and at - function.changed_at >= RESTS_S:
                del self._functions[name]
                self._of_tenant[function.tenant] -= 1
        self._of_tenant = +self._of_tenant

    def _place(self, known: _Counted, at: float) -> _Function:
        name, tenant = known.function, known.tenant
        if name not in self._functions:
            if self._of_tenant.total() >= COUNTS_KEPT or self._of_tenant[tenant] >= OF_TENANT:
                return self._functions.setdefault(OTHERS, _Function("", EgressCounts(), at))
            self._functions[name] = _Function(tenant, EgressCounts(), at)
            self._of_tenant[tenant] += 1
        return self._functions[name]
