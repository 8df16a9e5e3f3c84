"""Where calls end: the one object that every place tells of it, which counts for metrics, tallies and traces.

Each call is recorded once, by whoever is first: an answer that its client did not read, or an error that was raised
again further out, changes nothing any more.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from pilotlight_core.model.errors import PilotlightError
from pilotlight_core.model.spec import VersionRecord
from pilotlight_gateway.calls.call_port import CallResult
from pilotlight_gateway.calls.call_sink import CallSink, FailedCall, platforms_words, report_ended, report_failed
from pilotlight_gateway.calls.prepared_call import PreparedCall
from pilotlight_gateway.metrics.gateway_metrics import GatewayMetrics
from pilotlight_gateway.streams.stream_pace import GAPS_HELD, StreamPace
from pilotlight_gateway.tally.tallies import Tallies
from pilotlight_gateway.tenancy.auth import Principal

GONE = "cancelled"
"""The code of calls whose client hung up: nobody is told of it."""


class RecordedRequest(Protocol):
    """A request, as whoever counts its failure sees it."""

    @property
    def principal(self) -> Principal: ...
    @property
    def arrived_at(self) -> float: ...
    @property
    def called(self) -> VersionRecord | None: ...
    @property
    def call(self) -> PreparedCall | None: ...


class CallRecorder:
    """Counts calls that end. `clock`: monotonic seconds."""

    def __init__(
        self,
        metrics: GatewayMetrics,
        clock: Callable[[], float],
        tallies: Tallies | None = None,
        sinks: tuple[CallSink, ...] = (),
    ) -> None:
        self.metrics = metrics
        self.tallies = Tallies() if tallies is None else tallies
        self._clock = clock
        self.sinks = sinks

    def call_arrived(self, call: PreparedCall) -> None:
        """A request has come to a call; its end is recorded, once."""
        self.tallies.call_arrived(call.version)

    def call_withdrawn(self, call: PreparedCall) -> None:
        """A call does not run here: the answer of an earlier one is its answer, or it is read once more."""
        if not call.is_recorded:
            call.is_recorded = True
            self.tallies.call_arrived(call.version, -1)

    def call_ended(self, call: PreparedCall, result: CallResult, stages: dict[str, float], total_ms: float) -> None:
        """A call has ended well. `result` need not have its output; `stages` has `respond` too."""
        if call.is_recorded:
            return
        call.is_recorded = True
        metrics = self.metrics
        metrics.call_ended(stages, total_ms, result.cold_start)
        slo, pace = call.version.spec.slo, call.pace
        if slo.p95_ms is not None:
            metrics.note_level("unary", good=total_ms <= slo.p95_ms)
        if pace is not None:
            if slo.ttft_ms is not None:
                metrics.note_level("first_chunk", good=pace.first_chunk_ms <= slo.ttft_ms)
            if slo.itl_ms is not None and pace.seen:
                metrics.note_level("gap", good=pace.keeps_gaps)
        self.tallies.call_ended(call, result, stages, total_ms)
        report_ended(self.sinks, call, result, stages, total_ms)

    def request_ended(self, call: PreparedCall, result: CallResult) -> None:
        """As `call_ended`, at this instant: what no other stage has is `respond`."""
        total_ms, stages = (self._clock() - call.arrived_at) * 1000.0, dict(result.stages)
        stages["respond"] = max(0.0, total_ms - sum(stages.values()))
        self.call_ended(call, result, stages, total_ms)

    def call_failed(self, error: PilotlightError, call: PreparedCall) -> None:
        """A call has failed."""
        self._fail(error, call.tenant, call.version, call, call.arrived_at)

    def request_failed(self, error: PilotlightError, request: RecordedRequest) -> None:
        """A request has failed that is, or was to be, a call."""
        call = request.call
        if call is not None:
            self.call_failed(error, call)
        else:
            self._fail(error, request.principal.tenant, request.called, None, request.arrived_at)

    def client_gone(self, request: RecordedRequest) -> None:
        """The client of a request hung up; whether it was a call, and its end was counted, is found here."""
        call = request.call
        if call is not None and not call.is_recorded:
            call.is_recorded = True
            total_ms = (self._clock() - call.arrived_at) * 1000.0
            self._notify(FailedCall(GONE, call.tenant, call.version, call, None, total_ms, is_client_gone=True))

    def chunks(self, call: PreparedCall, count: int) -> None:
        """So many chunks of a stream have come."""
        at, pace = self._clock(), call.pace
        if pace is None:
            waited_s = at - call.arrived_at
            call.pace = StreamPace(waited_s * 1000.0, at, call.version.spec.slo.itl_ms)
            self.metrics.first_chunk.observe(waited_s)
            return
        pace.note(at, count)
        if len(pace.gaps) >= GAPS_HELD:
            gaps, pace.gaps = pace.gaps, []
            self.tallies.add_gaps(call, gaps)

    def _fail(
        self,
        error: PilotlightError,
        tenant: str,
        called: VersionRecord | None,
        call: PreparedCall | None,
        arrived_at: float,
    ) -> None:
        # One error may be the end of many calls, such as all those of a key that is revoked: of a call it is its own
        # record that counts, and the error's that of a request which has come to none.
        if error.is_recorded if call is None else call.is_recorded:
            return
        error.is_recorded = True
        if call is not None:
            call.is_recorded = True
        course = error.course if isinstance(error.course, CallResult) else None
        total_ms, code = (self._clock() - arrived_at) * 1000.0, error.wire_code
        self.metrics.call_failed(code, total_ms)
        detail = platforms_words(error, call)
        self._notify(FailedCall(code, tenant, called, call, course, total_ms, is_client_gone=False, detail=detail))

    def _notify(self, failed: FailedCall) -> None:
        self.tallies.call_failed(failed)
        report_failed(self.sinks, failed)
