"""Composes the HTTP side: each group of endpoints gets only the services that it needs."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any

from starlette.types import ASGIApp

from pilotlight_core.host.blobs import BlobStore
from pilotlight_core.host.outbound.address_policy import Network
from pilotlight_core.model.errors import Unauthenticated
from pilotlight_core.model.money.budgets import HomeTranches
from pilotlight_gateway.audit.audit_log import AuditLog
from pilotlight_gateway.batches.batch_service import BatchService
from pilotlight_gateway.bodies.body_codec import BodyCodec
from pilotlight_gateway.bodies.byte_budget import ByteBudget
from pilotlight_gateway.budgets.call_prices import CallPrices
from pilotlight_gateway.budgets.prepaid_budgets import PrepaidBudgets
from pilotlight_gateway.calls.call_port import CallPort
from pilotlight_gateway.calls.call_responses import CallAnswers
from pilotlight_gateway.deploys.blob_usage import BlobUsage
from pilotlight_gateway.deploys.called_versions import CalledVersions
from pilotlight_gateway.deploys.deployer import Deployer
from pilotlight_gateway.deploys.function_logs import LogSource
from pilotlight_gateway.deploys.moves.app_aliases import AppAliases
from pilotlight_gateway.deploys.moves.app_moves import AppMoves
from pilotlight_gateway.deploys.package_locker import PackageLocker
from pilotlight_gateway.deploys.resolver import Resolver
from pilotlight_gateway.diagnosis.function_diagnoses import FunctionDiagnoses
from pilotlight_gateway.erasure.tenant_eraser import TenantEraser
from pilotlight_gateway.events.event_reader import MemoryEvents, PlatformEventSource
from pilotlight_gateway.files.uploaded_files import UploadedFiles
from pilotlight_gateway.fleet.container_stopper import ContainerStopper
from pilotlight_gateway.fleet.curve_trials import CurveService
from pilotlight_gateway.fleet.fleet_inventory import FleetPlacements
from pilotlight_gateway.fleet.placement_explainer import Explainer
from pilotlight_gateway.front_wiring import model_services
from pilotlight_gateway.http import routes
from pilotlight_gateway.http.app import ServedOperation, bind, call_routes, create_app, document_of
from pilotlight_gateway.http.calls.call_endpoint import CallEndpoint, CallEntry
from pilotlight_gateway.http.calls.call_events import EventServices
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
from pilotlight_gateway.http.endpoints.billing.quarantine import QUARANTINE, QuarantineServices
from pilotlight_gateway.http.endpoints.billing.usage import USAGE, UsageServices
from pilotlight_gateway.http.endpoints.containers import CONTAINERS, ContainerServices
from pilotlight_gateway.http.endpoints.curves import CURVES, CurveServices
from pilotlight_gateway.http.endpoints.documents import DocumentServices
from pilotlight_gateway.http.endpoints.health import HealthServices
from pilotlight_gateway.http.endpoints.issuers import ISSUERS, IssuerServices
from pilotlight_gateway.http.endpoints.jobs import JobServices
from pilotlight_gateway.http.endpoints.logins.sessions import SESSIONS, SessionServices
from pilotlight_gateway.http.endpoints.logs import LogServices
from pilotlight_gateway.http.endpoints.nodes import NODES, NodeServices
from pilotlight_gateway.http.endpoints.oversight.audit import AUDIT, AuditServices
from pilotlight_gateway.http.endpoints.oversight.diagnosis import DIAGNOSIS, DiagnosisServices
from pilotlight_gateway.http.endpoints.oversight.erasure import ERASURE, ErasureServices
from pilotlight_gateway.http.endpoints.oversight.events import EVENTS, PlatformEventServices
from pilotlight_gateway.http.endpoints.oversight.kept_calls import KEPT_CALLS, KeptCallServices
from pilotlight_gateway.http.endpoints.oversight.pools import POOLS, PoolServices
from pilotlight_gateway.http.endpoints.oversight.pressure import PRESSURE, PressureServices
from pilotlight_gateway.http.endpoints.oversight.scaling import SCALING, ScalingServices
from pilotlight_gateway.http.endpoints.oversight.stats import STATS, StatsServices
from pilotlight_gateway.http.endpoints.placement import PLACEMENT, PlacementServices
from pilotlight_gateway.http.endpoints.prices import PRICES, PriceServices
from pilotlight_gateway.http.endpoints.rollouts.aliases import ALIASES, AliasServices
from pilotlight_gateway.http.endpoints.rollouts.rollbacks import ROLLBACKS, RollbackServices
from pilotlight_gateway.http.endpoints.rollouts.rollouts import ROLLOUTS, RolloutServices
from pilotlight_gateway.http.endpoints.secrets.secrets import SECRETS, SecretServices
from pilotlight_gateway.http.endpoints.supply.policies import POLICIES, PolicyServices
from pilotlight_gateway.http.endpoints.supply.supply_keys import SUPPLY_KEYS, SupplyKeyServices
from pilotlight_gateway.http.endpoints.supply.version_documents import VERSION_DOCUMENTS, VersionDocumentServices
from pilotlight_gateway.http.endpoints.tenancy import TENANCY
from pilotlight_gateway.http.endpoints.tenancy_services import TenancyServices
from pilotlight_gateway.http.endpoints.webhooks import WEBHOOKS, WebhookServices
from pilotlight_gateway.http.endpoints.weights.weights import WEIGHTS, WeightsServices
from pilotlight_gateway.http.inference.fixed_inference import FixedInference, RequestServices
from pilotlight_gateway.http.inference.front_door import FrontDoor
from pilotlight_gateway.http.inference.front_operations import FIXED, INFER, REQUESTS, TENSOR_MODELS
from pilotlight_gateway.http.inference.infer_endpoint import InferEndpoint
from pilotlight_gateway.http.inference.inference_counts import InferenceCounts
from pilotlight_gateway.http.inference.model_endpoints import TensorModelServices
from pilotlight_gateway.http.openai.embedding_routes import EMBEDDINGS
from pilotlight_gateway.http.openai.files.file_routes import FILES, FileServices
from pilotlight_gateway.http.openai.files.request_batches import OutputFiles, RequestBatches
from pilotlight_gateway.http.openai.model_calls import OpenAIServices
from pilotlight_gateway.http.openai.model_routes import MODEL_LIST
from pilotlight_gateway.http.openai.response_routes import RESPONSES
from pilotlight_gateway.http.openai.text_routes import TEXT
from pilotlight_gateway.http.protocol.api_operations import BoundOperation
from pilotlight_gateway.http.protocol.http_exchange import OpenRequests
from pilotlight_gateway.http.protocol.readiness import Readiness
from pilotlight_gateway.idempotency.keyed_calls import Idempotency
from pilotlight_gateway.jobs.job_service import JobService
from pilotlight_gateway.ledger.ledger_reader import LedgerReader
from pilotlight_gateway.limits.api_rates import ApiRates
from pilotlight_gateway.limits.cost_estimates import Estimates
from pilotlight_gateway.limits.limits_port import Limiter
from pilotlight_gateway.limits.tenant_slots import TenantSlots, deploy_slots, file_slots, lock_slots
from pilotlight_gateway.metrics.call_recorder import CallRecorder
from pilotlight_gateway.metrics.load_exchange import LoadBook
from pilotlight_gateway.nested.nested_book import NestedBook
from pilotlight_gateway.nested.nested_calls import NestedCalls
from pilotlight_gateway.nodes.node_identities import JoiningTerms
from pilotlight_gateway.oidc.issuers import Issuers
from pilotlight_gateway.rollouts.call_rates import CallRates
from pilotlight_gateway.rollouts.rollout_desk import RolloutDesk
from pilotlight_gateway.rollouts.rollout_parts import RolloutParts
from pilotlight_gateway.rollouts.rollout_views import RolloutViews
from pilotlight_gateway.schemas.version_schemas import VersionSchemas
from pilotlight_gateway.secrets.tenant_vault import TenantVault
from pilotlight_gateway.splits.split_calls import SplitCalls
from pilotlight_gateway.splits.splits import Splits
from pilotlight_gateway.streams.stream_exchange import StreamExchange
from pilotlight_gateway.supply.gateway_supply import SupplyParts
from pilotlight_gateway.supply.key_set_book import VersionSigner
from pilotlight_gateway.tally.tally_desk import TallyDesk
from pilotlight_gateway.tenancy.auth import CallAuthenticator, Principal
from pilotlight_gateway.tenancy.registry_port import RegistryPort
from pilotlight_gateway.traces.access_log import OFF, AccessLog
from pilotlight_gateway.traces.traced_calls import TracedCalls, lone_traces
from pilotlight_gateway.webhooks.webhook_port import WebhookStore

BODY_BYTES_HELD = 160 * 10**6
"""Of all requests and answers at a time."""


@dataclass(frozen=True, kw_only=True)
class HttpParts:
    """What the API stands on. Whoever makes them opens and closes them."""

    audit: AuditLog
    authenticator: CallAuthenticator
    batches: BatchService
    blobs: BlobStore
    budget: ByteBudget
    calls: CallPort
    codec: BodyCodec
    costs: Estimates
    eraser: TenantEraser
    explainer: Explainer
    followers: TenantSlots
    idempotency: Idempotency
    issuers: Issuers
    jobs: JobService
    ledger: LedgerReader
    limiter: Limiter
    loads: LoadBook
    locker: PackageLocker
    logs: LogSource
    recorder: CallRecorder
    networks: tuple[Network, ...]
    placements: FleetPlacements
    prices: CallPrices
    proxies: tuple[Network, ...]
    readiness: Readiness
    registry: RegistryPort
    requests: OpenRequests
    schemas: VersionSchemas
    supply: SupplyParts
    stopper: ContainerStopper
    streams: StreamExchange
    tallies: TallyDesk
    terms: JoiningTerms
    tranches: Callable[[str], Awaitable[HomeTranches | None]]
    all_tranches: Callable[[], Awaitable[list[HomeTranches]]]
    uploads: TenantSlots
    vault: TenantVault
    webhooks: WebhookStore
    access_log: str = OFF
    dashboard_url: str = ""
    """Where browsers reach the dashboard; "": nobody has said."""
    counts: InferenceCounts = field(default_factory=InferenceCounts)
    split_counts: Counter[str] = field(default_factory=Counter)
    tracing: TracedCalls = field(default_factory=lone_traces)
    events: PlatformEventSource = field(default_factory=MemoryEvents)
    rollouts: RolloutParts

    @cached_property
    def splits(self) -> Splits:
        return Splits(self.registry, self.split_counts)

    @cached_property
    def split_calls(self) -> SplitCalls:
        """The calls, of which those of a rollout may move to its other version."""
        return SplitCalls(self.calls, self.registry, self.splits)

    @cached_property
    def rates(self) -> ApiRates:
        """Of requests other than calls, over HTTP and of functions."""
        return ApiRates(lambda tenant: self.registry.limits(tenant, "").tenant, self.readiness.clock)


def make_deployer(parts: HttpParts, usage: BlobUsage | None = None) -> Deployer:
    """What makes versions. `usage`: of blobs, if others count it too."""
    counted = BlobUsage(parts.blobs, parts.readiness.clock) if usage is None else usage
    return Deployer(
        registry=parts.registry, blobs=parts.blobs, usage=counted, secrets=parts.vault.store, locker=parts.locker,
        placements=parts.placements, supply=parts.supply.desk, signer=parts.supply.signer,
    )  # fmt: skip


class _Shared:
    """What several groups of endpoints have in common."""

    def __init__(self, parts: HttpParts) -> None:
        registry, budget, codec = parts.registry, parts.budget, parts.codec
        self.clock, self.gate, self.book = parts.readiness.clock, parts.readiness.gate, parts.ledger.book
        self.resolver, self.curves = Resolver(registry), CurveService(registry)
        self.usage = BlobUsage(parts.blobs, self.clock)
        self.deployer = make_deployer(parts, self.usage)
        self.limits = CallLimits(parts.limiter, parts.costs, parts.recorder, parts.prices)
        self.rates = parts.rates
        self.documents = DocumentServices(
            openapi=document_of(), resolver=self.resolver, schemas=parts.schemas, proxies=parts.proxies
        )
        self.jobs = JobServices(
            jobs=parts.jobs, registry=registry, budget=budget, codec=codec, rates=self.rates, book=self.book,
            clock=self.clock, money=JobMoney(registry=registry, prices=parts.prices, tranches=parts.tranches),
        )  # fmt: skip
        self.bound = partial(bind, authenticator=parts.authenticator, rates=self.rates, audit=parts.audit)


def wire_http(parts: HttpParts) -> ASGIApp:
    """The whole API."""
    shared = _Shared(parts)
    entry, answers = _call_entry(parts, shared), CallAnswers(parts.codec, shared.book, shared.clock)
    unary = UnaryCalls(parts.split_calls, answers, parts.codec, parts.budget, parts.recorder)
    operations = (
        *_functions(parts, shared), *_models(parts, shared, entry), *_money(parts, shared), *_fleet(parts, shared),
        *_tenants(parts, shared), *_fronts(parts, shared, model_services(parts, entry, shared.clock)),
    )  # fmt: skip
    access = AccessLog(parts.access_log, parts.tracing.keeper, call_routes(), shared.clock)
    parts.tracing.keeper.tell_slow = access.note_slow
    parts.registry.on_change.append(parts.tracing.keeper.forget_erased)
    edge = create_app(
        _call_endpoint(parts, shared, entry, unary), operations, limits=shared.limits, requests=parts.requests,
        recorder=parts.recorder, clock=shared.clock, access=access,
    )  # fmt: skip
    known = CallRoutes(parts.registry, shared.resolver, shared.limits)
    edge.whole = WarmCalls(
        WarmParts(entry, parts.split_calls, unary, answers, known, parts.requests, edge, shared.clock)
    )
    return edge


def wire_models(parts: HttpParts) -> TensorModelServices:
    """Calls of models, for another listener than that of the API."""
    shared = _Shared(parts)
    return model_services(parts, _call_entry(parts, shared), shared.clock)


def wire_nested(parts: HttpParts, why_ended: Callable[[Principal], Unauthenticated | None]) -> NestedCalls:
    """What carries out the calls that functions make. `why_ended`: why a principal may no more."""
    shared = _Shared(parts)
    answers = CallAnswers(parts.codec, shared.book, shared.clock)
    return NestedCalls(
        entry=_call_entry(parts, shared),
        unary=UnaryCalls(parts.split_calls, answers, parts.codec, parts.budget, parts.recorder),
        registry=parts.registry,
        schemas=parts.schemas,
        rates=parts.rates,
        why_ended=why_ended,
        book=NestedBook(),
        clock=shared.clock,
    )


def _call_entry(parts: HttpParts, shared: _Shared) -> CallEntry:
    """What every call passes."""
    return CallEntry(
        authenticator=parts.authenticator,
        gate=shared.gate,
        resolver=shared.resolver,
        versions=CalledVersions(shared.resolver, shared.rates),
        limits=shared.limits,
        reader=CallReader(
            parts.registry,
            parts.schemas,
            parts.codec,
            parts.recorder,
            shared.clock,
            parts.tracing.sampler,
            parts.splits,
        ),
        budget=parts.budget,
        recorder=parts.recorder,
        audit=parts.audit,
    )


def _call_endpoint(parts: HttpParts, shared: _Shared, entry: CallEntry, unary: UnaryCalls) -> CallEndpoint:
    """Where calls come in."""
    streams = StreamServices(
        calls=parts.split_calls, gate=shared.gate, budget=parts.budget, recorder=parts.recorder, codec=parts.codec,
        book=shared.book, keeper=parts.streams.keeper, clock=shared.clock,
    )  # fmt: skip
    return CallEndpoint(
        entry,
        unary=unary,
        streamed=StreamedCalls(streams),
        keyed=KeyedCallAnswers(parts.idempotency, parts.budget),
        jobs=shared.jobs,
    )


def _fronts(parts: HttpParts, shared: _Shared, models: TensorModelServices) -> tuple[ServedOperation, ...]:
    """What clients of other platforms call."""
    calls, entry = models.calls, models.calls.entry
    infer, fixed = InferEndpoint(calls), FixedInference(calls, parts.split_calls, shared.clock)
    return (
        *(FrontDoor(operation, entry, infer.answer) for operation in INFER),
        *shared.bound(TENSOR_MODELS, models),
        FrontDoor(FIXED, entry, fixed.answer),
        *shared.bound(REQUESTS, RequestServices(calls=parts.calls, readiness=parts.readiness)),
    )


def _functions(parts: HttpParts, shared: _Shared) -> tuple[BoundOperation[Any], ...]:
    """Calls, jobs and apps, and what is told of them."""
    bound, registry = shared.bound, parts.registry
    account = AccountServices(ledger=parts.ledger, registry=registry, calls=parts.calls, jobs=shared.jobs)
    apps = AppServices(
        registry=registry, calls=parts.calls, deployer=shared.deployer, blobs=parts.blobs, budget=parts.budget,
        codec=parts.codec, rates=shared.rates, usage=shared.usage, uploads=parts.uploads, deploys=deploy_slots(),
        locks=lock_slots(),
    )  # fmt: skip
    weights = WeightsServices(weights=shared.deployer.weights, budget=parts.budget, pushes=deploy_slots())
    return (
        *bound(routes.FUNCTION_DOCUMENT, shared.documents),
        *bound(routes.CALLS_BY_ID, account),
        *bound(EVENTS, PlatformEventServices(events=parts.events, followers=parts.followers)),
        *bound(KEPT_CALLS, KeptCallServices(find_kept=parts.tracing.find, jobs=parts.jobs)),
        *bound(routes.CALL_EVENTS, EventServices(calls=parts.calls, streams=parts.streams)),
        *bound(routes.JOBS, shared.jobs),
        *bound(routes.APPS, apps),
        *bound(ALIASES, AliasServices(aliases=AppAliases(registry=registry), budget=parts.budget)),
        *bound(ROLLOUTS, RolloutServices(desk=_rollout_desk(parts, shared), budget=parts.budget)),
        *bound(ROLLBACKS, RollbackServices(moves=AppMoves(registry=registry), jobs=parts.jobs, budget=parts.budget)),
        *bound(WEIGHTS, weights),
        *bound(routes.LOGS, LogServices(registry=registry, logs=parts.logs, followers=parts.followers)),
    )


def _rollout_desk(parts: HttpParts, shared: _Shared) -> RolloutDesk:
    """What people ask of rollouts."""
    view, clock = parts.placements.view, shared.clock
    views = RolloutViews(
        registry=parts.registry, store=parts.rollouts.store, reports=lambda: view.reports(clock())
    )  # fmt: skip
    return RolloutDesk(
        registry=parts.registry, schemas=parts.schemas, moves=AppMoves(registry=parts.registry), views=views,
        rate_of=CallRates(parts.tallies).per_hour, networks=parts.networks,
    )  # fmt: skip


def _models(parts: HttpParts, shared: _Shared, entry: CallEntry) -> tuple[BoundOperation[Any], ...]:
    """OpenAI's API over the same calls, and batches, which it shares."""
    services = OpenAIServices(
        entry=entry, calls=parts.split_calls, models=shared.deployer.models, schemas=parts.schemas,
        registry=parts.registry, keyed=KeyedCallAnswers(parts.idempotency, parts.budget), codec=parts.codec,
        clock=shared.clock, wall=time.time,
    )  # fmt: skip
    stored = UploadedFiles(registry=parts.registry, blobs=parts.blobs, usage=shared.usage)
    files = FileServices(
        files=stored, outputs=OutputFiles(parts.batches, services), budget=parts.budget, gate=shared.gate,
        uploads=file_slots(),
    )  # fmt: skip
    batches = BatchServices(
        batches=parts.batches, registry=parts.registry, resolver=shared.resolver, gate=shared.gate,
        budget=parts.budget, codec=parts.codec, requests=RequestBatches(parts.batches, stored, services),
    )  # fmt: skip
    return (
        *shared.bound((*TEXT, *RESPONSES, *EMBEDDINGS, *MODEL_LIST), services),
        *shared.bound(FILES, files),
        *shared.bound(BATCHES, batches),
    )


