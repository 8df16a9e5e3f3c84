"""A call without a task: whoever waits for it is told its result."""

from __future__ import annotations

from collections.abc import Mapping

from pilotlight_core.model.errors import PilotlightError
from pilotlight_gateway.calls.call_port import CallResult, CallWaiter
from pilotlight_gateway.calls.in_flight_call import InFlightCall
from pilotlight_gateway.calls.origin import Origin
from pilotlight_gateway.calls.origins import Origins
from pilotlight_gateway.calls.prepared_call import PreparedCall


class WaitedCall(InFlightCall):
    """A call whose result a waiter is told at once."""

    def __init__(self, call: PreparedCall, shard: int, origin: Origin, origins: Origins, waiter: CallWaiter) -> None:
        super().__init__(call, shard, origin)
        self.origins = origins
        self.waiter: CallWaiter | None = waiter
        """None: nobody waits any more."""

    def report_stage(self, name: str, ms: float, detail: Mapping[str, object]) -> None:
        pass  # only streams have stages

    def relay_chunk(self, seq: int, data: bytes) -> None:
        pass

    def finish(self, result: CallResult) -> None:
        waiter, self.waiter = self.waiter, None
        if waiter is not None:
            waiter.finished(result)

    def fail(self, error: PilotlightError) -> None:
        self.error = error.with_traceback(None)
        waiter, self.waiter = self.waiter, None
        if waiter is not None:
            waiter.failed(error)

    def end(self) -> None:
        """See `BegunCall`."""
        self.waiter = None
        self.origins.end(self)
