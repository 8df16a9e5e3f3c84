"""A gateway from start to end: opens its parts in order, and closes them in reverse."""

from __future__ import annotations

import asyncio
import signal
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import structlog

from pilotlight_core.bus import Bus, StoreRefused, StreamLimits, bus_users, connect
from pilotlight_core.bus.lease_cleanup import instance_of
from pilotlight_core.host.blobs import BlobStore
from pilotlight_core.host.blobs.store_names import name_of_store
from pilotlight_core.host.compiled import IS_COMPILED
from pilotlight_core.host.events.bus_event_log import BusEventLog
from pilotlight_core.host.foundations import (
    MEND,
    Foundation,
    Foundations,
    WrongFoundation,
    read_adopted,
)
from pilotlight_core.host.gc_tuning import freeze
from pilotlight_core.host.key_set_records import KeySets
from pilotlight_core.host.key_sets import newest_set
from pilotlight_core.host.metrics import measured_process
from pilotlight_core.host.price_records import follow_prices, write_prices
from pilotlight_core.host.registry import Registry
from pilotlight_core.host.signing import BadSignature, NoKey
from pilotlight_core.host.tenancy_move import move_tenancy
from pilotlight_core.model.ids import token
from pilotlight_core.model.limits import load_tiers
from pilotlight_core.model.price_book import PriceBook, load_prices
from pilotlight_core.model.records.jobs import RunnerIdentity
from pilotlight_gateway.audit.bus_audit_log import BusAuditLog
from pilotlight_gateway.bodies.body_codec import BodyCodec
from pilotlight_gateway.bodies.byte_budget import ByteBudget
from pilotlight_gateway.bodies.worker_pool import BodyWorkers
from pilotlight_gateway.call_counting import CallCounting
from pilotlight_gateway.calls.large_bodies import LargeBodies
from pilotlight_gateway.deploys.blob_links import BlobLinks, blob_link_answers
from pilotlight_gateway.deploys.ended_runs import watch_ended_runs
from pilotlight_gateway.deploys.function_logs import BusLogs
from pilotlight_gateway.deploys.line_owners import BoundLineOwners
from pilotlight_gateway.deploys.package_locker import BusLocker
from pilotlight_gateway.events.event_reader import BusEvents
from pilotlight_gateway.fallbacks.fallback_calls import FallbackCalls
from pilotlight_gateway.fallbacks.fallback_finder import Fallbacks, covered_by
from pilotlight_gateway.fleet.node_storage import storage_answers
from pilotlight_gateway.fleet.placement_explainer import BusExplainer
from pilotlight_gateway.front_wiring import GrpcFront
from pilotlight_gateway.gateway_erasure import GatewayErasure
from pilotlight_gateway.gateway_objects import (
    follow_splits,
    make_batches,
    make_call_prices,
    make_calls,
    make_idempotency,
    make_job_calls,
    make_jobs,
    make_limits,
    make_load_exchange,
    make_nested,
    make_placements,
    make_readiness,
    make_shards,
    metric_sources,
)
from pilotlight_gateway.gateway_rollouts import GatewayRollouts
from pilotlight_gateway.gateway_secrets import GatewaySecrets
from pilotlight_gateway.http.protocol.http_exchange import OpenRequests
from pilotlight_gateway.http_wiring import BODY_BYTES_HELD, HttpParts, wire_http, wire_models, wire_nested
from pilotlight_gateway.idempotency.key_record import CallOwner
from pilotlight_gateway.jobs.job_permit import JobPermits
from pilotlight_gateway.ledger.ledger_reader import LedgerReader
from pilotlight_gateway.limits.cost_estimates import Estimates
from pilotlight_gateway.limits.tenant_slots import follower_slots, upload_slots
from pilotlight_gateway.listeners import (
    Listener,
    body_server,
    client_connections,
    client_server,
    grpc_address,
    open_listeners,
)
from pilotlight_gateway.metrics.certificate_metrics import certificates_of
from pilotlight_gateway.metrics.gateway_metrics import GatewayMetrics
from pilotlight_gateway.metrics.load_exchange import LoadBook, MeasuredGateway
from pilotlight_gateway.nodes.node_identities import BusAddress, joining_terms, node_identities
from pilotlight_gateway.nodes.node_issuer import load_issuer
from pilotlight_gateway.oidc.issuers import Issuers, open_issuers
from pilotlight_gateway.operator_key import load_key_set
from pilotlight_gateway.own_foundation import FoundationAsk, own_foundation
from pilotlight_gateway.principal_watch import PrincipalWatch
from pilotlight_gateway.running_gateway import Gateway
from pilotlight_gateway.schemas.schema_validators import Validators
from pilotlight_gateway.schemas.version_schemas import VersionSchemas
from pilotlight_gateway.settings import ServeSettings
from pilotlight_gateway.supply.base_inventories import BusInventories
from pilotlight_gateway.supply.gateway_supply import open_supply
from pilotlight_gateway.supply.package_questions import PackageQuestions
from pilotlight_gateway.supply.signing_keys import SigningKeys
from pilotlight_gateway.tenancy.auth import KeyAuthenticator
from pilotlight_gateway.tenancy.bootstrap import bootstrap
from pilotlight_gateway.tenancy.login_sessions import LoginSessions
from pilotlight_gateway.webhooks.bus_webhooks import BusWebhooks

