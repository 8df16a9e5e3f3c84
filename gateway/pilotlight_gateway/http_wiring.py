"""Composes the HTTP side: each group of endpoints gets only the services that it needs."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

from starlette.types import ASGIApp

from pilotlight_core.host.blobs import BlobStore
from pilotlight_core.model.money.budgets import HomeTranches
from pilotlight_gateway.batches.batch_service import BatchService
from pilotlight_gateway.bodies.body_codec import BodyCodec
from pilotlight_gateway.bodies.byte_budget import ByteBudget
from pilotlight_gateway.budgets.call_prices import CallPrices
from pilotlight_gateway.budgets.prepaid_budgets import PrepaidBudgets
from pilotlight_gateway.calls.call_port import CallPort
from pilotlight_gateway.calls.call_responses import CallAnswers
from pilotlight_gateway.deploys.blob_usage import BlobUsage
from pilotlight_gateway.deploys.deployer import Deployer, ManifestSigner
from pilotlight_gateway.deploys.function_logs import LogSource
from pilotlight_gateway.deploys.resolver import Resolver
from pilotlight_gateway.fleet.container_stopper import ContainerStopper
from pilotlight_gateway.fleet.curve_trials import CurveService
from pilotlight_gateway.fleet.fleet_inventory import FleetPlacements
from pilotlight_gateway.fleet.placement_explainer import Explainer
from pilotlight_gateway.http import routes
from pilotlight_gateway.http.app import bind, create_app, document_of
from pilotlight_gateway.http.calls.call_endpoint import CallEndpoint, CallEntry
from pilotlight_gateway.http.calls.call_limits import CallLimits
from pilotlight_gateway.http.calls.call_reader import CallReader
from pilotlight_gateway.http.calls.call_routes import CallRoutes
from pilotlight_gateway.http.calls.call_stream import StreamedCalls
from pilotlight_gateway.http.calls.event_writer import StreamServices
from pilotlight_gateway.http.calls.keyed_call_answers import KeyedCallAnswers
from pilotlight_gateway.http.calls.unary_calls import UnaryCalls
from pilotlight_gateway.http.calls.warm_call import WarmCalls, WarmParts
from pilotlight_gateway.http.endpoints.account import AccountServices
from pilotlight_gateway.http.endpoints.apps import AppServices
from pilotlight_gateway.http.endpoints.autoscaler import AUTOSCALER, AutoscalerServices
from pilotlight_gateway.http.endpoints.batches import BATCHES, BatchServices
from pilotlight_gateway.http.endpoints.billing.budgets import BUDGETS, BudgetServices
from pilotlight_gateway.http.endpoints.billing.credits import CREDITS, CreditServices
from pilotlight_gateway.http.endpoints.billing.invoices import INVOICES, InvoiceServices
from pilotlight_gateway.http.endpoints.billing.job_money import JobMoney
from pilotlight_gateway.http.endpoints.billing.usage import USAGE, UsageServices
from pilotlight_gateway.http.endpoints.containers import CONTAINERS, ContainerServices
from pilotlight_gateway.http.endpoints.curves import CURVES, CurveServices
from pilotlight_gateway.http.endpoints.documents import DocumentServices
from pilotlight_gateway.http.endpoints.health import HealthServices
from pilotlight_gateway.http.endpoints.jobs import JobServices
from pilotlight_gateway.http.endpoints.logs import LogServices
from pilotlight_gateway.http.endpoints.placement import PLACEMENT, PlacementServices
from pilotlight_gateway.http.endpoints.prices import PRICES, PriceServices
from pilotlight_gateway.http.endpoints.quarantine import QUARANTINE, QuarantineServices
from pilotlight_gateway.http.endpoints.scaling import SCALING, ScalingServices
from pilotlight_gateway.http.endpoints.tenancy import TENANCY
from pilotlight_gateway.http.endpoints.tenancy_services import TenancyServices
from pilotlight_gateway.http.endpoints.webhooks import WEBHOOKS, WebhookServices
from pilotlight_gateway.http.protocol.api_operations import BoundOperation
from pilotlight_gateway.http.protocol.http_exchange import OpenRequests
from pilotlight_gateway.http.protocol.readiness import Readiness
from pilotlight_gateway.idempotency.keyed_calls import Idempotency
from pilotlight_gateway.jobs.job_service import JobService
from pilotlight_gateway.ledger.ledger_reader import LedgerReader
from pilotlight_gateway.limits.api_rates import ApiRates
from pilotlight_gateway.limits.cost_estimates import Estimates
from pilotlight_gateway.limits.limits_port import Limiter
from pilotlight_gateway.limits.tenant_slots import TenantSlots
from pilotlight_gateway.metrics.gateway_metrics import GatewayMetrics
from pilotlight_gateway.metrics.load_exchange import LoadBook
from pilotlight_gateway.schemas.version_schemas import VersionSchemas
from pilotlight_gateway.tenancy.auth import CallAuthenticator
from pilotlight_gateway.tenancy.registry_port import RegistryPort
from pilotlight_gateway.webhooks.address_policy import Network
from pilotlight_gateway.webhooks.webhook_port import WebhookStore

BODY_BYTES_HELD = 160 * 10**6
"""Of all requests and answers at a time."""


def upload_slots() -> TenantSlots:
    """Uploads of blobs at a time; a deploy makes four."""
    return TenantSlots(32, "uploads are under way", of_tenant=8, retry_after=1.0)


def deploy_slots() -> TenantSlots:
    """Deploys at a time."""
    return TenantSlots(3, "deploys are under way", of_tenant=1, retry_after=1.0)


def follower_slots() -> TenantSlots:
    """Readers of logs at a time."""
    return TenantSlots(256, "log readers are connected", of_tenant=64, retry_after=5.0)


def wire_http(
    *,
    authenticator: CallAuthenticator,
    batches: BatchService,
    blobs: BlobStore,
    budget: ByteBudget,
    calls: CallPort,
    codec: BodyCodec,
    costs: Estimates,
    explainer: Explainer,
    followers: TenantSlots,
    idempotency: Idempotency,
    jobs: JobService,
    ledger: LedgerReader,
    limiter: Limiter,
    loads: LoadBook,
    logs: LogSource,
    metrics: GatewayMetrics,
    networks: tuple[Network, ...],
    placements: FleetPlacements,
    prices: CallPrices,
    readiness: Readiness,
    registry: RegistryPort,
    requests: OpenRequests,
    schemas: VersionSchemas,
    signer: ManifestSigner,
    stopper: ContainerStopper,
    tranches: Callable[[str], Awaitable[HomeTranches | None]],
    all_tranches: Callable[[], Awaitable[list[HomeTranches]]],
    uploads: TenantSlots,
    webhooks: WebhookStore,
) -> ASGIApp:
    """The whole API. The caller opens and closes the parts."""
    clock, gate, book = readiness.clock, readiness.gate, ledger.book
    resolver, curves, usage = Resolver(registry), CurveService(registry), BlobUsage(blobs, clock)
    deployer = Deployer(registry=registry, blobs=blobs, usage=usage, signer=signer, placements=placements)
    limits = CallLimits(limiter, costs, metrics, prices)
    rates = ApiRates(lambda tenant: registry.limits(tenant, "").tenant, clock)
    prepaid = PrepaidBudgets(registry, ledger)
    money = JobMoney(registry=registry, prices=prices, tranches=tranches)
    of_jobs = JobServices(
        jobs=jobs, registry=registry, budget=budget, codec=codec, rates=rates, book=book, clock=clock, money=money
    )
    of_account = AccountServices(ledger=ledger, registry=registry, calls=calls, jobs=of_jobs)
    of_documents = DocumentServices(openapi=document_of(), resolver=resolver, schemas=schemas)
    entry = CallEntry(
        authenticator=authenticator,
        gate=gate,
        resolver=resolver,
        limits=limits,
        reader=CallReader(registry, schemas, codec, clock),
        budget=budget,
        metrics=metrics,
    )
    answers = CallAnswers(codec, book, clock)
    unary = UnaryCalls(calls, answers, codec, budget, metrics)
    streams = StreamServices(
        calls=calls, gate=gate, budget=budget, metrics=metrics, codec=codec, book=book, clock=clock
    )
    call_endpoint = CallEndpoint(
        entry,
        unary=unary,
        streamed=StreamedCalls(streams),
        keyed=KeyedCallAnswers(idempotency, budget),
        jobs=of_jobs,
    )
    apps = AppServices(
        registry=registry, calls=calls, deployer=deployer, blobs=blobs, budget=budget, codec=codec, rates=rates,
        usage=usage, uploads=uploads, deploys=deploy_slots(),
    )  # fmt: skip
    placing = PlacementServices(
        registry=registry,
        resolver=resolver,
        placements=placements,
        curves=curves,
        explainer=explainer,
        budget=budget,
    )
    of_containers = ContainerServices(registry=registry, calls=calls, stopper=stopper, budget=budget)
    of_curves = CurveServices(resolver=resolver, placements=placements, curves=curves, deployer=deployer, budget=budget)
    of_batches = BatchServices(
        batches=batches, registry=registry, resolver=resolver, gate=gate, budget=budget, codec=codec
    )
    bound = partial(bind, authenticator=authenticator, rates=rates)
    operations: tuple[BoundOperation[Any], ...] = (
        *bound(routes.FUNCTION_DOCUMENT, of_documents),
        *bound(routes.CALLS_BY_ID, of_account),
        *bound(routes.JOBS, of_jobs),
        *bound(routes.APPS, apps),
        *bound(routes.LOGS, LogServices(registry=registry, logs=logs, followers=followers)),
        *bound(routes.ACCOUNT, of_account),
        *bound(USAGE, UsageServices(ledger=ledger, registry=registry, tranches=tranches, all_tranches=all_tranches)),
        *bound(INVOICES, InvoiceServices(ledger=ledger)),
        *bound(QUARANTINE, QuarantineServices(ledger=ledger)),
        *bound(BUDGETS, BudgetServices(registry=registry, prepaid=prepaid, tranches=tranches, budget=budget)),
        *bound(CREDITS, CreditServices(registry=registry, prepaid=prepaid, budget=budget)),
        *bound(CONTAINERS, of_containers),
        *bound(PRICES, PriceServices(registry=registry, book=book, budget=budget)),
        *bound(PLACEMENT, placing),
        *bound(CURVES, of_curves),
        *bound(AUTOSCALER, AutoscalerServices(registry=registry, resolver=resolver, budget=budget)),
        *bound(SCALING, ScalingServices(loads=loads, clock=clock)),
        *bound(TENANCY, TenancyServices(registry=registry, limits=limiter, budget=budget)),
        *bound(BATCHES, of_batches),
        *bound(WEBHOOKS, WebhookServices(webhooks=webhooks, networks=networks, budget=budget)),
        *bound(routes.API_DOCUMENT, of_documents),
        *bound(routes.HEALTH, HealthServices(readiness=readiness)),
    )
    edge = create_app(call_endpoint, operations, limits=limits, requests=requests, metrics=metrics, clock=clock)
    routes_known = CallRoutes(registry, resolver, limits)
    edge.whole = WarmCalls(WarmParts(entry, calls, unary, answers, routes_known, requests, edge, clock))
    return edge
