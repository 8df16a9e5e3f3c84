"""A gateway from start to end: what it stands on is opened in order, and closed in the other."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from socket import socket

import structlog

from pilotlight_core.bus import Bus, StreamLimits, bus_users, connect
from pilotlight_core.bus.lease_cleanup import instance_of
from pilotlight_core.host.blobs import open_blobs
from pilotlight_core.host.gc_tuning import freeze
from pilotlight_core.host.registry import Registry
from pilotlight_core.host.signing import Signer
from pilotlight_core.model.ids import token
from pilotlight_core.model.limits import load_tiers
from pilotlight_core.model.records.jobs import RunnerIdentity
from pilotlight_gateway.batches.batch_service import BatchService
from pilotlight_gateway.batches.bus_batches import BusBatches
from pilotlight_gateway.call_drivers import CallDrivers
from pilotlight_gateway.calls.byte_budget import ByteBudget
from pilotlight_gateway.calls.call_service import CallService
from pilotlight_gateway.calls.large_bodies import LargeBodies
from pilotlight_gateway.cluster.driver_port import BusDriverPort
from pilotlight_gateway.cluster.identity_guard import NameTaken
from pilotlight_gateway.cluster.shard_table import ShardTable
from pilotlight_gateway.cluster.shards import Shards, gateway_lease
from pilotlight_gateway.deploys.function_logs import BusLogs
from pilotlight_gateway.fleet.fleet_inventory import FleetPlacements
from pilotlight_gateway.fleet.fleet_view import FleetView
from pilotlight_gateway.fleet.placement_explainer import BusExplainer
from pilotlight_gateway.home.home import QueueLimits
from pilotlight_gateway.http.app import create_app
from pilotlight_gateway.http.endpoints.health import bus_gauges
from pilotlight_gateway.http.protocol.http_services import BODY_BYTES_HELD, HttpServices
from pilotlight_gateway.http.server import QuietServer, listen, make_server, url_of
from pilotlight_gateway.idempotency.bus_records import BusKeyRecords
from pilotlight_gateway.idempotency.key_record import CallOwner
from pilotlight_gateway.idempotency.keyed_calls import Idempotency
from pilotlight_gateway.jobs.gateway_jobs import GatewayJobs
from pilotlight_gateway.ledger.ledger_store import Ledger
from pilotlight_gateway.ledger.prices import PriceBook, load_prices
from pilotlight_gateway.limits.limit_policy import LimitPolicies
from pilotlight_gateway.limits.limiter import HomeLimiter
from pilotlight_gateway.metrics.job_metrics import job_gauges
from pilotlight_gateway.metrics.key_metrics import key_counts
from pilotlight_gateway.metrics.limit_metrics import limit_gauges
from pilotlight_gateway.settings import ServeSettings
from pilotlight_gateway.tenancy.bootstrap import bootstrap
from pilotlight_gateway.tenancy.key_authenticator import KeyAuthenticator
from pilotlight_gateway.webhooks.bus_webhooks import BusWebhooks

ABORT_SECONDS = 2.0
"""How long aborted calls have to tell their callers."""
LOOPBACK = "127.0.0.1"

log = structlog.get_logger(__name__)


class BusLost(Exception):
    """The connection to the bus is gone for good: the process must be started anew."""


@dataclass(frozen=True, kw_only=True)
class Gateway:
    """The parts of a running gateway that its end has to go through."""

    services: HttpServices
    public: QuietServer
    internal: QuietServer
    superseded: asyncio.Future[NameTaken]

    async def shut_down(self, drain_seconds: float) -> None:
        """End without cutting anybody off who can be served in time. Every step has a bound."""
        # 1. Take no more calls; /readyz says so.
        # 2. Let those inside finish.
        if not await self.services.gate.drain(drain_seconds):
            # 3. End the rest; their callers hear `draining`.
            aborted = await self.services.gate.abort(ABORT_SECONDS)
            log.warning("calls were ended by the shutdown", calls=aborted)
        # 4. Close the listeners and idle connections (the server itself waits 2 s for the last bytes).
        self.public.stop()
        self.internal.stop()


async def serve(settings: ServeSettings) -> None:
    """Run a gateway until SIGTERM or SIGINT.

    Raises:
        BadInput: if the price file or the tiers file is wrong.
        BusDown: if there is no bus at the start. BusLost: if it is gone for good.
        NameTaken: if another gateway has its name.
    """
    book, tiers = load_prices(settings.prices), load_tiers(settings.tiers)
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    name = settings.name or "gateway"
    with listen(settings.host, settings.port) as public, listen(LOOPBACK, settings.internal_port) as internal:
        async with (
            connect(
                settings.nats_url,
                name=name,
                inbox=bus_users.gateway().inbox,
                limits=StreamLimits(replicas=settings.replicas),
            ) as bus,
            Registry(bus, tiers) as registry,
            _gateway(settings, book, name, bus, registry, url_of(internal)) as gateway,
        ):
            if settings.client_file is not None:
                copy = settings.state_dir / "client.json"
                await bootstrap(registry, settings.client_file, url_of(public), copy)
            await _run(gateway, bus, (public, internal), stop, settings.drain_seconds)
            lost, superseded = bus.closed.is_set(), gateway.superseded
    if superseded.done():
        raise superseded.result()
    if lost:
        raise BusLost("The connection to the bus is gone for good.")


async def _run(
    gateway: Gateway, bus: Bus, sockets: tuple[socket, socket], stop: asyncio.Event, drain_seconds: float
) -> None:
    async with asyncio.TaskGroup() as group:
        watch = group.create_task(_stop_when_lost(bus, stop))
        gateway.superseded.add_done_callback(lambda _: stop.set())
        group.create_task(gateway.public.serve(sockets=[sockets[0]]))
        group.create_task(gateway.internal.serve(sockets=[sockets[1]]))
        freeze()
        log.info("gateway serves", url=url_of(sockets[0]))
        await stop.wait()
        log.info("gateway shuts down", inside=len(gateway.services.gate))
        at_once = bus.closed.is_set() or gateway.superseded.done()
        await gateway.shut_down(0.0 if at_once else drain_seconds)
        # 5. Calls, registry and bus are closed by those who opened them.
        watch.cancel()


async def _stop_when_lost(bus: Bus, stop: asyncio.Event) -> None:
    await bus.closed.wait()
    stop.set()


@asynccontextmanager
async def _gateway(
    settings: ServeSettings, book: PriceBook, name: str, bus: Bus, registry: Registry, internal_url: str
) -> AsyncIterator[Gateway]:
    budget = ByteBudget(limit=BODY_BYTES_HELD)
    bodies = LargeBodies(url=internal_url, budget=budget)
    instance = instance_of(name, settings.launch or token(8))
    lease = gateway_lease(bus, region=settings.region, name=name, instance=instance)
    table, port, fleet = ShardTable(instance, lease), BusDriverPort(bus), FleetView()
    drivers = CallDrivers(
        port, table, fleet, bodies, region=settings.region, gateway=instance, limits=QueueLimits()
    )  # fmt: skip
    calls = CallService(
        bus, drivers.origins, table, fleet, drivers.homes.statistics, region=settings.region, budget=budget
    )  # fmt: skip
    limiter = HomeLimiter(bus, table, LimitPolicies(registry.limits), region=settings.region, gateway=instance)
    registry.on_change.append(limiter.record_changed)
    blobs = open_blobs(settings.blobs)
    jobs = GatewayJobs(
        bus, calls, table, blobs, region=settings.region, keep_s=settings.job_seconds, share_bytes=settings.job_bytes
    )
    settings.ledger_path.parent.mkdir(parents=True, exist_ok=True)
    ledger = await asyncio.to_thread(Ledger, settings.database_url, book)
    services = HttpServices(
        calls=calls,
        registry=registry,
        blobs=blobs,
        signer=Signer.load_or_create(settings.keys_dir),
        authenticator=KeyAuthenticator(registry),
        ledger=ledger,
        logs=BusLogs(bus=bus, region=settings.region),
        budget=budget,
        bus_connected=lambda: bus.connected,
        placements=FleetPlacements(fleet),
        explainer=BusExplainer(bus, region=settings.region),
        limits=limiter,
        webhooks=BusWebhooks(bus),
        webhook_networks=settings.webhook_networks,
        jobs=jobs.desk,
        batches=BatchService(
            BusBatches(bus), jobs.desk, region=settings.region, blobs=blobs, keep_s=settings.job_seconds
        ),
        idempotency=Idempotency(
            BusKeyRecords(bus, lambda owner: owner.instance in table.others()),
            owner=CallOwner(name=name, instance=instance),
            ttl=settings.idempotency_seconds,
        ),
    )
    services.metrics.gauges.append(lambda: bus_gauges(bus.statistics()))
    services.metrics.gauges.append(lambda: key_counts(services.idempotency.statistics()))
    services.metrics.gauges.append(lambda: limit_gauges(limiter.statistics()))
    dispatcher = jobs.dispatcher(services, RunnerIdentity(name, instance))
    shards = Shards(
        bus,
        table,
        lease,
        name=name,
        callers=drivers,
        participants={"calls": drivers.homes, "limits": limiter.driver, "jobs": dispatcher},
    )
    try:
        # Limits around calls: a gateway that hands its shards over still tells the next homes what runs here.
        async with limiter.running(), port.driving(drivers), shards.running(), jobs.running(dispatcher):
            services.metrics.gauges.append(lambda: job_gauges(dispatcher.statistics()))
            yield Gateway(
                services=services,
                public=make_server(create_app(services)),
                internal=make_server(bodies),
                superseded=shards.superseded,
            )
    finally:
        await blobs.aclose()
        ledger.close()