log = structlog.get_logger(__name__)


class BusLost(Exception):
    """The connection to the bus is gone for good: the process must be restarted."""


async def serve(settings: ServeSettings) -> None:
    """Run a gateway until SIGTERM or SIGINT.

    Raises:
        BadInput: the price file, the tiers file or the file of keys for nodes is wrong.
        BusDown: there is no bus at the start. BusLost: it is gone for good.
        NameTaken: another gateway has its name.
    """
    book, tiers = load_prices(settings.prices), load_tiers(settings.tiers)
    issuer = load_issuer(settings.issuer) if settings.issuer else None
    address = BusAddress(settings.nats_url, settings.ca_file)
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    name = settings.name or "gateway"
    with open_listeners(settings) as (public, internal):
        async with (
            _connected(settings, name) as bus,
            Registry(bus, tiers) as registry,
            _priced(settings, registry, bus, book),
            node_identities(bus, registry, issuer, address, region=settings.region, name=name),
            open_issuers(registry, settings.issuer_ca_file) as issuers,
            _gateway(settings, book, name, bus, registry, issuers, public, internal) as gateway,
        ):
            if settings.client_file is not None:
                copy = settings.state_dir / "client.json"
                authority, own_url = (
                    settings.authority if public.tls is not None else "",
                    settings.client_url(public.url),
                )
                await bootstrap(registry, settings.client_file, own_url, copy, authority, once=settings.bootstrap_once)
            await _run(gateway, bus, (public, internal), stop, settings)
            lost, superseded = bus.closed.is_set(), gateway.superseded
    if superseded.done():
        raise superseded.result()
    if lost:
        raise BusLost("The connection to the bus is gone for good.")


@asynccontextmanager
async def _priced(settings: ServeSettings, registry: Registry, bus: Bus, book: PriceBook) -> AsyncIterator[None]:
    """Write the prices of this gateway's file to the registry, and follow those that are there."""
    if settings.prices is not None:
        try:
            await write_prices(registry, settings.prices)
        except StoreRefused as error:  # full of what tenants deployed: the file holds in this process
            log.error("the prices could not be written to the registry", error=str(error))
    following = bus.spawn(follow_prices(registry, book))
    try:
        yield
    finally:
        await bus.end(following)


@asynccontextmanager
async def _connected(settings: ServeSettings, name: str) -> AsyncIterator[Bus]:
    limits = StreamLimits(replicas=settings.replicas)
    async with connect(
        settings.nats_url, name=name, inbox=bus_users.gateway().inbox, ca_file=settings.ca_file, limits=limits
    ) as bus:
        await move_tenancy(bus)
        yield bus


async def _run(
    gateway: Gateway, bus: Bus, listeners: tuple[Listener, Listener], stop: asyncio.Event, settings: ServeSettings
) -> None:
    async with gateway.grpc.running(), asyncio.TaskGroup() as group:
        watches = [
            group.create_task(_stop_when_lost(bus, stop)),
            group.create_task(gateway.watch.run()),
            group.create_task(watch_ended_runs(gateway.registry)),
            *(group.create_task(each.tls.watch()) for each in listeners if each.tls is not None),
        ]
        gateway.superseded.add_done_callback(lambda _: stop.set())
        group.create_task(gateway.public.serve(sockets=[listeners[0].socket]))
        group.create_task(gateway.internal.serve(sockets=[listeners[1].socket]))
        freeze()
        log.info("gateway serves", url=listeners[0].url, compiled=IS_COMPILED)
        await stop.wait()
        log.info("gateway shuts down", inside=len(gateway.gate))
        await gateway.give_notice(settings.notice_seconds, bus.closed)
        at_once = bus.closed.is_set() or gateway.superseded.done()
        await gateway.shut_down(0.0 if at_once else settings.drain_seconds)
        # 5. Calls, registry and bus are closed by those who opened them.
        for watch in watches:
            watch.cancel()


