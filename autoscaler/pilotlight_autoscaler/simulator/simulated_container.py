"""One container of a simulation, and how its time was spent."""

from __future__ import annotations

import math


class SimulatedContainer:
    """Instants are seconds of the virtual clock."""

    __slots__ = (
        "began_at", "busy_s", "busy_since", "calls", "dollars_per_hour", "gpus", "idle_since", "is_gone", "name",
        "number", "ready_at", "running", "slice",
    )  # fmt: skip

    def __init__(
        self, name: str, number: int, began_at: float, load_s: float, *, gpus: float, dollars_per_hour: float
    ) -> None:
        self.name = name
        self.number = number
        """In the order of starts."""
        self.began_at = began_at
        self.ready_at = began_at + load_s
        self.gpus = gpus
        """GPUs that it holds, a slice by its metered part; 0 of a CPU slot."""
        self.dollars_per_hour = dollars_per_hour
        self.running = 0
        self.calls = 0
        """Granted to it so far."""
        self.idle_since = self.ready_at
        self.busy_since = math.inf
        self.busy_s = 0.0
        """Seconds with a call, without the present one."""
        self.is_gone = False

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
            self.busy_s += at - self.busy_since
            self.idle_since = at

    def spent(self, at: float) -> ContainerSeconds:
        """How its time was spent until `at`."""
        loading_s = min(at, self.ready_at) - self.began_at
        busy_s = self.busy_s + (max(0.0, at - self.busy_since) if self.running else 0.0)
        return ContainerSeconds(busy_s, loading_s, max(0.0, at - self.began_at - loading_s - busy_s))


class ContainerSeconds:
    __slots__ = ("busy_s", "idle_s", "loading_s")

    def __init__(self, busy_s: float, loading_s: float, idle_s: float) -> None:
        self.busy_s = busy_s
        self.loading_s = loading_s
        self.idle_s = idle_s

    @property
    def total_s(self) -> float:
        return self.busy_s + self.loading_s + self.idle_s
