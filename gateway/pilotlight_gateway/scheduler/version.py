"""What a home keeps of one version: its queue, its containers' room, its pace, and what the controller was told."""

from __future__ import annotations

from dataclasses import dataclass

from pilotlight_core.model.messages import ContainerState, Credit, Demand, Grant, Shortage
from pilotlight_gateway.scheduler.admission import Pace, QueueLimits
from pilotlight_gateway.scheduler.counters import FunctionCounters
from pilotlight_gateway.scheduler.flows import Entry
from pilotlight_gateway.scheduler.queue import FairQueue
from pilotlight_gateway.scheduler.rooms import STARTING, Room, Rooms

KEPT_IDLE = 3_600.0
"""Seconds for which what was learnt of an unused version (start time, cost) is kept."""
SHORTAGE_FRESH = 5.0
"""Seconds after which an unrepeated shortage has passed."""


class VersionDesk:
    """One version at its home."""

    __slots__ = (
        "_limits", "arrivals", "deposed", "function", "load_errors", "never_since", "pace", "queue", "rooms",
        "shortage", "shortage_at", "tenant", "told_at", "told_busy", "told_queued", "used_at", "version",
    )  # fmt: skip

    def __init__(self, version: str, limits: QueueLimits, at: float) -> None:
        self.version = version
        self.function = ""
        """Unknown until a call names it; a container may speak first."""
        self._limits = limits
        self.tenant = ""
        """Who owns the version."""
        self.queue = FairQueue(FunctionCounters(), tenant_in_flight=limits.tenant_in_flight)
        self.rooms = Rooms()
        self.pace = Pace()
        self.deposed = False
        """An agent has heard of a newer home for this version."""
        self.arrivals = 0
        self.told_at = float("-inf")
        self.told_queued = 0
        self.told_busy = False
        """Whether the controller's last word is that calls wait or run."""
        self.used_at = at
        self.load_errors = 0
        """Containers that could not be loaded since one was ready."""
        self.shortage = ""
        self.shortage_at = float("-inf")
        self.never_since: float | None = None

    def name(self, function: str, counters: FunctionCounters) -> None:
        """Learn the function, and share its counters from now on. Nothing may be queued or granted yet."""
        self.queue.close()
        self.function = function
        self.tenant = self.tenant or function.partition(":")[0]
        self.queue = FairQueue(counters, tenant_in_flight=self._limits.tenant_in_flight)

    @property
    def edge(self) -> bool:
        """Whether calls wait and the controller does not know of any."""
        return bool(self.queue) and not self.told_queued and not self.deposed

    @property
    def busy(self) -> bool:
        """Whether the controller has to be told something more."""
        return not self.deposed and (self.told_busy or bool(self.queue) or bool(self.arrivals))

    def demand(self, gateway: str, epoch: int, at: float) -> Demand:
        """What the version's queue asks for; it counts as told."""
        oldest = self.queue.oldest()
        told = Demand(
            version=self.version,
            tenant=self.tenant,
            gateway=gateway,
            epoch=epoch,
            queued=len(self.queue),
            oldest_ms=max(0.0, at - oldest) * 1000.0 if oldest is not None else 0.0,
            running=self.rooms.running(),
            arrivals=self.arrivals,
            service_ms=self.pace.hold_ms or 0.0,
            edge=self.edge,
        )
        self.told_at, self.told_queued, self.arrivals = at, told.queued, 0
        self.told_busy = bool(told.queued or told.running)
        if told.queued or told.running or told.arrivals:
            self.used_at = at
        return told

    def start_waited(self, entry: Entry, room: Room) -> tuple[float, dict[str, float]]:
        """Milliseconds that a call waited while no container was ready, and the steps of that start."""
        ready = self.rooms.ready_since
        if ready is None or entry.pushed >= ready:
            return 0.0, {}
        return (ready - entry.pushed) * 1000.0, room.timeline

    def cannot_load(self, credit: Credit) -> bool:
        """Take note of how a start went; whether the next one would fail in the same way.

        One failure may be the node's while another container is on its way; two in a row are the function's.
        """
        if credit.state is ContainerState.READY:
            self.load_errors = 0
        if credit.error is None or self.rooms.has(ContainerState.READY):
            return False
        self.load_errors += 1
        return self.load_errors > 1 or not self.rooms.has(*STARTING)

    def note_shortage(self, shortage: Shortage, at: float) -> None:
        """The controller says why there is no capacity."""
        if not shortage.never:
            self.never_since = None
        elif self.never_since is None or at - self.shortage_at > SHORTAGE_FRESH:
            self.never_since = at
        self.shortage, self.shortage_at = shortage.reason, at

    def shortage_now(self, at: float) -> str:
        """Why there is no capacity, if that was said lately; else empty."""
        return self.shortage if at - self.shortage_at <= SHORTAGE_FRESH else ""

    def is_forgettable(self, at: float) -> bool:
        """Whether nothing is here, and nothing has been for long."""
        idle = not self.busy and not self.queue.statistics().in_flight and not len(self.rooms)
        return idle and at - self.used_at > KEPT_IDLE


@dataclass(slots=True)
class Granted:
    """A grant that was given out, until its call has ended or come back."""

    desk: VersionDesk
    entry: Entry
    grant: Grant
    at: float
