"""What the containers of a node are promised of its host, by the agent's own sum.

The controller promises no more than a node reports; this holds it to that, whatever it believes.
"""

from __future__ import annotations

from pilotlight_core.model.messages.node_messages import HostShare
from pilotlight_core.model.spec import FunctionSpec
from pilotlight_runtime.containers.blanks.resource_limits import memory_text


class HostBudget:
    def __init__(self, host: HostShare) -> None:
        self.host = host
        """What there is to promise."""
        self._promised: dict[str, HostShare] = {}

    def refusal(self, share: HostShare) -> str:
        """Why a container cannot be promised so much more; "" if it can."""
        if share.memory < 0 or share.memory > self.host.memory - sum(held.memory for held in self._promised.values()):
            return "memory_taken"
        cpu = self.host.cpu_millis - sum(held.cpu_millis for held in self._promised.values())
        return "cpu_taken" if share.cpu_millis < 0 or share.cpu_millis > cpu else ""

    def take(self, container: str, share: HostShare) -> None:
        """Promise what `refusal` has not refused."""
        self._promised[container] = share

    def release(self, container: str) -> None:
        """The container is gone."""
        del self._promised[container]

    def check_integrity(self, containers: set[str]) -> None:
        """Raise AssertionError if more is promised than there is, or to others than there are."""
        if set(self._promised) != containers:
            raise AssertionError(f"promised to {set(self._promised)}, there are {containers}")
        if why := self.refusal(HostShare()):
            raise AssertionError(f"more is promised than there is: {why}")


def broken_promise(spec: FunctionSpec, share: HostShare) -> str:
    """What a container needs beyond what it was promised; "" if that is enough."""
    if spec.memory > share.memory:
        return f"it needs {memory_text(spec.memory)} of host memory and was promised {memory_text(share.memory)}"
    if spec.cpu_millis > share.cpu_millis:
        return f"it needs {spec.cpu_millis / 1000:g} cores and was promised {share.cpu_millis / 1000:g}"
    return ""
