"""What the HTTP side stands on: every port in one place, made by whoever starts the process."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

from pilotlight_core.host.blobs import BlobStore
from pilotlight_gateway.auth import Authenticator
from pilotlight_gateway.batches.desk import Batches
from pilotlight_gateway.budget import Budget
from pilotlight_gateway.call_port import CallPort
from pilotlight_gateway.curve_desk import CurveDesk
from pilotlight_gateway.deployer import Deployer, ManifestSigner
from pilotlight_gateway.explainer import Explainer, MemoryExplainer
from pilotlight_gateway.function_logs import LogSource
from pilotlight_gateway.http.draining import Gate
from pilotlight_gateway.idempotency.keyed import Idempotency
from pilotlight_gateway.jobs.desk import Jobs
from pilotlight_gateway.ledger.store import Ledger
from pilotlight_gateway.limits.estimates import Estimates
from pilotlight_gateway.limits.port import Limiter, MemoryLimiter
from pilotlight_gateway.metrics import Metrics
from pilotlight_gateway.placements import Placements
from pilotlight_gateway.registry_port import RegistryPort
from pilotlight_gateway.resolver import Resolver
from pilotlight_gateway.schemas import Validators
from pilotlight_gateway.webhooks.addresses import Network
from pilotlight_gateway.webhooks.port import MemoryWebhooks, WebhookStore

BODY_BYTES_HELD = 512 * 10**6
UPLOADS_AT_A_TIME = 32
FOLLOWERS_AT_A_TIME = 256


@dataclass(kw_only=True)
class Services:
    """The ports, and the little state that requests share."""

    calls: CallPort
    registry: RegistryPort
    blobs: BlobStore
    signer: ManifestSigner
    authenticator: Authenticator
    ledger: Ledger
    logs: LogSource
    budget: Budget = field(default_factory=lambda: Budget(limit=BODY_BYTES_HELD))
    clock: Callable[[], float] = time.monotonic
    bus_connected: Callable[[], bool] = lambda: True
    placements: Placements = field(default_factory=Placements)
    explainer: Explainer = field(default_factory=MemoryExplainer)
    idempotency: Idempotency = field(default_factory=Idempotency)
    jobs: Jobs = field(default_factory=Jobs)
    batches: Batches = field(default_factory=Batches)
    limits: Limiter = field(default_factory=MemoryLimiter)
    webhooks: WebhookStore = field(default_factory=MemoryWebhooks)
    webhook_networks: tuple[Network, ...] = ()
    """Where webhooks may go although it is not public."""
    costs: Estimates = field(default_factory=Estimates)
    gate: Gate = field(default_factory=Gate)
    metrics: Metrics = field(default_factory=Metrics)
    validators: Validators = field(default_factory=Validators)
    uploads: int = 0
    followers: int = 0
    resolver: Resolver = field(init=False)
    deployer: Deployer = field(init=False)
    curves: CurveDesk = field(init=False)

    def __post_init__(self) -> None:
        self.resolver = Resolver(self.registry)
        self.deployer = Deployer(
            registry=self.registry, blobs=self.blobs, signer=self.signer, placements=self.placements
        )
        self.curves = CurveDesk(self.registry)
