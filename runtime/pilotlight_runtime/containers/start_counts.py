"""How many containers of a node became ready or failed to, and how long that took."""

from __future__ import annotations

from pilotlight_core.host.metrics.histogram import Histogram
from pilotlight_core.model.messages.node_messages import ContainerState
from pilotlight_runtime.containers.container import Container
from pilotlight_runtime.guest import frames as guest

STEPS = ("manifest", "blank", "stage", "sandbox", "secrets", *guest.STEPS)
"""Of starts, in their order."""


class StartCounts:
    """`note` each container from time to time and at its end: its start counts once."""

    def __init__(self) -> None:
        self.ready = Histogram()
        """Seconds of all steps of starts that succeeded."""
        self.steps = {step: Histogram() for step in STEPS}
        """Seconds of each step of those."""
        self.failed = 0
        self.unfit = 0
        """Containers that a check has taken out of service after their start."""
        self._counted: set[str] = set()
        """Containers that are there still."""

    def note(self, container: Container) -> None:
        if container.serving is not None and container.id not in self._counted:
            self._counted.add(container.id)
            self.ready.observe(sum(container.timeline.values()) / 1000.0)
            for step, ms in container.timeline.items():
                if step in self.steps:
                    self.steps[step].observe(ms / 1000.0)
        if container.state is ContainerState.GONE:
            self.failed += container.serving is None
            self.unfit += container.serving is not None and container.serving.is_unfit
            self._counted.discard(container.id)
