"""What is slow of a function that names no service level: longer than 99 of 100 of its calls have taken lately."""

from __future__ import annotations

import time
from collections.abc import Callable

from pilotlight_gateway.calls.prepared_call import PreparedCall
from pilotlight_gateway.tally.sketch import Sketch, count_of, quantile_of
from pilotlight_gateway.tally.tallies import Tallies
from pilotlight_gateway.traces.trace_keeper import UnusualMs

LATELY_NS = 2 * 60 * 10**9
LEAST_CALLS = 200
"""Of fewer nobody knows what is unusual."""
QUANTILE = 0.99


def unusual_times(tallies: Tallies, wall_ns: Callable[[], int] = time.time_ns) -> UnusualMs:
    """What says it by the tallies of this gateway; a keeper asks it of a version about once a minute."""

    def unusual_ms(call: PreparedCall) -> float | None:
        whose = next((each for each in tallies.each() if each.key.version == call.version.id), None)
        if whose is None:
            return None
        seen = Sketch()
        for part in tallies.parts_of(whose, wall_ns() - LATELY_NS):
            seen.merge(part.durations)
        counts = seen.value()
        return quantile_of(counts, QUANTILE) if count_of(counts) >= LEAST_CALLS else None

    return unusual_ms
