"""How the jobs of a gateway are, as dashboards read it."""

from __future__ import annotations

from prometheus_client.core import GaugeMetricFamily, Metric

from pilotlight_gateway.jobs.job_dispatcher import DispatcherStatistics


def job_gauges(told: DispatcherStatistics) -> list[Metric]:
    """Jobs of the functions whose home this gateway is: those that are known to wait, and those that run."""
    family = GaugeMetricFamily("pilotlight_jobs", "Durable calls at their home.", labels=("state",))
    family.add_metric(("queued",), told.known - told.running)
    family.add_metric(("running",), told.running)
    return [family]
