"""Metrics of jobs."""

from __future__ import annotations

from prometheus_client.core import GaugeMetricFamily, Metric

from pilotlight_gateway.jobs.job_dispatcher import DispatcherStatistics


def job_gauges(statistics: DispatcherStatistics) -> list[Metric]:
    """Jobs of the functions whose home this gateway is."""
    family = GaugeMetricFamily("pilotlight_jobs", "Durable calls at their home.", labels=("state",))
    family.add_metric(("queued",), statistics.known - statistics.running)
    family.add_metric(("running",), statistics.running)
    return [family]
