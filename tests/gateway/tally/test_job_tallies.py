"""Runs of jobs are counted apart from calls whose callers wait."""

from __future__ import annotations

from pilotlight_core.model.messages.seeing.tallies import JOBS
from pilotlight_gateway.calls.call_port import CallResult
from pilotlight_gateway.calls.call_sink import FailedCall
from pilotlight_gateway.limits.call_usage import CallUsage
from pilotlight_gateway.tally.job_tallies import RunCounter, job_tallies
from pilotlight_gateway.tally.tallies import Tallies
from tests.builders.calls import prepared_call
from tests.gateway.tally.tallied_calls import WallClock, version

OF = version(p95_ms=1.0)


def failed(code: str, *, used: bool) -> FailedCall:
    usage = CallUsage()
    if used:
        usage.keep_open()
    return FailedCall(code, "acme", OF, prepared_call(version=OF, usage=usage), None, 5.0, is_client_gone=False)


def counted(runs: Tallies) -> tuple[int, int, dict[str, int], int]:
    runs.fold()
    (tallied,) = runs.each()
    assert tallied.key.arm == JOBS
    counts = tallied.counts
    assert counts.inside == 0
    return counts.arrivals, counts.ended, counts.failures, counts.gone


def test_runs_are_counted_as_they_end() -> None:
    """No service level is kept or broken by them but availability: nobody waits."""
    runs = job_tallies(WallClock())
    counter = RunCounter(runs)
    counter.call_ended(prepared_call(version=OF), CallResult(output=b""), {"queue": 900.0}, 1_000.0)
    counter.call_failed(failed("container_died", used=True))
    assert counted(runs) == (2, 1, {"container_died": 1}, 0)
    (tallied,) = runs.each()
    assert "unary" not in tallied.counts.bad


def test_a_run_that_was_taken_back_before_it_began_was_none() -> None:
    """Its job waits for a limit; one that was cancelled under way failed nobody."""
    runs = job_tallies(WallClock())
    counter = RunCounter(runs)
    counter.call_failed(failed("cancelled", used=False))
    runs.fold()
    assert not runs.each()
    counter.call_failed(failed("cancelled", used=True))
    assert counted(runs) == (1, 0, {}, 1)
