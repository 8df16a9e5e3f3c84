"""Each call is recorded once, with what is known of it, wherever it ends."""

from __future__ import annotations

from typing import Any

import pytest

from pilotlight_core.model.errors import ContainerDied, FunctionRaised, TooMuch, Unauthenticated, Unavailable
from pilotlight_core.model.spec import SLO, VersionRecord
from pilotlight_gateway.calls.call_port import CallResult
from pilotlight_gateway.calls.call_sink import FailedCall
from pilotlight_gateway.calls.prepared_call import PreparedCall
from pilotlight_gateway.calls.redaction import redact_for_caller
from pilotlight_gateway.metrics.call_recorder import CallRecorder
from pilotlight_gateway.metrics.gateway_metrics import GatewayMetrics
from pilotlight_gateway.tenancy.auth import Principal
from tests.builders.calls import prepared_call
from tests.builders.specs import function_spec, method, version_record


class Told:
    """A `CallSink` that remembers."""

    def __init__(self) -> None:
        self.ended: list[tuple[str, dict[str, float], float]] = []
        self.failed: list[FailedCall] = []

    def call_ended(self, call: PreparedCall, result: CallResult, stages: dict[str, float], total_ms: float) -> None:
        self.ended.append((call.call_id, stages, total_ms))

    def call_failed(self, failed: FailedCall) -> None:
        self.failed.append(failed)


class Asked:
    """A request, as the recorder sees it."""

    def __init__(self, call: PreparedCall | None = None, called: VersionRecord | None = None) -> None:
        self.principal = Principal(tenant="acme", key_id="k", scopes=frozenset())
        self.arrived_at = 1.0
        self.called = called
        self.call = call


@pytest.fixture
def told() -> Told:
    return Told()


@pytest.fixture
def recorder(told: Told) -> CallRecorder:
    return CallRecorder(GatewayMetrics(), lambda: 3.0, sinks=(told,))


def leveled(**slo: Any) -> PreparedCall:
    spec = function_spec("fn", method(), slo=SLO(**slo))
    return prepared_call("a", version=version_record(spec, app="app"), arrived_at=2.0)


def test_a_call_that_ended_well_is_counted_once(recorder: CallRecorder, told: Told) -> None:
    """Whoever comes later, with a failure or a client that is gone, changes nothing."""
    call = prepared_call("a")
    recorder.call_arrived(call)
    recorder.call_ended(call, CallResult(output=b"x"), {"execute": 5.0}, 6.0)
    recorder.call_ended(call, CallResult(output=b"x"), {"execute": 5.0}, 6.0)
    recorder.call_failed(Unavailable("It is full."), call)
    recorder.client_gone(Asked(call))
    assert recorder.metrics.calls["ok", ""] == 1
    assert recorder.metrics.calls["error", "no_capacity"] == 0
    assert told.ended == [("a", {"execute": 5.0}, 6.0)]
    assert told.failed == []
    recorder.tallies.fold()
    assert recorder.tallies.calls == 1


def test_an_end_that_nobody_timed_is_timed_here(recorder: CallRecorder, told: Told) -> None:
    """What no stage has is `respond`."""
    recorder.request_ended(prepared_call("a", arrived_at=2.0), CallResult(output=b"", stages={"execute": 900.0}))
    (_, stages, total_ms) = told.ended[0]
    assert (stages, total_ms) == ({"execute": 900.0, "respond": 100.0}, 1_000.0)


def test_a_failure_knows_how_far_its_call_came(recorder: CallRecorder, told: Told) -> None:
    """Also after it was redacted for the caller of a shared function; it is timed."""
    call = prepared_call("a", tenant="other", arrived_at=2.5)
    error = FunctionRaised("ValueError: no")
    error.course = CallResult(output=b"", stages={"execute": 400.0}, attempts=2)
    recorder.request_failed(redact_for_caller(error, call), Asked(call))
    (failed,) = told.failed
    assert (failed.code, failed.tenant, failed.total_ms) == ("function_raised", "other", 500.0)
    assert failed.course is not None
    assert (failed.course.stages, failed.course.attempts) == ({"execute": 400.0}, 2)
    assert recorder.metrics.failed_duration.sum == 0.5


def test_a_refusal_that_is_raised_through_several_layers_counts_once(recorder: CallRecorder, told: Told) -> None:
    """Before there is a call: with the version that was asked for, if that is known."""
    version, error = leveled().version, TooMuch("Slow down.")
    for _ in range(2):
        recorder.request_failed(error, Asked(called=version))
    assert recorder.metrics.calls["error", "rate_limited"] == 1
    assert [(each.called, each.call, each.total_ms) for each in told.failed] == [(version, None, 2_000.0)]


