"""Where the time of one call went.

Only instants of this process are subtracted; what the agent reports are durations of its own clock, cut to fit. So
the stages always sum to the time between the first and the last mark, even over several attempts.
"""

from __future__ import annotations

from pilotlight_core.model.messages.agent_messages import Stages


class Stopwatch:
    """The stages of one call, in milliseconds: queue, start, transport, batch_wait, execute."""

    __slots__ = ("_last", "batch_wait", "execute", "queue", "start", "transport")

    def __init__(self, at: float) -> None:
        self._last = at
        self.queue = 0.0
        """Waiting for a container, backoff between attempts included."""
        self.start = 0.0
        """Waiting while a container was being started."""
        self.transport = 0.0
        """On the bus, in an agent's hands, and in attempts that came to nothing before they started."""
        self.batch_wait = 0.0
        self.execute = 0.0

    def granted(self, at: float, start_ms: float) -> None:
        """The wait in the queue is over; for `start_ms` of it no container was ready."""
        elapsed = self._lap(at)
        start = min(start_ms, elapsed)
        self.start += start
        self.queue += elapsed - start

    def refused(self, at: float) -> None:
        """An attempt came to nothing."""
        self.transport += self._lap(at)

    def lost(self, at: float) -> None:
        """An attempt counts as run, and nothing is known of it."""
        self.execute += self._lap(at)

    def ended(self, at: float, reported: Stages) -> None:
        """An attempt ended, and its agent says what it did."""
        elapsed = self._lap(at)
        execute = min(reported.execute_ms, elapsed)
        batch_wait = min(reported.batch_wait_ms, elapsed - execute)
        self.execute += execute
        self.batch_wait += batch_wait
        self.transport += elapsed - execute - batch_wait

    def stages(self, gateway_ms: float) -> dict[str, float]:
        """Everything so far, with what came before this stopwatch."""
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
