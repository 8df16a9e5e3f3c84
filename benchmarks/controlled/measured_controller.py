"""The product's controller process, which also writes down how long each of its passes took.

`python -m benchmarks.controlled.measured_controller RESULT OPTIONS…` is `python -m pilotlight_autoscaler OPTIONS…`.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Any

import msgspec

from pilotlight_autoscaler import __main__ as process
from pilotlight_autoscaler.controller import Controller


class MeasuredPass(msgspec.Struct, frozen=True, array_like=True):
    """One pass, on the machine's monotonic clock."""

    began: float
    is_whole: bool
    wall_ms: float
    cpu_ms: float
    """Of this thread: what others on the machine do is not in it."""


passes: list[MeasuredPass] = []


class MeasuredController(Controller):
    _elsewhere_s: float = 0.0
    """Processor time of what was done while passes over all paused."""

    async def _pause(self) -> None:
        cpu = time.thread_time()
        await super()._pause()
        self._elsewhere_s += time.thread_time() - cpu

    async def _pass(self, only: Any) -> None:
        began, cpu = time.monotonic(), self._used_s(only)
        try:
            await super()._pass(only)
        finally:
            wall_ms, cpu_ms = (time.monotonic() - began) * 1e3, (self._used_s(only) - cpu) * 1e3
            passes.append(MeasuredPass(began=began, is_whole=only is None, wall_ms=wall_ms, cpu_ms=cpu_ms))

    def _used_s(self, only: Any) -> float:
        return time.thread_time() - (self._elsewhere_s if only is None else 0.0)


def main() -> None:
    """Be the controller until SIGTERM, then write the passes."""
    result = Path(sys.argv.pop(1))
    setattr(process, "Controller", MeasuredController)  # noqa: B010 - the product's, with a stopwatch
    try:
        process.main()
    finally:
        result.write_bytes(msgspec.msgpack.encode(passes))


if __name__ == "__main__":
    main()