def test_a_client_that_is_gone_is_no_failure_of_anybody(recorder: CallRecorder, told: Told) -> None:
    call = prepared_call("a")
    recorder.client_gone(Asked(call))
    recorder.client_gone(Asked(call))
    recorder.client_gone(Asked())
    assert [each.is_client_gone for each in told.failed] == [True]
    assert sum(recorder.metrics.calls.values()) == 0


def test_calls_count_against_their_functions_own_levels(recorder: CallRecorder) -> None:
    """Those that it has; what is nobody's fault is neither good nor bad."""
    for total_ms in (40.0, 60.0):
        recorder.call_ended(leveled(p95_ms=50.0), CallResult(output=b""), {}, total_ms)
    recorder.call_ended(leveled(), CallResult(output=b""), {}, 9_000.0)
    recorder.call_failed(Unavailable("It is full."), leveled(p95_ms=50.0))
    recorder.call_failed(TooMuch("Slow down."), leveled(p95_ms=50.0))
    levels = recorder.metrics.levels
    assert (levels["unary", True], levels["unary", False], levels["availability", False]) == (1, 1, 1)
    (shown,) = [family for family in recorder.metrics.collect() if family.name == "pilotlight_slo_calls"]
    found = {(each.labels["slo"], each.labels["good"]): each.value for each in shown.samples}
    assert (found["availability", "true"], found["availability", "false"]) == (3, 1)
    assert len(found) == 8


def test_a_stream_is_timed_chunk_by_chunk(told: Told) -> None:
    """Its first chunk, and its gaps against its level."""
    at = [2.0]
    recorder = CallRecorder(GatewayMetrics(), lambda: at[0], sinks=(told,))
    call = leveled(ttft_ms=100.0, itl_ms=50.0)
    for after in (0.08, 0.02, 0.2):
        at[0] += after
        recorder.chunks(call, 1)
    assert call.pace is not None
    assert round(call.pace.first_chunk_ms) == 80
    recorder.call_ended(call, CallResult(output=b""), {}, 300.0)
    assert (recorder.metrics.levels["first_chunk", True], recorder.metrics.levels["gap", False]) == (1, 1)
    assert recorder.metrics.first_chunk.sum == pytest.approx(0.08)


def test_the_gaps_of_a_long_stream_are_counted_while_it_goes_on() -> None:
    at = [2.0]
    recorder = CallRecorder(GatewayMetrics(), lambda: at[0])
    call = leveled()
    for _ in range(300):
        at[0] += 0.01
        recorder.chunks(call, 1)
    recorder.tallies.fold()
    assert sum(recorder.tallies.platform.gaps.counts) == 256
    assert call.pace is not None
    assert call.pace.seen == 299


def test_what_does_not_run_here_is_no_call() -> None:
    recorder = CallRecorder(GatewayMetrics(), lambda: 3.0)
    call = prepared_call("a")
    recorder.call_arrived(call)
    recorder.call_withdrawn(call)
    recorder.call_withdrawn(call)
    recorder.tallies.fold()
    assert [each.counts.arrivals for each in recorder.tallies.each()] == [0]


def test_one_error_that_ends_many_calls_counts_for_each(recorder: CallRecorder, told: Told) -> None:
    """Such as that of a key which is revoked: none of its calls stays inside for ever."""
    error, calls = Unauthenticated("It was revoked."), [prepared_call(name) for name in ("a", "b", "c")]
    for call in calls:
        recorder.call_arrived(call)
    for call in (*calls, *calls):
        recorder.request_failed(error, Asked(call))
    recorder.tallies.fold()
    assert recorder.metrics.calls["error", "unauthenticated"] == len(told.failed) == 3
    assert [each.counts.inside for each in recorder.tallies.each()] == [0]


@pytest.mark.parametrize(("caller", "is_told"), [("acme", True), ("other", False)])
def test_why_a_container_died_is_told_to_its_owner_alone(
    recorder: CallRecorder, told: Told, caller: str, is_told: bool
) -> None:
    """What a nested call raises is read by its owner's code, and what is kept of it by whoever pays."""
    call = prepared_call("a", tenant=caller)
    recorder.request_failed(ContainerDied("It died: the owner's words."), Asked(call))
    assert ("the owner's words" in told.failed[0].detail) is is_told
