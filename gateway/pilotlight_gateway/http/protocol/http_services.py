"""What the HTTP side stands on: every port in one place, made by whoever starts the process."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

from pilotlight_core.host.blobs import BlobStore
from pilotlight_gateway.batches.batch_service import BatchService
from pilotlight_gateway.calls.byte_budget import ByteBudget
from pilotlight_gateway.calls.call_port import CallPort
from pilotlight_gateway.deploys.deployer import Deployer, ManifestSigner
from pilotlight_gateway.deploys.function_logs import LogSource
from pilotlight_gateway.deploys.resolver import Resolver
from pilotlight_gateway.fleet.curve_trials import CurveService
from pilotlight_gateway.fleet.fleet_inventory import FleetPlacements
from pilotlight_gateway.fleet.placement_explainer import Explainer, MemoryExplainer
from pilotlight_gateway.http.protocol.drain_gate import DrainGate
from pilotlight_gateway.idempotency.keyed_calls import Idempotency
from pilotlight_gateway.jobs.job_service import JobService
from pilotlight_gateway.ledger.ledger_store import Ledger
from pilotlight_gateway.limits.cost_estimates import Estimates
from pilotlight_gateway.limits.limits_port import Limiter, MemoryLimiter
from pilotlight_gateway.metrics.gateway_metrics import GatewayMetrics
from pilotlight_gateway.schemas.schema_validators import Validators
from pilotlight_gateway.tenancy.auth import Authenticator
from pilotlight_gateway.tenancy.registry_port import RegistryPort
from pilotlight_gateway.webhooks.addresses import Network
from pilotlight_gateway.webhooks.webhook_port import MemoryWebhooks, WebhookStore

BODY_BYTES_HELD = 512 * 10**6
UPLOADS_AT_A_TIME = 32
FOLLOWERS_AT_A_TIME = 256


@dataclass(kw_only=True)
class HttpServices:
    """The ports, and the little state that requests share."""

    calls: CallPort
    registry: RegistryPort
    blobs: BlobStore
    signer: ManifestSigner
    authenticator: Authenticator
    ledger: Ledger
    logs: LogSource
    budget: ByteBudget = field(default_factory=lambda: ByteBudget(limit=BODY_BYTES_HELD))
    clock: Callable[[], float] = time.monotonic
    bus_connected: Callable[[], bool] = lambda: True
    placements: FleetPlacements = field(default_factory=FleetPlacements)
    explainer: Explainer = field(default_factory=MemoryExplainer)
    idempotency: Idempotency = field(default_factory=Idempotency)
    jobs: JobService = field(default_factory=JobService)
    batches: BatchService = field(default_factory=BatchService)
    limits: Limiter = field(default_factory=MemoryLimiter)
    webhooks: WebhookStore = field(default_factory=MemoryWebhooks)
    webhook_networks: tuple[Network, ...] = ()
    """Where webhooks may go although it is not public."""
    costs: Estimates = field(default_factory=Estimates)
    gate: DrainGate = field(default_factory=DrainGate)
    metrics: GatewayMetrics = field(default_factory=GatewayMetrics)
    validators: Validators = field(default_factory=Validators)
    uploads: int = 0
    followers: int = 0
    resolver: Resolver = field(init=False)
    deployer: Deployer = field(init=False)
    curves: CurveService = field(init=False)

    def __post_init__(self) -> None:
        self.resolver = Resolver(self.registry)
        self.deployer = Deployer(
            registry=self.registry, blobs=self.blobs, signer=self.signer, placements=self.placements
        )
        self.curves = CurveService(self.registry)
