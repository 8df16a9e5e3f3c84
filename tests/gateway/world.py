"""A whole HTTP side over fakes: what tests of routes stand on."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field
from functools import cache, cached_property
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import httpx
import msgspec
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from prometheus_client.core import Metric
from starlette import routing
from starlette.types import ASGIApp

from pilotlight_core.host.blobs import BlobBackend, MemoryBlobKeys, MemoryBlobs, SealedBlobs
from pilotlight_core.host.events.event_log import MemoryEventLog
from pilotlight_core.host.metrics import ProcessMetrics
from pilotlight_core.host.outbound.address_policy import Network
from pilotlight_core.host.registry import KeyRecord, TenantRecord
from pilotlight_core.host.signing import Signer
from pilotlight_core.host.supply.trust_keys import MemoryTrust
from pilotlight_core.model.messages.bindings import Binding
from pilotlight_core.model.money.budgets import HomeTranches
from pilotlight_core.model.price_book import load_prices
from pilotlight_core.model.spec import AppRecord, FileEntry, FunctionSpec, MethodSpec, Mode, VersionRecord
from pilotlight_gateway.audit.audit_log import AuditLog, MemoryAuditLog
from pilotlight_gateway.batches.batch_port import MemoryBatches
from pilotlight_gateway.batches.batch_service import BatchService
from pilotlight_gateway.bodies.body_codec import BodyCodec
from pilotlight_gateway.bodies.byte_budget import ByteBudget
from pilotlight_gateway.bodies.worker_pool import BodyWorkers
from pilotlight_gateway.budgets.call_prices import CallPrices
from pilotlight_gateway.calls.call_fake import FakeCalls
from pilotlight_gateway.calls.call_port import CallPort
from pilotlight_gateway.deploys.blob_usage import BlobUsage
from pilotlight_gateway.deploys.deployer import Deployer
from pilotlight_gateway.deploys.function_logs import LogSource, MemoryLogs
from pilotlight_gateway.deploys.package_locker import MemoryLocker, PackageLocker
from pilotlight_gateway.deploys.resolver import Resolver
from pilotlight_gateway.erasure.tenant_eraser import TenantEraser
from pilotlight_gateway.erasure.tenant_traces import MemoryTraces
from pilotlight_gateway.events.event_reader import MemoryEvents
from pilotlight_gateway.fleet.container_stopper import ContainerStopper, MemoryStopper
from pilotlight_gateway.fleet.fleet_inventory import FleetPlacements
from pilotlight_gateway.fleet.placement_explainer import Explainer, MemoryExplainer
from pilotlight_gateway.http.protocol.drain_gate import DrainGate
from pilotlight_gateway.http.protocol.http_exchange import OpenRequests
from pilotlight_gateway.http.protocol.readiness import Readiness
from pilotlight_gateway.http_wiring import BODY_BYTES_HELD, HttpParts, wire_http
from pilotlight_gateway.idempotency.keyed_calls import Idempotency
from pilotlight_gateway.jobs.job_service import JobService
from pilotlight_gateway.jobs.memory_jobs import MemoryJobQueue, MemoryJobs
from pilotlight_gateway.ledger.ledger_reader import LedgerReader
from pilotlight_gateway.ledger.ledger_store import Ledger
from pilotlight_gateway.limits.cost_estimates import Estimates
from pilotlight_gateway.limits.limits_port import Limiter, MemoryLimiter
from pilotlight_gateway.limits.tenant_slots import TenantSlots, follower_slots, upload_slots
from pilotlight_gateway.metrics.call_metrics import call_gauges
from pilotlight_gateway.metrics.call_recorder import CallRecorder
from pilotlight_gateway.metrics.gateway_metrics import GatewayMetrics
from pilotlight_gateway.metrics.load_exchange import LoadBook
from pilotlight_gateway.nodes.node_identities import JoiningTerms
from pilotlight_gateway.oidc.issuer_keys import IssuerKeys
from pilotlight_gateway.oidc.issuers import Issuers
from pilotlight_gateway.oidc.jwks_source import MemoryJwksSource
from pilotlight_gateway.oidc.token_authenticator import TokenAuthenticator
from pilotlight_gateway.rollouts.evidence_store_fake import MemoryEvidence
from pilotlight_gateway.rollouts.rollout_parts import RolloutParts
from pilotlight_gateway.schemas.schema_validators import Validators
from pilotlight_gateway.schemas.version_schemas import VersionSchemas
from pilotlight_gateway.secrets.platform_keys import MemoryPlatformKey
from pilotlight_gateway.secrets.secret_store import MemorySecrets
from pilotlight_gateway.secrets.tenant_vault import TenantVault
from pilotlight_gateway.streams.stream_exchange import StreamExchange
from pilotlight_gateway.supply.base_inventories import MemoryInventories
from pilotlight_gateway.supply.gateway_supply import SupplyParts
from pilotlight_gateway.supply.key_set_book import MemoryKeySets
from pilotlight_gateway.supply.osv_file import OsvFile
from pilotlight_gateway.supply.signing_keys import LoneSigner
from pilotlight_gateway.supply.supply_desk import SupplyDesk
from pilotlight_gateway.tally.gateway_tallies import GatewayTallies
from pilotlight_gateway.tally.home_tallies import HomeTallies
from pilotlight_gateway.tally.tallies import Tallies
from pilotlight_gateway.tally.tally_answers import TallyAnswers, TallySources
from pilotlight_gateway.tally.tally_desk import TallyDesk
from pilotlight_gateway.tenancy.api_keys import ApiKey, new_key
from pilotlight_gateway.tenancy.auth import CallAuthenticator, KeyAuthenticator
from pilotlight_gateway.tenancy.login_sessions import LoginSessions
from pilotlight_gateway.tenancy.registry_port import MemoryRegistry, RegistryPort
from pilotlight_gateway.traces.traced_calls import TracedCalls, lone_traces
from pilotlight_gateway.webhooks.webhook_port import MemoryWebhooks, WebhookStore
from tests.builders.specs import function_spec, id_of, manifest, method, version_record
from tests.gateway.secrets.vaults import vault_over
from tests.gateway.stream_gateways import lone_streams

# Each world has an app of the same hundred and more routes.
routing.compile_path = cache(routing.compile_path)

WALL = 1_790_000_000.0
HELLO = method(
    attribute="hello",
    input_schema={
        "type": "object",
        "properties": {"name": {"type": "string"}, "times": {"type": "array", "items": {"type": "integer"}}},
        "required": ["name"],
        "additionalProperties": False,
    },
)


def function(name: str = "hello", *methods: MethodSpec, **options: Any) -> FunctionSpec:
    """A spec."""
    return function_spec(name, *(methods or (HELLO,)), **{"module": "main"} | options)


def generator(**options: Any) -> MethodSpec:
    """A method that yields."""
    return method(attribute="tokens", mode=Mode.GENERATOR, **options)


@cache
def empty_ledger() -> bytes:
    """A ledger's file: making one waits for the disk, copying it does not."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "ledger.sqlite"
        Ledger(f"sqlite:///{path}", load_prices()).close()
        return path.read_bytes()


