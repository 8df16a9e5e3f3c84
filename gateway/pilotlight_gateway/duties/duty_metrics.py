"""Metrics of the duties. A duty that another process has shows only `pilotlight_duty_holds`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from pilotlight_core.host.metrics.metric_families import counter_by, gauge
from pilotlight_gateway.duties.batch_duty import BatchDuty
from pilotlight_gateway.duties.job_sweeper import JobSweeper
from pilotlight_gateway.duties.ledger_folder import LedgerFolder
from pilotlight_gateway.duties.schedule_duty import ScheduleDuty
from pilotlight_gateway.duties.webhook_duty import WebhookDuty


@dataclass(frozen=True, kw_only=True)
class DutyGauges:
    """The metrics of the duties' statistics."""

    jobs: JobSweeper
    webhooks: WebhookDuty
    batches: BatchDuty
    fold: LedgerFolder
    schedules: ScheduleDuty

    def collect(self) -> Iterator[Metric]:
        holds = GaugeMetricFamily("pilotlight_duty_holds", "Whether this process has the duty.", labels=("duty",))
        shown = (
            ("jobs", self._jobs()),
            ("webhooks", self._webhooks()),
            ("batches", self._batches()),
            ("fold", self._fold()),
            ("schedules", self._schedules()),
        )
        for name, metrics in shown:
            holds.add_metric((name,), bool(metrics))
            yield from metrics
        yield holds

    def _jobs(self) -> list[Metric]:
        statistics = self.jobs.statistics()
        if statistics is None:
            return []
        records = GaugeMetricFamily("pilotlight_job_records", "Durable calls, of all tenants.", labels=("state",))
        for state, count in (("queued", statistics.queued), ("running", statistics.running), ("dead", statistics.dead)):
            records.add_metric((state,), count)
        return [
            records,
            gauge(
                "pilotlight_job_oldest_seconds", "How long the longest waiting job could have begun.", statistics.oldest
            ),
            CounterMetricFamily("pilotlight_jobs_told_again", "Jobs that no message named.", statistics.told_again),
        ]

    def _webhooks(self) -> list[Metric]:
        statistics = self.webhooks.statistics()
        if statistics is None:
            return []
        deliveries = GaugeMetricFamily(
            "pilotlight_webhook_deliveries", "Deliveries that are not over.", labels=("state",)
        )
        deliveries.add_metric(("waiting",), statistics.pending - statistics.under_way)
        deliveries.add_metric(("under_way",), statistics.under_way)
        return [gauge("pilotlight_webhooks", "Webhooks, of all tenants.", statistics.webhooks), deliveries]

    def _batches(self) -> list[Metric]:
        statistics = self.batches.statistics()
        if statistics is None:
            return []
        batches = GaugeMetricFamily("pilotlight_batches", "Batches that are not over.", labels=("state",))
        batches.add_metric(("driven",), statistics.driven)
        batches.add_metric(("waiting",), statistics.waiting)
        return [
            batches,
            gauge("pilotlight_batch_items_left", "Their items that have not ended.", statistics.items_left),
        ]

    def _schedules(self) -> list[Metric]:
        statistics = self.schedules.statistics()
        if statistics is None:
            return []
        return [
            gauge("pilotlight_scheduled_functions", "Functions and methods with a schedule.", statistics.methods),
            counter_by("pilotlight_ticks", "Ticks of schedules whose job was stored.", "when", statistics.stored),
        ]

    def _fold(self) -> list[Metric]:
        statistics = self.fold.statistics()
        if statistics is None:
            return []
        return [
            counter_by("pilotlight_usage_events", "Usage events folded.", "result", statistics.results),
            gauge(
                "pilotlight_usage_unread",
                "Messages of usage that wait for a release that reads them.",
                statistics.unread,
            ),
            gauge(
                "pilotlight_usage_unread_seconds",
                "How long the oldest message of usage has waited for a release that reads it.",
                statistics.unread_seconds,
            ),
            gauge("pilotlight_usage_stream_filled", "The filled part of the stream of usage.", statistics.filled),
            gauge(
                "pilotlight_usage_behind_seconds",
                "How long the usage that is folded now has been in the stream.",
                statistics.behind_seconds,
            ),
            gauge(
                "pilotlight_ledger_differs",
                "1 if the ledger's sums of the last days are not those of its lines.",
                int(statistics.differs),
            ),
            gauge(
                "pilotlight_ledger_verified_seconds",
                "How long ago they were recomputed, or this process began to fold.",
                statistics.verified_seconds,
            ),
        ]