async def _stop_when_lost(bus: Bus, stop: asyncio.Event) -> None:
    await bus.closed.wait()
    stop.set()


async def _join(settings: ServeSettings, bus: Bus, blobs: BlobStore) -> SigningKeys:
    """Register what this gateway has in common with its platform; what signs with its key.

    Raises:
        WrongFoundation: it has another key, blob store or ledger. NoBlobStore: it has none. LedgerRefused: it cannot
            be opened.
    """
    settings.ledger_path.parent.mkdir(parents=True, exist_ok=True)
    adopted, foundations = read_adopted(settings.adopt), Foundations(bus, region=settings.region)
    known, sets = await foundations.read() or Foundation(), KeySets(bus, region=settings.region)
    adopts_key = "manifest_key" in adopted
    try:
        offered = await asyncio.to_thread(load_key_set, settings.key_set)
        key_set = newest_set(await sets.read(), offered, adopt=adopts_key)
        found = await own_foundation(
            FoundationAsk(
                database_url=settings.database_url,
                keys_dir=str(settings.keys_dir),
                may_create_key=key_set is not None or not known.manifest_key or adopts_key,
                key_set=key_set,
                at=time.time(),
            )
        )
        if offered is not None:
            await sets.offer(offered, adopt=adopts_key)
    except (NoKey, BadSignature) as error:
        raise WrongFoundation(_no_key(error.detail, known.manifest_key)) from None
    own = Foundation(
        manifest_key="" if key_set is not None else found.manifest_key,
        blob_store=await name_of_store(blobs, create=not known.blob_store or "blob_store" in adopted),
        ledger=found.ledger,
    )
    await foundations.register(own, adopted)
    return SigningKeys(settings.keys_dir, found.manifest_key, sets)


def _no_key(detail: str, registered: str) -> str:
    what, mend = MEND["manifest_key"]
    return f"{detail} {what} of the platform is {registered}: {mend}." if registered else detail


