"""What the duties tell of their work."""

from __future__ import annotations

from typing import cast

from pilotlight_gateway.duties.batch_duty import BatchDuty, BatchDutyStatistics
from pilotlight_gateway.duties.duty_metrics import DutyGauges, DutyMetrics
from pilotlight_gateway.duties.job_sweeper import JobSweeper, SweepStatistics
from pilotlight_gateway.duties.webhook_duty import WebhookDuty, WebhookStatistics


class Duty:
    """One that tells what it was given."""

    def __init__(self, told: object) -> None:
        self.told = told

    def statistics(self) -> object:
        return self.told


async def scraped(jobs: object, webhooks: object, batches: object) -> set[str]:
    """The lines of a scrape that have values."""
    gauges = DutyGauges(
        jobs=cast("JobSweeper", Duty(jobs)),
        webhooks=cast("WebhookDuty", Duty(webhooks)),
        batches=cast("BatchDuty", Duty(batches)),
    )
    text = (await DutyMetrics(gauges).render()).decode()
    return {line for line in text.splitlines() if not line.startswith("#")}


async def test_whoever_has_the_duties_tells_of_them() -> None:
    """Jobs by state, deliveries, batches and what is left of them."""
    assert await scraped(
        SweepStatistics(queued=4, running=2, dead=3, oldest=7.5, told_again=1),
        WebhookStatistics(webhooks=2, pending=5, under_way=1),
        BatchDutyStatistics(driven=1, waiting=2, items_left=900),
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
        'pilotlight_duty_holds{duty="batches"} 1.0',
    }


async def test_whoever_has_none_says_so_and_nothing_else() -> None:
    """Another process has it, and tells."""
    assert await scraped(None, None, None) == {
        f'pilotlight_duty_holds{{duty="{name}"}} 0.0' for name in ("jobs", "webhooks", "batches")
    }