def _money(parts: HttpParts, shared: _Shared) -> tuple[BoundOperation[Any], ...]:
    """What the ledger tells, and what may be spent."""
    bound, ledger, registry, budget = shared.bound, parts.ledger, parts.registry, parts.budget
    prepaid = PrepaidBudgets(registry, ledger)
    usage = UsageServices(
        ledger=ledger, registry=registry, tranches=parts.tranches, all_tranches=parts.all_tranches
    )  # fmt: skip
    return (
        *bound(USAGE, usage),
        *bound(INVOICES, InvoiceServices(ledger=ledger)),
        *bound(QUARANTINE, QuarantineServices(ledger=ledger)),
        *bound(BUDGETS, BudgetServices(registry=registry, prepaid=prepaid, tranches=parts.tranches, budget=budget)),
        *bound(CREDITS, CreditServices(registry=registry, prepaid=prepaid, budget=budget)),
    )


def _fleet(parts: HttpParts, shared: _Shared) -> tuple[BoundOperation[Any], ...]:
    """Containers, devices and their prices, and how they are scaled."""
    bound, registry, budget, resolver = shared.bound, parts.registry, parts.budget, shared.resolver
    placing = PlacementServices(
        registry=registry, resolver=resolver, placements=parts.placements, curves=shared.curves,
        explainer=parts.explainer, budget=budget,
    )  # fmt: skip
    curves = CurveServices(
        resolver=resolver, placements=parts.placements, curves=shared.curves, deployer=shared.deployer, budget=budget
    )
    pressure = PressureServices(
        registry=registry, calls=parts.calls, view=parts.placements.view, loads=parts.loads, clock=shared.clock
    )
    containers = ContainerServices(registry=registry, calls=parts.calls, stopper=parts.stopper, budget=budget)
    return (
        *bound(CONTAINERS, containers),
        *bound(NODES, NodeServices(registry=registry, calls=parts.calls, budget=budget, terms=parts.terms)),
        *bound(POOLS, PoolServices(registry=registry, budget=budget)),
        *bound(PRICES, PriceServices(registry=registry, book=shared.book, budget=budget)),
        *bound(PLACEMENT, placing),
        *bound(CURVES, curves),
        *bound(AUTOSCALER, AutoscalerServices(registry=registry, resolver=resolver, budget=budget)),
        *bound(PRESSURE, pressure),
        *bound(DIAGNOSIS, DiagnosisServices(resolver=resolver, diagnoses=_diagnoses(parts, shared))),
        *bound(SCALING, ScalingServices(loads=parts.loads, clock=shared.clock)),
        *bound(STATS, StatsServices(tallies=parts.tallies, resolver=resolver, calls=parts.calls)),
    )


