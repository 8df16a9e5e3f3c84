"""The process of the duties.

It is separate from the gateway, whose calls a fold would delay. Because of the leases any number of these processes may
run, and any may stop.
"""

from __future__ import annotations

from pilotlight_core.lean_libraries import structlog  # isort: skip # before what would import it whole

import asyncio
import signal
import sys
from collections.abc import Awaitable, Callable
from functools import partial
from typing import NoReturn

from pilotlight_core.bus import Bus, BusDown, bus_users, connect
from pilotlight_core.host import telemetry
from pilotlight_core.host.blobs import NoBlobStore
from pilotlight_core.host.blobs.store_names import name_of_store
from pilotlight_core.host.compiled import IS_COMPILED
from pilotlight_core.host.config import load
from pilotlight_core.host.events.bus_event_log import BusEventLog
from pilotlight_core.host.foundations import Foundation, Foundations, WrongFoundation
from pilotlight_core.host.gc_tuning import freeze
from pilotlight_core.host.metrics import measured_process
from pilotlight_core.model.errors import BadInput
from pilotlight_core.model.price_book import load_prices
from pilotlight_gateway.batches.bus_batches import BusBatches
from pilotlight_gateway.duties.batch_driver import BatchDependencies
from pilotlight_gateway.duties.batch_duty import BatchDuty
from pilotlight_gateway.duties.blob_sealer import BlobSealer
from pilotlight_gateway.duties.budget_duty import BudgetDuty
from pilotlight_gateway.duties.duty_metrics import DutyGauges
from pilotlight_gateway.duties.job_sweeper import JobSweeper
from pilotlight_gateway.duties.ledger_folder import LedgerFolder
from pilotlight_gateway.duties.log_trimmer import LogTrimmer
from pilotlight_gateway.duties.schedule_duty import ScheduleDuty, TickDependencies
from pilotlight_gateway.duties.webhook_duty import WebhookDuty
from pilotlight_gateway.jobs.bus_jobs import BusJobs
from pilotlight_gateway.jobs.job_publisher import JobPublisher
from pilotlight_gateway.leased import while_leased
from pilotlight_gateway.ledger.ledger_errors import LedgerRefused
from pilotlight_gateway.ledger.ledger_store import Ledger
from pilotlight_gateway.secrets.key_opening import open_key_pair
from pilotlight_gateway.secrets.tenant_blob_keys import PlatformBlobs
from pilotlight_gateway.settings import DutyProcessSettings
from pilotlight_gateway.supply.policy_duty import PolicyDuty
from pilotlight_gateway.traces.trace_exporter import TraceExporter, endpoint_of, headers_of
from pilotlight_gateway.webhooks.http_sender import VettedHttpSender

EXPECTED = (BusDown, BadInput, LedgerRefused, NoBlobStore, WrongFoundation, OSError)
"""Errors that end it with a line in the log."""
PAUSE = 5.0
"""Seconds until a failed duty runs again."""

log = structlog.get_logger(__name__)


async def run_forever(name: str, run: Callable[[], Awaitable[None]], pause_s: float = PAUSE) -> None:
    """Run a duty again after errors, so that they do not end the other duties."""
    while True:
        try:
            await run()
        except Exception:
            log.exception("a duty failed; it begins anew", duty=name)
        await asyncio.sleep(pause_s)


