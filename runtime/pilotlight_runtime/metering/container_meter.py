"""What one container uses: its slice's meter on the node's boot clock, and how long its batches took."""

from __future__ import annotations

from collections.abc import Callable

from pilotlight_core.model.messages.agent_messages import Outcome, Spent
from pilotlight_core.model.messages.usage import LeaseState
from pilotlight_runtime.metering.meter import SliceOwner
from pilotlight_runtime.metering.usage_metering import Meter, boot_ns
from pilotlight_runtime.metering.work_log import WorkKey, WorkLog


class ContainerMeter:
    """Meters a container's slice for its `owner`; until that is known the time is the operator's."""

    def __init__(self, meter: Meter, work: WorkLog, key: WorkKey, *, clock: Callable[[], int] = boot_ns) -> None:
        self.owner = SliceOwner()
        self._meter = meter
        self._work = work
        self._key = key
        self._clock = clock

    def enter(self, state: LeaseState) -> None:
        """The slice is in `state` from now on; its `owner` pays for LOADING, IDLE, BUSY and DRAINING."""
        self._meter.transition(state, self._clock(), self.owner)

    def release(self) -> None:
        """The slice is free from now on."""
        self._meter.transition(LeaseState.FREE, self._clock())

    def call_started(self, call_id: str, tenant: str) -> None:
        """The container works on a call of `tenant` from now on."""
        self._meter.call_started(call_id, tenant, self._clock())

    def call_ended(self, call_id: str, outcome: Outcome, batch_size: int) -> Spent:
        """The container has ended a call; returns what it used."""
        return self._meter.call_ended(call_id, outcome.value, self._clock(), batch_size)

    def record_batch(self, size: int, ms: float) -> None:
        """Record that `size` calls ran at once, ended well and took `ms` milliseconds."""
        self._work.add(self._key, size, ms)