def _diagnoses(parts: HttpParts, shared: _Shared) -> FunctionDiagnoses:
    """What says what bounds functions."""
    return FunctionDiagnoses(
        counted=parts.tallies,
        placements=parts.placements,
        registry=parts.registry,
        curves=shared.curves,
        loads=lambda: [load for load, _ in parts.loads.known(shared.clock())],
        clock=shared.clock,
    )


def _tenants(parts: HttpParts, shared: _Shared) -> tuple[BoundOperation[Any], ...]:
    """Tenants and their webhooks, and the gateway's own answers."""
    bound, registry, budget = shared.bound, parts.registry, parts.budget
    issuers = IssuerServices(registry=registry, issuers=parts.issuers, budget=budget, clock=shared.clock)
    secrets = SecretServices(vault=parts.vault, registry=registry, budget=budget)
    supply = parts.supply
    documents = VersionDocumentServices(resolver=shared.resolver, blobs=parts.blobs, desk=supply.desk)
    versions = VersionSigner(registry=registry, blobs=parts.blobs, signer=supply.signer)
    keys = SupplyKeyServices(
        trust=supply.trust, key_sets=supply.key_sets, signer=supply.signer, versions=versions, budget=budget
    )
    return (
        *bound(VERSION_DOCUMENTS, documents),
        *bound(POLICIES, PolicyServices(policies=supply.policies, budget=budget)),
        *bound(SUPPLY_KEYS, keys),
        *bound(AUDIT, AuditServices(audit=parts.audit)),
        *bound(TENANCY, TenancyServices(registry=registry, limits=parts.limiter, budget=budget)),
        *bound(SESSIONS, SessionServices(registry=registry, budget=budget, dashboard_url=parts.dashboard_url)),
        *bound(ERASURE, ErasureServices(eraser=parts.eraser, budget=budget)),
        *bound(ISSUERS, issuers),
        *bound(WEBHOOKS, WebhookServices(webhooks=parts.webhooks, networks=parts.networks, budget=budget)),
        *bound(SECRETS, secrets),
        *bound(routes.API_DOCUMENT, shared.documents),
        *bound(routes.HEALTH, HealthServices(readiness=parts.readiness)),
    )
