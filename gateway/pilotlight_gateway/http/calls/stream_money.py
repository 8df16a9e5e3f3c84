"""The money of a stream: reserved in steps, as long as it is sent."""

from __future__ import annotations

import asyncio
from typing import Protocol

from pilotlight_core.model.errors import BudgetExhausted, PilotlightError
from pilotlight_gateway.calls.prepared_call import PreparedCall
from pilotlight_gateway.http.calls.call_limits import CallLimits
from pilotlight_gateway.limits.limit_admission import Admission

STEP_S = 10.0
"""Of a stream's time whose money is reserved at once."""
LEAD_S = 3.0
"""So long before a step is over the next one is reserved: a home that dies is succeeded by then."""
RETRY_S = 0.25


class RevocableStream(Protocol):
    """The request that a stream answers."""

    def revoke(self, error: PilotlightError) -> None:
        """End it, for this reason."""
        ...


class StreamSteps:
    """Reserves a stream's steps from `start` to `stop`; without money for the next one it ends the stream."""

    def __init__(
        self,
        limits: CallLimits,
        admission: Admission,
        call: PreparedCall,
        stream: RevocableStream,
        *,
        step_s: float = STEP_S,
        lead_s: float = LEAD_S,
    ) -> None:
        """The first step is reserved."""
        self._step_s = step_s
        self._lead_s = lead_s
        self._limits = limits
        self._admission = admission
        self._call = call
        self._stream = stream
        self._total_s = limits.longest_s(call)
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        self._task = asyncio.get_running_loop().create_task(self._keep())

    def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()

    async def _keep(self) -> None:
        clock = asyncio.get_running_loop().time
        began, reserved_s = clock(), self._step_s
        while reserved_s < self._total_s:
            await asyncio.sleep(max(0.0, began + reserved_s - self._lead_s - clock()))
            step_s = min(self._step_s, self._total_s - reserved_s)
            wrong = await self._reserve(step_s)
            if wrong is None:
                reserved_s += step_s
            elif isinstance(wrong, BudgetExhausted) or clock() - began >= reserved_s:
                wrong.more |= {"call": self._call.call_id, "receipt": f"/v1/calls/{self._call.call_id}/receipt"}
                self._stream.revoke(wrong)
                return
            else:
                await asyncio.sleep(RETRY_S)

    async def _reserve(self, seconds: float) -> PilotlightError | None:
        try:
            await self._limits.reserve(self._admission, self._call, seconds)
        except PilotlightError as error:
            return error
        return None
