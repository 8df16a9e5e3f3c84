"""What the duties tell of their work."""

from __future__ import annotations

from typing import cast

from pilotlight_core.host.metrics import ProcessMetrics
from pilotlight_gateway.duties.batch_duty import BatchDuty, BatchDutyStatistics
from pilotlight_gateway.duties.duty_metrics import DutyGauges
from pilotlight_gateway.duties.job_sweeper import JobSweeper, SweepStatistics
from pilotlight_gateway.duties.ledger_folder import FoldStatistics, LedgerFolder
from pilotlight_gateway.duties.schedule_duty import ScheduleDuty, ScheduleDutyStatistics
from pilotlight_gateway.duties.webhook_duty import WebhookDuty, WebhookStatistics


class Duty:
    """One that tells what it was given."""

    def __init__(self, told: object) -> None:
        self.told = told

    def statistics(self) -> object:
        return self.told


def scraped(jobs: object, webhooks: object, batches: object, fold: object, schedules: object) -> set[str]:
    """The lines of a scrape that have values."""
    gauges = DutyGauges(
        jobs=cast("JobSweeper", Duty(jobs)),
        webhooks=cast("WebhookDuty", Duty(webhooks)),
        batches=cast("BatchDuty", Duty(batches)),
        fold=cast("LedgerFolder", Duty(fold)),
        schedules=cast("ScheduleDuty", Duty(schedules)),
    )
    text = ProcessMetrics(gauges.collect).exposition().decode()
    return {line for line in text.splitlines() if not line.startswith("#")}


def test_whoever_has_the_duties_tells_of_them() -> None:
    """Jobs by state, deliveries, batches and what is left of them."""
    assert scraped(
        SweepStatistics(queued=4, running=2, dead=3, oldest=7.5, told_again=1),
        WebhookStatistics(webhooks=2, pending=5, under_way=1),
        BatchDutyStatistics(driven=1, waiting=2, items_left=900),
        FoldStatistics(
            results={"new": 3, "repeated": 0},
            unread=2,
            unread_seconds=60.0,
            filled=0.25,
            behind_seconds=1.5,
            verified_seconds=90.0,
        ),
        ScheduleDutyStatistics(methods=7, stored={"ahead": 5, "late": 1}),
    ) == {
        'pilotlight_job_records{state="queued"} 4.0',
        'pilotlight_job_records{state="running"} 2.0',
        'pilotlight_job_records{state="dead"} 3.0',
        "pilotlight_job_oldest_seconds 7.5",
        "pilotlight_jobs_told_again_total 1.0",
        "pilotlight_webhooks 2.0",
        'pilotlight_webhook_deliveries{state="waiting"} 4.0',
        'pilotlight_webhook_deliveries{state="under_way"} 1.0',
        'pilotlight_batches{state="driven"} 1.0',
        'pilotlight_batches{state="waiting"} 2.0',
        "pilotlight_batch_items_left 900.0",
        'pilotlight_duty_holds{duty="jobs"} 1.0',
        'pilotlight_duty_holds{duty="webhooks"} 1.0',
        'pilotlight_usage_events_total{result="new"} 3.0',
        'pilotlight_usage_events_total{result="repeated"} 0.0',
        "pilotlight_usage_unread 2.0",
        "pilotlight_usage_unread_seconds 60.0",
        "pilotlight_usage_stream_filled 0.25",
        "pilotlight_usage_behind_seconds 1.5",
        "pilotlight_ledger_differs 0.0",
        "pilotlight_ledger_verified_seconds 90.0",
        'pilotlight_duty_holds{duty="batches"} 1.0',
        'pilotlight_duty_holds{duty="fold"} 1.0',
        "pilotlight_scheduled_functions 7.0",
        'pilotlight_ticks_total{when="ahead"} 5.0',
        'pilotlight_ticks_total{when="late"} 1.0',
        'pilotlight_duty_holds{duty="schedules"} 1.0',
    }


def test_whoever_has_none_says_so_and_nothing_else() -> None:
    """Another process has it, and tells."""
    assert scraped(None, None, None, None, None) == {
        f'pilotlight_duty_holds{{duty="{name}"}} 0.0' for name in ("jobs", "webhooks", "batches", "fold", "schedules")
    }
