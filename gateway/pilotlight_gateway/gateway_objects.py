"""The objects of a gateway, which `serving` puts together."""

from __future__ import annotations

import time

from pilotlight_core.bus import Bus
from pilotlight_core.bus.bus_tls import is_in_clear
from pilotlight_core.host.blobs import BlobStore
from pilotlight_core.host.metrics.metric_families import MetricSource
from pilotlight_core.host.registry import Registry
from pilotlight_core.links import LinkFolder
from pilotlight_core.model.money.budgets import BudgetsRecord
from pilotlight_core.model.price_book import PriceBook
from pilotlight_core.model.records.jobs import RunnerIdentity
from pilotlight_core.model.subjects import IDEMPOTENCY_BUCKET
from pilotlight_core.model.tracing.trace_sampling import TraceSampler
from pilotlight_gateway.batches.batch_service import BatchService
from pilotlight_gateway.batches.bus_batches import BusBatches
from pilotlight_gateway.bodies.body_codec import BodyCodec
from pilotlight_gateway.bodies.byte_budget import ByteBudget
from pilotlight_gateway.budgets.budget_home import BudgetHome
from pilotlight_gateway.budgets.call_prices import CallPrices, parts_of
from pilotlight_gateway.budgets.prepaid_budgets import PrepaidBudgets
from pilotlight_gateway.budgets.tranche_keeper import TrancheKeeper
from pilotlight_gateway.calls.call_service import CallService
from pilotlight_gateway.calls.call_sink import CallSink
from pilotlight_gateway.calls.large_bodies import LargeBodies
from pilotlight_gateway.cluster.shard_table import ShardTable
from pilotlight_gateway.cluster.shards import Shards
from pilotlight_gateway.fallbacks.fallback_finder import Fallbacks
from pilotlight_gateway.fleet.fleet_inventory import FleetPlacements
from pilotlight_gateway.gateway_calls import GatewayCalls, LinkTerms
from pilotlight_gateway.home.home import QueueLimits
from pilotlight_gateway.http.protocol.drain_gate import DrainGate
from pilotlight_gateway.http.protocol.readiness import Readiness
from pilotlight_gateway.idempotency.bus_key_records import BusKeyRecords
from pilotlight_gateway.idempotency.key_record import CallOwner
from pilotlight_gateway.idempotency.keyed_calls import KEY_BYTES, Idempotency
from pilotlight_gateway.internal_address import link_url
from pilotlight_gateway.jobs.gateway_jobs import GatewayJobs, JobStorage
from pilotlight_gateway.jobs.job_calls import JobCalls
from pilotlight_gateway.jobs.job_permit import JobPermits
from pilotlight_gateway.ledger.ledger_reader import LedgerReader
from pilotlight_gateway.limits.connections import ConnectionBook
from pilotlight_gateway.limits.limit_policy import LimitPolicies
from pilotlight_gateway.limits.limiter import HomeLimiter
from pilotlight_gateway.metrics.call_metrics import call_gauges, fallback_counts
from pilotlight_gateway.metrics.connection_metrics import connection_counts
from pilotlight_gateway.metrics.job_metrics import job_gauges
from pilotlight_gateway.metrics.key_metrics import key_counts
from pilotlight_gateway.metrics.limit_metrics import limit_gauges
from pilotlight_gateway.metrics.link_metrics import link_metrics
from pilotlight_gateway.metrics.load_exchange import LoadBook, LoadExchange, MeasuredGateway
from pilotlight_gateway.metrics.node_metrics import clock_gauges, node_fault_counts
from pilotlight_gateway.nested.nested_calls import NestedCalls
from pilotlight_gateway.nested.nested_exchange import NestedExchange
from pilotlight_gateway.schemas.schema_validators import Validators
from pilotlight_gateway.schemas.version_schemas import VersionSchemas
from pilotlight_gateway.settings import ServeSettings
from pilotlight_gateway.storage_quota.bus_quota import BusQuotaRecords
from pilotlight_gateway.storage_quota.quota_lease import StorageQuota
from pilotlight_placement.asks.options import Prices
from pilotlight_placement.hardware.machine_nodes import pool_nodes


def make_batches(
    settings: ServeSettings,
    bus: Bus,
    jobs: GatewayJobs,
    blobs: BlobStore,
    schemas: VersionSchemas,
    validators: Validators,
) -> BatchService:
    return BatchService(
        BusBatches(bus),
        jobs.service,
        region=settings.region,
        blobs=blobs,
        schemas=schemas,
        validators=validators,
        keep_s=settings.job_seconds,
    )


def make_idempotency(settings: ServeSettings, bus: Bus, table: ShardTable, owner: CallOwner) -> Idempotency:
    keep_s = settings.idempotency_seconds
    records = BusQuotaRecords(bus.kv(IDEMPOTENCY_BUCKET), stored="idempotency keys")
    return Idempotency(
        BusKeyRecords(bus, lambda owner: owner.instance in table.others()),
        StorageQuota(records, limit=KEY_BYTES, life=keep_s, wall=time.time),
        owner=owner,
        ttl=keep_s,
    )


