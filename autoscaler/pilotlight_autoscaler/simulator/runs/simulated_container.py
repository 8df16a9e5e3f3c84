"""One container of a simulation, and how its time was spent."""

from __future__ import annotations

import math
from typing import NamedTuple

from pilotlight_core.model.messages.engine_report import EngineReport
from pilotlight_core.model.messages.node_messages import ContainerState, HostShare


class ContainerSeconds(NamedTuple):
    busy_s: float
    loading_s: float
    idle_s: float

    @property
    def total_s(self) -> float:
        return self.busy_s + self.loading_s + self.idle_s


class SimulatedClock:
    """The instant of one function, in seconds from the beginning."""

    __slots__ = ("at",)

    def __init__(self) -> None:
        self.at = 0.0


class SimulatedContainer:
    """It has everything that a `ContainerReport` has, so that the policy reads it as one: a test holds it to that.

    To make a report of each container for each question would take most of the time of a simulation.
    """

    __slots__ = (
        "app", "began_at", "busy_s", "busy_since", "calls", "clock", "dollars_per_hour", "function", "gpus", "id",
        "idle_since", "is_gone", "number", "ready_at", "running", "slice", "slots", "state", "tenant", "timeline",
        "version",
    )  # fmt: skip

    host = HostShare()
    memory_bytes = 0
    reason = ""
    unfit: bool = False
    guessed: bool | None = None
    network: int = 0
    secrets: str = ""
    parks: str = ""
    engine: EngineReport | None = None
    cpu_ms: int = 0
    throttled_ms: int = 0

    def __init__(self, name: str, number: int, began_at: float, load_s: float) -> None:
        self.id = name
        self.number = number
        """In the order of starts."""
        self.began_at = began_at
        self.ready_at = began_at + load_s
        self.timeline = {"load": load_s * 1000.0}
        self.gpus = 0.0
        """GPUs that it holds, a slice by its metered part; 0 of a CPU slot."""
        self.dollars_per_hour = 0.0
        self.slice = ""
        self.version = self.tenant = self.app = self.function = ""
        self.slots = 1
        self.state = ContainerState.LOADING
        self.running = 0
        self.calls = 0
        """Granted to it so far."""
        self.idle_since = self.ready_at
        self.busy_since = math.inf
        self.busy_s = 0.0
        """Seconds with a call, without the present one."""
        self.is_gone = False
        self.clock = SimulatedClock()

    @property
    def age_s(self) -> float:
        return self.clock.at - self.began_at

    @property
    def idle_s(self) -> float:
        """Seconds since it last held a call; 0 while it holds one, and while it starts."""
        return 0.0 if self.running else max(0.0, self.clock.at - self.idle_since)

    def take(self, at: float) -> None:
        """A call is granted to it."""
        if not self.running:
            self.busy_since = at
        self.running += 1
        self.calls += 1

    def free(self, at: float) -> None:
        """One of its calls has ended."""
        self.running -= 1
        if not self.running:
            self.stop_work(at)

    def stop_work(self, at: float) -> None:
        """The last of its calls has ended."""
        self.running = 0
        self.busy_s += at - self.busy_since
        self.idle_since = at

    def spent(self, at: float) -> ContainerSeconds:
        """How its time was spent until `at`."""
        loading_s = min(at, self.ready_at) - self.began_at
        busy_s = self.busy_s + (max(0.0, at - self.busy_since) if self.running else 0.0)
        return ContainerSeconds(busy_s, loading_s, max(0.0, at - self.began_at - loading_s - busy_s))
