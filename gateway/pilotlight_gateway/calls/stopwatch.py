"""The time of one call by stage."""

from __future__ import annotations

from pilotlight_core.model.messages.call_messages import Stages


class Stopwatch:
    """The stages of one call, in milliseconds.

    Only instants of this process are subtracted; the durations that the agent reports are cut to fit. So the stages
    sum to the time between the first and the last mark, over all attempts.
    """

    __slots__ = ("_last", "batch_wait", "execute", "queue", "start", "transport")

    def __init__(self, at: float) -> None:
        self._last = at
        self.queue = 0.0
        """Waiting for a container, and backoff between attempts."""
        self.start = 0.0
        """Waiting while a container started."""
        self.transport = 0.0
        """On the bus, at the agent, and in attempts that never started."""
        self.batch_wait = 0.0
        self.execute = 0.0

    def granted(self, at: float, start_ms: float) -> None:
        """The wait in the queue is over; for `start_ms` of it a container started."""
        elapsed = self._lap(at)
        start = min(start_ms, elapsed)
        self.start += start
        self.queue += elapsed - start

    def refused(self, at: float) -> None:
        """An attempt never started."""
        self.transport += self._lap(at)

    def lost(self, at: float) -> None:
        """An attempt counts as run, and no duration is known."""
        self.execute += self._lap(at)

    def ended(self, at: float, reported: Stages) -> float:
        """An attempt ended, with these durations of its agent; returns how long it has taken since its grant."""
        elapsed = self._lap(at)
        execute = min(reported.execute_ms, elapsed)
        batch_wait = min(reported.batch_wait_ms, elapsed - execute)
        self.execute += execute
        self.batch_wait += batch_wait
        self.transport += elapsed - execute - batch_wait
        return elapsed

    def stages(self, gateway_ms: float) -> dict[str, float]:
        """All stages, with `gateway_ms` before this stopwatch began."""
        return {
            "gateway": gateway_ms,
            "queue": self.queue,
            "start": self.start,
            "transport": self.transport,
            "batch_wait": self.batch_wait,
            "execute": self.execute,
        }

    def _lap(self, at: float) -> float:
        elapsed = max(0.0, at - self._last) * 1000.0
        self._last = max(at, self._last)
        return elapsed
