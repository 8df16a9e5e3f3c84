"""What a simulation counts of one function."""

from __future__ import annotations

from pilotlight_autoscaler.simulator.runs.simulated_container import SimulatedContainer
from pilotlight_autoscaler.simulator.runs.wait_histogram import WaitHistogram

LEVELS_S = (0.5, 5.0, 30.0)
"""Service levels: within how many seconds a call should have its turn."""


SUMS = (
    "busy_gpu_s", "calls", "cold", "dollars", "drains", "idle_gpu_s", "late", "loading_gpu_s", "refused", "starts",
    "parked_gib_s", "unparks", "unused",
)  # fmt: skip
"""What is one number."""


class FunctionSums:
    __slots__ = (*SUMS, "met", "waits")

    def __init__(self) -> None:
        self.calls = 0
        """That came."""
        self.cold = 0
        """Those that found no container that was ready, nor one that was parked and could serve again."""
        self.refused = self.late = 0
        """Those that found a full queue, and those whose time was over in it."""
        self.waits = WaitHistogram()
        """Of those that had their turn."""
        self.met = [0] * len(LEVELS_S)
        self.starts = self.drains = 0
        self.unparks = 0
        """Parked containers that served again."""
        self.parked_gib_s = 0.0
        """GiB of host memory, for seconds."""
        self.unused = 0
        """Containers that went and never had a call."""
        self.busy_gpu_s = self.loading_gpu_s = self.idle_gpu_s = 0.0
        self.dollars = 0.0

    def observe_wait(self, wait_s: float, calls: int = 1) -> None:
        """So many calls had their turn after so long."""
        self.waits.observe(wait_s, calls)
        met = self.met
        for place, level_s in enumerate(LEVELS_S):
            if wait_s <= level_s:
                met[place] += calls

    def add_container(self, container: SimulatedContainer, at: float) -> None:
        """Count the time of a container until `at`."""
        spent = container.spent(at)
        self.busy_gpu_s += spent.busy_s * container.gpus
        self.loading_gpu_s += spent.loading_s * container.gpus
        self.idle_gpu_s += spent.idle_s * container.gpus
        self.dollars += spent.total_s / 3600.0 * container.dollars_per_hour

    def add(self, other: FunctionSums) -> None:
        """Count what the other counts too."""
        for name in SUMS:
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.met = [mine + theirs for mine, theirs in zip(self.met, other.met, strict=True)]
        self.waits.add(other.waits)
