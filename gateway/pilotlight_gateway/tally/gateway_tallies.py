"""How this gateway itself was: the part of the time in which its one thread worked, how late its timers were, and what
went over the bus, by the minute of a day (a quarter of a megabyte).
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterable

from pilotlight_core.model.ids import token
from pilotlight_core.model.messages.seeing.tallies import GatewayTally
from pilotlight_gateway.tally.tally_ring import DAY_NS, MINUTE_NS

MINUTES = DAY_NS // MINUTE_NS
NS_PER_S = 1_000_000_000
PROCESS_DIGITS = 8

Traffic = Callable[[], tuple[int, int]]
"""Bytes so far, in and out."""


class GatewayTallies:
    """Of one gateway."""

    def __init__(
        self,
        name: str,
        traffic: Traffic = lambda: (0, 0),
        *,
        wall: Callable[[], int] = time.time_ns,
        worked: Callable[[], float] = time.thread_time,
    ) -> None:
        """`worked`: seconds of processor time of this thread."""
        self._name, self._process = name, token()[:PROCESS_DIGITS]
        self._traffic = traffic
        self._wall = wall
        self._worked = worked
        self._parts: deque[GatewayTally] = deque(maxlen=MINUTES)
        self._calls = self._timers = 0
        self._late_s = self._latest_s = 0.0
        self._begin(wall())

    def note_timer(self, late_s: float, calls: int) -> None:
        """A timer came so late; `calls` have ended so far."""
        at_ns = self._wall()
        if at_ns // MINUTE_NS != self._since_ns // MINUTE_NS:
            self._parts.append(self._part(at_ns))
            self._begin(at_ns)
        self._calls = calls
        self._timers += 1
        self._late_s += late_s
        self._latest_s = max(self._latest_s, late_s)

    def window(self, since_ns: int) -> GatewayTally:
        """Since an instant, as far as it is known."""
        now = self._part(self._wall())
        return joined([*(part for part in self._parts if part.until_ns > since_ns), now])

    def _begin(self, at_ns: int) -> None:
        self._since_ns = at_ns
        self._worked_before = self._worked()
        self._traffic_before = self._traffic()
        self._timers = 0
        self._late_s = self._latest_s = 0.0
        self._calls_before = self._calls

    def _part(self, at_ns: int) -> GatewayTally:
        passed_s = max(1, at_ns - self._since_ns) / NS_PER_S
        (in_before, out_before), (now_in, now_out) = self._traffic_before, self._traffic()
        return GatewayTally(
            gateway=self._name,
            process=self._process,
            since_ns=self._since_ns,
            until_ns=at_ns,
            loop_share=max(0.0, self._worked() - self._worked_before) / passed_s,
            late_ms=self._latest_s * 1000.0,
            late_mean_ms=self._late_s * 1000.0 / self._timers if self._timers else 0.0,
            link_in=max(0, now_in - in_before),
            link_out=max(0, now_out - out_before),
            calls=self._calls - self._calls_before,
        )


def joined(parts: Iterable[GatewayTally]) -> GatewayTally:
    """Parts of one gateway as one: of shares the mean over the time, of bytes the sum."""
    parts = list(parts)
    spans = [max(1, part.until_ns - part.since_ns) for part in parts]
    total = sum(spans)
    return GatewayTally(
        gateway=parts[-1].gateway,
        process=parts[-1].process,
        since_ns=parts[0].since_ns,
        until_ns=parts[-1].until_ns,
        loop_share=sum(part.loop_share * span for part, span in zip(parts, spans, strict=True)) / total,
        late_ms=max(part.late_ms for part in parts),
        late_mean_ms=sum(part.late_mean_ms * span for part, span in zip(parts, spans, strict=True)) / total,
        link_in=sum(part.link_in for part in parts),
        link_out=sum(part.link_out for part in parts),
        calls=sum(part.calls for part in parts),
    )
