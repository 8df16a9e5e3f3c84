"""What this gateway counts of the runs of jobs, apart from calls whose callers wait: theirs is another latency.

They have tallies of their own, whose keys and bytes take nothing from those of callers: at most 128 functions with
versions, 5 MB of minutes that go on and 8 MB of sealed parts.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from pilotlight_core.model.messages.seeing.tallies import JOBS
from pilotlight_gateway.calls.call_port import CallResult
from pilotlight_gateway.calls.call_sink import FailedCall
from pilotlight_gateway.calls.prepared_call import PreparedCall
from pilotlight_gateway.tally.tallies import Tallies

CANCELLED = "cancelled"
JOB_KEYS = 128
JOB_BUCKETS = 50_000
JOB_BYTES = 8_000_000


def job_tallies(wall: Callable[[], int] = time.time_ns) -> Tallies:
    """Those of the runs of one gateway. `wall`: unix nanoseconds."""
    return Tallies(wall, arm=JOBS, keys=JOB_KEYS, live_buckets=JOB_BUCKETS, most_sealed=JOB_BYTES)


class RunCounter:
    """Counts runs as they end: a `CallSink`."""

    def __init__(self, runs: Tallies) -> None:
        self._runs = runs

    def call_ended(self, call: PreparedCall, result: CallResult, stages: dict[str, float], total_ms: float) -> None:
        """A run has ended well."""
        self._runs.call_arrived(call.version)
        self._runs.call_ended(call, result, stages, total_ms)

    def call_failed(self, failed: FailedCall) -> None:
        """A run has failed. One that was taken back before it began was none: its job waits for a limit, or for another
        gateway; one that was cancelled under way failed nobody.
        """
        call = failed.call
        if call is None:
            return
        if failed.code == CANCELLED:
            if call.usage is None or not call.usage.is_begun:
                return
            failed = failed._replace(is_client_gone=True)
        self._runs.call_arrived(call.version)
        self._runs.call_failed(failed)
