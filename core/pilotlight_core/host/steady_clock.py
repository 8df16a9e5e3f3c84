"""Unix seconds without the steps of a wall clock that do not last.

The wall clock of a machine is set: after it has slept, when its time server answers at last, or by a time server that
is wrong for a moment. What is decided by the hour (a warm window, people's word until an instant, the end of a run)
would then be ended and begun again within seconds. So a step is believed once it has lasted, as ntpd has it, which sets
a clock that is far off only after five minutes (its stepout threshold). Until then time goes on as the monotonic clock
does.
"""

from __future__ import annotations

import time
from collections.abc import Callable

LASTS_S = 300.0
"""So long a step has to last."""
SLIGHT_S = 1.0
"""Less is no step: it is followed at once."""


class SteadyClock:
    """Call it for unix seconds. It notices a step when it is called, so somebody has to call it now and then."""

    def __init__(
        self,
        wall: Callable[[], float] = time.time,
        clock: Callable[[], float] = time.monotonic,
        *,
        ahead_s: float = LASTS_S,
        back_s: float = LASTS_S,
    ) -> None:
        """`wall` is unix seconds, `clock` monotonic ones; so long steps ahead and back have to last."""
        self._wall = wall
        self._clock = clock
        self._ahead_s, self._back_s = ahead_s, back_s
        self._offset = wall() - clock()
        self._seen = self._offset
        """The offset that the wall clock has had since `_since`."""
        self._since = clock()

    def __call__(self) -> float:
        at = self._clock()
        offset = self._wall() - at
        if abs(offset - self._seen) > SLIGHT_S:
            self._since = at
        self._seen = offset
        step = offset - self._offset
        if abs(step) <= SLIGHT_S or at - self._since >= (self._ahead_s if step > 0 else self._back_s):
            self._offset = offset
        return at + self._offset


run_time = SteadyClock(back_s=0.0)
"""The time of a process by which runs end (`AppRecord.has_ended`).

They are renewed by the wall clock as it is, three times before they end. So if it is set back they are judged by what
it says now, and if it is set ahead only when all have been renewed since.
"""