def metric_sources(
    calls: GatewayCalls,
    idempotency: Idempotency,
    limiter: HomeLimiter,
    jobs: GatewayJobs,
    readiness: Readiness,
    budget: ByteBudget,
    connections: ConnectionBook,
    fallbacks: Fallbacks,
    rollouts: MetricSource,
) -> tuple[MetricSource, ...]:
    """Asked at each scrape, beside what `GatewayMetrics` counts."""
    drivers = calls.drivers
    return (
        lambda: key_counts(idempotency.statistics()),
        lambda: limit_gauges(limiter.statistics()),
        lambda: call_gauges(
            calls.service.statistics(),
            inside=len(readiness.gate),
            bodies=budget,
            ready=not readiness.why_not(),
        ),
        lambda: fallback_counts(fallbacks.counts),
        lambda: job_gauges(jobs.statistics()),
        lambda: node_fault_counts(drivers.guard.faults.counts),
        lambda: clock_gauges(calls.fleet.clocks, time.time()),
        lambda: connection_counts(connections.statistics()),
        lambda: link_metrics(
            drivers.links.runs, {"agent": drivers.links.standing(), "gateway": drivers.peers.links.standing()}
        ),
        rollouts,
    )


def make_readiness(bus: Bus, registry: Registry, calls: CallService) -> Readiness:
    return Readiness(
        gate=DrainGate(),
        bus_connected=lambda: bus.connected,
        registry=registry,
        calls=calls,
        clock=time.monotonic,
    )


def make_calls(
    settings: ServeSettings, bus: Bus, bodies: LargeBodies, name: str, instance: str, url: str
) -> GatewayCalls:
    plain = is_in_clear(settings.nats_url, settings.ca_file)
    return GatewayCalls(
        bus,
        bodies,
        region=settings.region,
        name=name,
        instance=instance,
        limits=QueueLimits(),
        links=LinkTerms(
            folder=LinkFolder(settings.links),
            url=link_url(bodies.url, plain=plain),
            plain=plain,
            ca_file=settings.ca_file,
        ),
        url=url,
    )


def follow_splits(registry: Registry, calls: GatewayCalls) -> None:
    """Have the homes here know how traffic is split."""
    for record in registry.iter_rollouts():
        calls.drivers.homes.on_record(f"rollout.{record.tenant}.{record.app}", record)
    registry.on_change.append(calls.drivers.homes.on_record)


def make_jobs(
    settings: ServeSettings,
    bus: Bus,
    calls: GatewayCalls,
    blobs: BlobStore,
    job_calls: JobCalls,
    permits: JobPermits,
    runner: RunnerIdentity,
) -> GatewayJobs:
    storage = JobStorage(blobs, settings.job_seconds, settings.job_bytes)
    jobs = GatewayJobs(bus, calls.table, storage, job_calls, permits, region=settings.region, runner=runner)
    calls.drivers.homes.backlog_of = jobs.dispatcher.backlog
    return jobs


def make_nested(
    bus: Bus, calls: GatewayCalls, carried: NestedCalls, bodies: LargeBodies, region: str
) -> NestedExchange:
    """What answers agents whose calls make others."""
    live, reports, own = calls.drivers.origins, calls.fleet.reports, calls.table.instance
    return NestedExchange(bus, live, carried, bodies, reports, region=region, gateway=own)


def make_call_prices(settings: ServeSettings, book: PriceBook, calls: GatewayCalls) -> CallPrices:
    """What calls cost here, which origins tell too."""
    book.region = settings.region
    calls.drivers.origins.set_prices(book)
    return CallPrices(book, lambda: parts_of(calls.fleet.reports(time.monotonic())), time.monotonic, time.time)


def make_limits(
    settings: ServeSettings, bus: Bus, calls: GatewayCalls, registry: Registry, instance: str, ledger: LedgerReader
) -> tuple[HomeLimiter, TrancheKeeper]:
    """The limits of tenants, and what keeps the records of their budgets."""
    set_now: dict[str, BudgetsRecord] = {}
    # Each call looks there, so it is a plain dict, which the limiter keeps.
    budgets, policies = BudgetHome(set_now.get, time.time), LimitPolicies(registry.limits, registry.budgets)
    limiter = HomeLimiter(
        bus, calls.table, policies, region=settings.region, gateway=instance, budgets=budgets, budgeted=set_now
    )
    for record in registry.each_budgets():
        limiter.record_changed(f"budget.{record.tenant}", record)
    registry.on_change.append(limiter.record_changed)
    prepaid = PrepaidBudgets(registry, ledger)
    return limiter, TrancheKeeper(bus, budgets, limiter.budgeted, limiter.is_home, prepaid)


def make_shards(calls: GatewayCalls, limiter: HomeLimiter, jobs: GatewayJobs) -> Shards:
    return calls.shards({"limits": limiter.driver, "jobs": jobs.dispatcher})


def make_job_calls(
    calls: GatewayCalls, registry: Registry, schemas: VersionSchemas, codec: BodyCodec, budget: ByteBudget,
    sampler: TraceSampler, sinks: tuple[CallSink, ...],
) -> JobCalls:  # fmt: skip
    return JobCalls(
        calls=calls.service, registry=registry, schemas=schemas, codec=codec, budget=budget, clock=time.monotonic,
        sampler=sampler, sinks=sinks,
    )  # fmt: skip


def make_load_exchange(
    bus: Bus, loads: LoadBook, measured: MeasuredGateway, budget: ByteBudget, readiness: Readiness, calls: GatewayCalls
) -> LoadExchange:
    waiting, homes = lambda: len(readiness.gate), calls.drivers.homes
    return LoadExchange(bus, loads, measured, budget, waiting, calls.fleet.clocks, homes.loads)


def make_placements(
    calls: GatewayCalls, book: PriceBook, registry: Registry, settings: ServeSettings
) -> FleetPlacements:
    nodes = lambda: pool_nodes(registry.pools(), settings.region, settings.zone)  # noqa: E731
    return FleetPlacements(calls.fleet, prices=Prices(book=book), pool_nodes=nodes)
