"""Jobs in the metrics."""

from __future__ import annotations

from pilotlight_gateway.jobs.job_dispatcher import DispatcherStatistics
from pilotlight_gateway.metrics.job_metrics import job_gauges


def test_jobs_are_shown_as_queued_or_running() -> None:
    """Those that run are known as well."""
    (family,) = job_gauges(DispatcherStatistics(flows=1, known=10, waiting=4, running=3))

    assert {sample.labels["state"]: sample.value for sample in family.samples} == {"queued": 7, "running": 3}