async def serve(settings: DutyProcessSettings) -> int:
    """Run the duties until SIGTERM or SIGINT. Returns the exit code: 1 if the bus is gone for good.

    Raises:
        BadInput: the price file is wrong.
        BusDown: there is no bus at the start.
        WrongFoundation, NoBlobStore: it has another blob store, ledger or key of blobs than its platform, or none.
    """
    book, name = load_prices(settings.prices), settings.name or "duties"
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    async with (
        connect(
            settings.nats_url,
            name=name,
            inbox=bus_users.duties().inbox,
            ca_file=settings.ca_file,
            makes_streams=False,
        ) as bus,
        VettedHttpSender(allowed=settings.webhook_networks, ca_file=settings.webhook_ca_file) as http_sender,
    ):
        settings.ledger_path.parent.mkdir(parents=True, exist_ok=True)
        ledger = await asyncio.to_thread(Ledger, settings.database_url, book)
        keys = open_key_pair(settings.secrets_key, settings.former_secrets_key, settings.keys_dir)
        publisher, sealing = JobPublisher(bus), PlatformBlobs(settings.blobs, bus, keys, seals=settings.encrypt_blobs)
        blobs = sealing.blobs
        region, exporter = settings.region, _exporter(settings, bus)

        async def own(_: Foundation) -> Foundation:
            return Foundation(blob_store=await name_of_store(blobs), ledger=await asyncio.to_thread(ledger.identity))

        foundations = Foundations(bus, region=region)
        ground = BatchDependencies(
            bus=bus, batches=BusBatches(bus), jobs=BusJobs(bus), blobs=blobs, publish=publisher.publish, region=region
        )
        try:
            # Before anything is folded into a ledger that is not the platform's.
            known = await foundations.check(own)
            seals_known = await sealing.check_if_made()
            async with publisher.running(), asyncio.TaskGroup() as group:
                webhooks = WebhookDuty(bus, http_sender, holder=name)
                jobs = JobSweeper(bus, blobs, region=region, holder=name)
                batches = BatchDuty(bus, ground, holder=name)
                fold = LedgerFolder(bus, ledger, holder=name)
                ticks = TickDependencies(jobs=ground.jobs, publish=publisher.publish, region=region)
                schedules = ScheduleDuty(bus, ticks, holder=name)
                budgets = BudgetDuty(bus, ledger, holder=name)
                events = BusEventLog(bus, region=region)
                duties = (fold, LogTrimmer(bus, holder=name), webhooks, jobs, batches, schedules, budgets)
                gauges = DutyGauges(jobs=jobs, webhooks=webhooks, batches=batches, fold=fold, schedules=schedules)
                sealers = (BlobSealer(bus, blobs, holder=name),) if sealing.seals else ()
                every = (*duties, *sealers)
                running = [group.create_task(run_forever(type(duty).__name__, duty.run)) for duty in every]
                policies = PolicyDuty(bus, blobs, events, settings.known_vulnerabilities)
                inspect = partial(while_leased, bus, bus.lease("duty.policies", name), policies.inspect_until_cancelled)
                running.append(group.create_task(run_forever("PolicyDuty", inspect)))
                if exporter is not None:
                    lease = bus.lease("duty.traces", name)
                    export = partial(while_leased, bus, lease, exporter.export_until_cancelled)
                    running.append(group.create_task(run_forever("TraceExporter", export)))
                if not known:
                    running.append(group.create_task(foundations.check_until_known(own)))
                if not seals_known:
                    running.append(group.create_task(sealing.check_until_made()))
                lost = group.create_task(bus.closed.wait())
                lost.add_done_callback(lambda _: stop.set())
                exported = (exporter.collect,) if exporter is not None else ()
                measured = measured_process(settings, bus, gauges.collect, events.collect, *exported)
                async with events.running(), measured:
                    freeze()
                    log.info("ready", region=region, compiled=IS_COMPILED)
                    await stop.wait()
                for task in (*running, lost):
                    task.cancel()
        finally:
            await blobs.aclose()
            if exporter is not None:
                await exporter.aclose()
            ledger.close()
        return 1 if bus.closed.is_set() else 0


def _exporter(settings: DutyProcessSettings, bus: Bus) -> TraceExporter | None:
    """What sends traces to a collector, if there is one.

    Raises:
        BadInput: its address or its headers are wrong.
    """
    if not settings.otlp_endpoint:
        return None
    endpoint, headers = endpoint_of(settings.otlp_endpoint), headers_of(settings.otlp_headers)
    return TraceExporter(bus, endpoint=endpoint, headers=headers, region=settings.region, ca_file=settings.ca_file)


def main() -> None:
    settings = load(
        DutyProcessSettings, "the duties of a region: folding usage, trimming logs, webhooks, jobs, batches, schedules"
    )
    telemetry.setup("duties")
    try:
        sys.exit(asyncio.run(serve(settings)))
    except EXPECTED as error:
        _end(error)
    except BaseExceptionGroup as group:  # of the task group in which a duty ran
        if (expected := group.subgroup(EXPECTED)) is None:
            raise
        _end(expected)


def _end(error: BaseException) -> NoReturn:
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    text = error.detail if isinstance(error, BadInput) else str(error)  # without what callers are advised
    log.error("the duties cannot run on", error=text)
    raise SystemExit(1) from None