class Clock:
    """Seconds that a test moves by hand; it also counts how often it was read."""

    def __init__(self, at: float) -> None:
        self.at = at

    def __call__(self) -> float:
        return self.at


async def nothing_taken(_tenant: str) -> HomeTranches | None:
    """No home has noted anything of a tenant's budgets."""
    return None


async def nothing_taken_at_all() -> list[HomeTranches]:
    """Nor of anybody's."""
    return []


@dataclass(kw_only=True)
class Parts:
    """What the HTTP side is made of: a test replaces a part before it asks for the application."""

    calls: CallPort
    registry: RegistryPort
    blobs: BlobBackend
    signer: Signer
    authenticator: CallAuthenticator
    issuers: Issuers
    ledger: LedgerReader
    logs: LogSource
    jobs: JobService
    batches: BatchService
    webhooks: WebhookStore
    budget: ByteBudget = field(default_factory=lambda: ByteBudget(limit=BODY_BYTES_HELD))
    bus_connected: Callable[[], bool] = lambda: True
    costs: Estimates = field(default_factory=Estimates)
    audit: AuditLog = field(default_factory=MemoryAuditLog)
    events: MemoryEvents = field(default_factory=MemoryEvents)
    evidence: MemoryEvidence = field(default_factory=MemoryEvidence)
    event_log: MemoryEventLog = field(default_factory=MemoryEventLog)
    traces: MemoryTraces = field(default_factory=MemoryTraces)
    tracing: TracedCalls = field(default_factory=lone_traces)
    bound: list[Binding] = field(default_factory=list)
    explainer: Explainer = field(default_factory=MemoryExplainer)
    followers: TenantSlots = field(default_factory=follower_slots)
    gate: DrainGate = field(default_factory=DrainGate)
    idempotency: Idempotency = field(default_factory=Idempotency)
    limits: Limiter = field(default_factory=MemoryLimiter)
    loads: LoadBook = field(default_factory=LoadBook)
    metrics: GatewayMetrics = field(init=False)
    recorder: CallRecorder = field(init=False)
    tallies: TallyDesk = field(init=False)
    placements: FleetPlacements = field(default_factory=FleetPlacements)
    inventories: MemoryInventories = field(default_factory=MemoryInventories)
    osv: OsvFile = field(default_factory=OsvFile)
    key_sets: MemoryKeySets = field(default_factory=MemoryKeySets)
    prices: CallPrices = field(default_factory=lambda: CallPrices(load_prices()))
    requests: OpenRequests = field(default_factory=OpenRequests)
    stopper: ContainerStopper = field(default_factory=MemoryStopper)
    streams: StreamExchange = field(default_factory=lone_streams)
    locker: PackageLocker = field(default_factory=MemoryLocker)
    terms: JoiningTerms = field(default_factory=lambda: JoiningTerms(bus_url="nats://bus:4222"))
    tranches: Callable[[str], Awaitable[HomeTranches | None]] = nothing_taken
    all_tranches: Callable[[], Awaitable[list[HomeTranches]]] = nothing_taken_at_all
    uploads: TenantSlots = field(default_factory=upload_slots)
    vault: TenantVault = field(default_factory=lambda: vault_over(MemorySecrets(), MemoryPlatformKey()))
    validators: Validators = field(default_factory=Validators)
    workers: BodyWorkers = field(default_factory=BodyWorkers)
    webhook_networks: tuple[Network, ...] = ()
    proxies: tuple[Network, ...] = ()

    def __post_init__(self) -> None:
        self.metrics = GatewayMetrics()
        sources = TallySources(calls=Tallies(), homes=HomeTallies(), own=GatewayTallies("gateway"))
        self.recorder = CallRecorder(self.metrics, time.monotonic, sources.calls)
        self.tallies = TallyDesk(TallyAnswers(sources))

    def exposition(self) -> str:
        """What a scrape shows."""
        return ProcessMetrics(self.metrics.collect, self.call_gauges).exposition().decode()

    def call_gauges(self) -> Iterable[Metric]:
        """As `serving` has them."""
        return call_gauges(
            self.calls.statistics(),
            inside=len(self.gate),
            bodies=self.budget,
            ready=not self.readiness.why_not(),
        )

    @property
    def resolver(self) -> Resolver:
        return Resolver(self.registry)

    @property
    def deployer(self) -> Deployer:
        return Deployer(
            registry=self.registry,
            blobs=self.blobs,
            usage=BlobUsage(self.blobs),
            supply=self.supply.desk,
            signer=self.supply.signer,
            secrets=self.vault.store,
            locker=self.locker,
            placements=self.placements,
        )

    @cached_property
    def supply(self) -> SupplyParts:
        """Over fakes; with the blob store, the policies and the signer as they are when it is first asked for."""
        signer, trust = LoneSigner(self.signer), MemoryTrust()
        policies = self.registry.policies
        desk = SupplyDesk(blobs=self.blobs, policies=policies, trust=trust, inventories=self.inventories, osv=self.osv)
        return SupplyParts(desk=desk, trust=trust, policies=policies, key_sets=self.key_sets, signer=signer)

    @property
    def readiness(self) -> Readiness:
        return Readiness(
            gate=self.gate,
            bus_connected=lambda: self.bus_connected(),
            registry=self.registry,
            calls=self.calls,
            clock=time.monotonic,
        )

    def app(self) -> ASGIApp:
        """The application over the parts as they are now."""
        return wire_http(self.parts())

    def parts(self) -> HttpParts:
        """What it is composed of."""
        return HttpParts(
            audit=self.audit,
            events=self.events,
            authenticator=self.authenticator,
            batches=self.batches,
            blobs=self.blobs,
            budget=self.budget,
            calls=self.calls,
            codec=BodyCodec(self.validators, self.workers, self.budget),
            costs=self.costs,
            eraser=TenantEraser(
                self.registry,
                self.traces,
                SealedBlobs(self.blobs, MemoryBlobKeys(), seals=False),
                (self.vault.keys,),
                self.stopper,
                lambda: self.bound,
                ended_within_s=0.0,
                settled_s=0.0,
            ),
            explainer=self.explainer,
            followers=self.followers,
            idempotency=self.idempotency,
            issuers=self.issuers,
            jobs=self.jobs,
            ledger=self.ledger,
            limiter=self.limits,
            loads=self.loads,
            locker=self.locker,
            logs=self.logs,
            recorder=self.recorder,
            networks=self.webhook_networks,
            proxies=self.proxies,
            placements=self.placements,
            prices=self.prices,
            readiness=self.readiness,
            registry=self.registry,
            requests=self.requests,
            rollouts=RolloutParts(store=self.evidence),
            schemas=VersionSchemas(self.blobs),
            supply=self.supply,
            stopper=self.stopper,
            streams=self.streams,
            tallies=self.tallies,
            terms=self.terms,
            tracing=self.tracing,
            tranches=self.tranches,
            all_tranches=self.all_tranches,
            uploads=self.uploads,
            vault=self.vault,
            webhooks=self.webhooks,
        )