@asynccontextmanager
async def _gateway(
    settings: ServeSettings,
    book: PriceBook,
    name: str,
    bus: Bus,
    registry: Registry,
    issuers: Issuers,
    public: Listener,
    internal: Listener,
) -> AsyncIterator[Gateway]:
    budget, instance = ByteBudget(limit=BODY_BYTES_HELD), instance_of(name, settings.launch or token(8))
    bodies = LargeBodies(url=settings.internal_url or internal.url, budget=budget)
    calls = make_calls(settings, bus, bodies, name, instance, settings.url_for_clients(public.url))
    ledger, calls.fleet.record_of = LedgerReader(settings.database_url, book), registry.node_nowait
    limiter, keeper = make_limits(settings, bus, calls, registry, instance, ledger)
    prices, faults = make_call_prices(settings, book, calls), calls.drivers.guard.faults
    secrets = GatewaySecrets(settings, bus, registry, calls)
    erasure = GatewayErasure(bus, registry, calls.bindings, secrets, region=settings.region)
    blobs, validators, costs, workers = secrets.sealing.blobs, Validators(), Estimates(), BodyWorkers()
    codec, schemas = BodyCodec(validators, workers, budget), VersionSchemas(blobs)
    counting = CallCounting(bus, calls, GatewayMetrics(), settings.trace_ratio, region=settings.region, name=name)
    tracing, metrics = counting.tracing, counting.metrics
    job_calls = make_job_calls(calls, registry, schemas, codec, budget, tracing.sampler, counting.run_sinks)
    signer, permits = await _join(settings, bus, blobs), JobPermits(limits=limiter, costs=costs, prices=prices)
    jobs = make_jobs(settings, bus, calls, blobs, job_calls, permits, RunnerIdentity(name, instance))
    shards, readiness = make_shards(calls, limiter, jobs), make_readiness(bus, registry, calls.service)
    idempotency = make_idempotency(settings, bus, calls.table, CallOwner(name=name, instance=instance))
    follow_splits(registry, calls)
    authenticator = KeyAuthenticator(registry, issuers.tokens, LoginSessions(registry))
    loads, connections, requests = LoadBook(), client_connections(settings), OpenRequests()
    fallbacks = Fallbacks(registry, time.monotonic, covered_by(limiter.policy, prices))
    measured = MeasuredGateway(name=name, process=instance, region=settings.region)
    exchange = make_load_exchange(bus, loads, measured, budget, readiness, calls)
    event_log = BusEventLog(bus, region=settings.region)
    rollouts = GatewayRollouts(settings, bus, calls, event_log, name=instance)
    own = metric_sources(calls, idempotency, limiter, jobs, readiness, budget, connections, fallbacks, rollouts.collect)
    shown = certificates_of(api=public.tls, bodies=internal.tls)
    questions = PackageQuestions(bus, region=settings.region, gateway=calls.table.instance)
    locker, packages = BusLocker(questions, calls.fleet, registry), BusInventories(questions, calls.fleet, registry)
    supply = open_supply(bus, registry, blobs, signer, settings.known_vulnerabilities, packages, settings.region)
    parts = HttpParts(
        access_log=settings.access_log, audit=BusAuditLog(bus, region=settings.region), authenticator=authenticator,
        batches=make_batches(settings, bus, jobs, blobs, schemas, validators), webhooks=BusWebhooks(bus),
        blobs=blobs, budget=budget, calls=FallbackCalls(calls.service, fallbacks.instead_of, time.monotonic),
        codec=codec, costs=costs, eraser=erasure.eraser, events=BusEvents(bus, settings.region),
        explainer=BusExplainer(bus, region=settings.region), stopper=secrets.stopper, streams=calls.streams,
        terms=joining_terms(settings, settings.node_bus_url, takes_nodes=settings.issuer is not None),
        followers=follower_slots(), idempotency=idempotency, issuers=issuers, jobs=jobs.service, ledger=ledger,
        limiter=limiter, loads=loads, locker=locker, recorder=counting.recorder, tallies=counting.desk,
        logs=BusLogs(bus=bus, region=settings.region, owners=BoundLineOwners(calls.bindings, ledger), faults=faults),
        dashboard_url=settings.dashboard_url, networks=settings.webhook_networks, prices=prices, tracing=tracing,
        uploads=upload_slots(), vault=secrets.vault, tranches=keeper.read, all_tranches=keeper.read_all,
        proxies=settings.connection_bounds.exempt, readiness=readiness, registry=registry, requests=requests,
        placements=make_placements(calls, book, registry, settings), rollouts=rollouts.parts, schemas=schemas,
        split_counts=rollouts.split_counts, supply=supply,
    )  # fmt: skip
    try:
        # Limits around calls: a gateway that hands its shards over still tells the next homes what runs here.
        async with (
            measured_process(settings, bus, counting.collect, shown, event_log.collect, *own) as watch,
            exchange.running(watch, metrics.request_count),
            workers.running(),
            keeper.running(),
            limiter,
            calls.running(),
            counting.running(),
            _node_answers(bus, BlobLinks(blobs, registry, calls.bindings), settings.region),
            secrets.running(),
            questions.running(),
            erasure.running(),
            make_nested(bus, calls, wire_nested(parts, authenticator.why_ended), bodies, settings.region).running(),
            event_log.running(),
            counting.telling(registry, event_log, parts.events, parts.webhooks),
            rollouts.running(parts, registry),
            shards.running(),
            jobs.running(),
        ):
            yield Gateway(
                gate=readiness.gate,
                jobs=jobs.service,
                registry=registry,
                watch=PrincipalWatch(requests, calls.service, authenticator, registry),
                public=client_server(wire_http(parts), connections, public, settings),
                internal=body_server(bodies, internal, calls.door),
                grpc=GrpcFront(parts, wire_models(parts), grpc_address(settings)),
                superseded=shards.superseded,
            )
    finally:
        await blobs.aclose()
        ledger.close()


@asynccontextmanager
async def _node_answers(bus: Bus, links: BlobLinks, region: str) -> AsyncIterator[None]:
    """Answer what nodes ask for files, and for storage, until the block ends."""
    async with blob_link_answers(bus, links, region=region).running(), storage_answers(bus, region=region).running():
        yield
