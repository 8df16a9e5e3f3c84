"""The bodies of the HTTP API about what is under pressure: queues, slowdowns, breakers, starts."""

from __future__ import annotations

import msgspec


class WaitingFlow(msgspec.Struct, frozen=True, kw_only=True):
    """The waiting calls of one tenant and class."""

    tenant: str
    priority: str
    queued: int
    oldest_ms: float


class QueueInfo(msgspec.Struct, frozen=True, kw_only=True):
    """What waits and runs of one version, and why it waits."""

    version: str
    """`app.function@v7`; its id if it is not on record."""
    tenant: str
    function: str
    """`tenant:app.function`."""
    gateway: str
    """Its home, for operators; else ""."""
    queued: int
    oldest_ms: float
    expected_ms: float | None
    """How long its last call waits by the present pace; null: unknown."""
    running: int
    slots: int
    ready: int
    """Containers, as `starting`."""
    starting: int
    why: str
    """running, starting, full, no_capacity, crash_loop or breaker_open: what its calls wait for; "": none does."""
    sentence: str
    flows: tuple[WaitingFlow, ...]
    """Those that have waited for longest."""
    flows_left: int
    """Further ones."""


class QueueList(msgspec.Struct, frozen=True, kw_only=True):
    """`GET /v1/queues`. Operators see all tenants'; others the queues of their own functions."""

    queued: int
    """Of all that wait, those that are not listed among them."""
    queues: tuple[QueueInfo, ...]
    """The longest wait first."""
    left: int
    """Further versions with calls, which are not listed."""


class SlowdownInfo(msgspec.Struct, frozen=True, kw_only=True):
    """Calls of one tenant and class that take much longer than if it were alone."""

    function: str
    version: str
    tenant: str
    priority: str
    slowdown: float
    """How many times as long."""
    calls: int
    neighbour: str = ""
    """Who holds most of the slots: told to operators; "" to others."""


class SlowdownList(msgspec.Struct, frozen=True, kw_only=True):
    """`GET /v1/slowdowns`."""

    slowdowns: tuple[SlowdownInfo, ...]


class BreakerInfo(msgspec.Struct, frozen=True, kw_only=True):
    """A circuit breaker that is not closed, or counts failures."""

    version: str
    function: str
    tenant: str
    """The owner."""
    of: str
    """version, container or tenant: whose failures it counts."""
    container: str
    caller: str
    """The tenant whose calls it keeps away; "": everybody's."""
    state: str
    failures: int
    retry_after_s: float


class BreakerList(msgspec.Struct, frozen=True, kw_only=True):
    """`GET /v1/breakers`."""

    breakers: tuple[BreakerInfo, ...]


class StartSteps(msgspec.Struct, frozen=True, kw_only=True):
    """How long the containers of one function took to start, by step, of those that are there."""

    function: str
    """`tenant:app.function`."""
    tenant: str
    containers: int
    starting: int
    """Of these."""
    total_ms: float
    """A start took so long on average."""
    longest_ms: float
    steps: dict[str, float]
    """Milliseconds on average."""


class StartList(msgspec.Struct, frozen=True, kw_only=True):
    """`GET /v1/starts`: the slowest first."""

    starts: tuple[StartSteps, ...]