class World:
    """The application, everything below it, and a client with a key."""

    def __init__(self, folder: Path, registry: RegistryPort | None = None) -> None:
        self.calls = FakeCalls()
        self.registry = MemoryRegistry()
        self.blobs = MemoryBlobs(time.time)
        self.logs = MemoryLogs()
        self.audit = MemoryAuditLog()
        self.webhooks = MemoryWebhooks()
        self.batches = MemoryBatches()
        self.jobs = MemoryJobs()
        self.job_queue = MemoryJobQueue()
        self.clock = Clock(100.0)
        self.wall = Clock(WALL)
        (folder / "ledger.sqlite").write_bytes(empty_ledger())
        url = f"sqlite:///{folder / 'ledger.sqlite'}"
        self.ledger = Ledger(url, load_prices())
        self.ledger_reader = LedgerReader(url, self.ledger.book)
        self.signer = Signer(Ed25519PrivateKey.generate())
        known = registry or self.registry
        self.jwks = MemoryJwksSource()
        self.issuer_keys = IssuerKeys(self.jwks, known.issuers, clock=self.clock)
        tokens = TokenAuthenticator(known, self.issuer_keys, clock=self.clock, wall=self.wall)
        desk = JobService(self.jobs, queue=self.job_queue, blobs=self.blobs, wall=self.wall, clock=self.clock)
        self.services = Parts(
            calls=self.calls,
            registry=known,
            blobs=self.blobs,
            signer=self.signer,
            authenticator=KeyAuthenticator(
                known, tokens, LoginSessions(known, wall=self.wall), clock=self.clock, wall=self.wall
            ),
            issuers=Issuers(source=self.jwks, keys=self.issuer_keys, tokens=tokens),
            ledger=self.ledger_reader,
            audit=self.audit,
            logs=self.logs,
            webhooks=self.webhooks,
            jobs=desk,
            batches=BatchService(self.batches, desk, blobs=self.blobs, wall=self.wall),
        )
        self.key = self.add_key("acme", "admin")
        self.operator = self.add_key("platform", "admin", "operator")

    def close(self) -> None:
        """Close the ledger."""
        self.ledger_reader.close()
        self.ledger.close()

    @property
    def app(self) -> ASGIApp:
        """Made anew each time, over the parts as they are now."""
        return self.services.app()

    def add_key(self, tenant: str, *scopes: str, **more: Any) -> ApiKey:
        """A key of a tenant, which is made if need be."""
        key = new_key()
        self.registry.tenant_records.setdefault(tenant, TenantRecord(name=tenant, created_at=WALL))
        self.registry.key_records[key.id] = KeyRecord(
            id=key.id, tenant=tenant, sha256=key.sha256, scopes=scopes, created_at=WALL, **more
        )
        return key

    def deploy(self, *specs: FunctionSpec, tenant: str = "acme", app: str = "shop") -> list[VersionRecord]:
        """Versions as a deploy would leave them in the registry."""
        made = []
        for spec in specs:
            version = id_of(manifest(spec, entry(b"x"), tenant=tenant, app=app))
            record = version_record(spec, id=version, tenant=tenant, app=app, manifest_sha256="0" * 64, created_at=WALL)
            self.registry.versions[record.id] = record
            made.append(record)
        ids = {record.function: record.id for record in made}
        self.registry.apps[tenant, app] = AppRecord(
            tenant=tenant, app=app, revision=1, functions=ids, versions={name: (id_,) for name, id_ in ids.items()}
        )
        return made

    def client(self, key: ApiKey | str | None = None, **options: Any) -> httpx.AsyncClient:
        """A client that sends `key`; by default an admin's of the tenant `acme`, with "" none."""
        key = self.key if key is None else key
        headers = {"authorization": f"Bearer {key}"} if key else {}
        transport = httpx.ASGITransport(self.app, raise_app_exceptions=False)
        return WorldClient(self.services.workers, transport=transport, headers=headers, **options)


class WorldClient(httpx.AsyncClient):
    """A client whose last act ends the workers that its large bodies started."""

    def __init__(self, workers: BodyWorkers, **options: Any) -> None:
        super().__init__(base_url="http://gateway", **options)
        self._workers = workers

    async def __aexit__(self, *error: Any) -> None:
        await super().__aexit__(*error)
        await self._workers.end()


def entry(content: bytes, path: str = "main.py") -> FileEntry:
    """The entry of a file."""
    return FileEntry(path=path, sha256=hashlib.sha256(content).hexdigest(), size=len(content))


def events_of(text: str) -> list[tuple[str, Any]]:
    """The (name, data) of server-sent events; comments are (":", text)."""
    found: list[tuple[str, Any]] = []
    for block in text.split("\n\n"):
        if block.startswith(":"):
            found.append((":", block))
        elif block:
            name, data = [line for line in block.split("\n") if not line.startswith("id: ")]
            found.append((name.removeprefix("event: "), msgspec.json.decode(data.removeprefix("data: "))))
    return found


def packed(*values: Any) -> Iterable[bytes]:
    """The msgpack of each value."""
    return [msgspec.msgpack.encode(value) for value in values]
