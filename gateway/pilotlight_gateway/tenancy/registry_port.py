"""The port of the registry, which `core.host.registry.Registry` implements.

Plain methods answer from the mirror; async ones ask the bus on a miss.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Protocol, TypeVar

import msgspec

from pilotlight_core.host.effective_limits import Allowances
from pilotlight_core.host.price_records import PriceRegistry
from pilotlight_core.host.records.policy_registry import MemoryPolicies, PolicyBook
from pilotlight_core.host.registry import OnRecord
from pilotlight_core.model.api.curve_api import CurvesRecord
from pilotlight_core.model.errors import Conflict
from pilotlight_core.model.limits import EffectiveLimits, Limits, Tier, load_tiers
from pilotlight_core.model.money.budgets import BudgetsRecord
from pilotlight_core.model.money.credits import CreditsRecord
from pilotlight_core.model.price_book import PriceRecord, check_price
from pilotlight_core.model.records.files import FileRecord
from pilotlight_core.model.records.issuers import IssuerRecord
from pilotlight_core.model.records.nodes import JoinTokenRecord, NodeRecord
from pilotlight_core.model.records.pools import LaunchRecord, PoolRecord
from pilotlight_core.model.records.sessions import SessionRecord
from pilotlight_core.model.rollouts.rollout_record import RolloutRecord
from pilotlight_core.model.scaling.scale_record import ScaleRecord
from pilotlight_core.model.served.model_records import ModelRecord
from pilotlight_core.model.spec import AppRecord, VersionRecord
from pilotlight_core.model.tenancy import FunctionShareRecord, KeyRecord, LimitsRecord, TenantRecord
from pilotlight_core.model.versions.pushed_weights import WeightsRecord

K = TypeVar("K")
W = TypeVar("W", bound=msgspec.Struct | None)
ChangeTenant = Callable[[TenantRecord | None], TenantRecord]
ChangeKey = Callable[[KeyRecord | None], KeyRecord | None]
ChangeSession = Callable[[SessionRecord | None], SessionRecord | None]
ChangeTier = Callable[[Tier | None], Tier | None]
ChangeLimits = Callable[[LimitsRecord | None], LimitsRecord]
ChangeBudgets = Callable[[BudgetsRecord | None], BudgetsRecord | None]
ChangeCredits = Callable[[CreditsRecord | None], CreditsRecord]
ChangeCurves = Callable[[CurvesRecord | None], CurvesRecord]
ChangeFunctionShare = Callable[[FunctionShareRecord | None], FunctionShareRecord]
ChangeIssuer = Callable[[IssuerRecord | None], IssuerRecord | None]
ChangeNode = Callable[[NodeRecord | None], NodeRecord | None]
ChangeJoinToken = Callable[[JoinTokenRecord | None], JoinTokenRecord | None]
ChangePool = Callable[[PoolRecord | None], PoolRecord | None]
ChangeLaunch = Callable[[LaunchRecord | None], LaunchRecord | None]
ChangeScale = Callable[[ScaleRecord | None], ScaleRecord | None]
ChangeRollout = Callable[[RolloutRecord | None], RolloutRecord | None]
ChangeFile = Callable[[FileRecord | None], FileRecord | None]
ChangeModel = Callable[[ModelRecord | None], ModelRecord | None]
ChangeWeights = Callable[[WeightsRecord | None], WeightsRecord | None]


class TenantRegistry(Protocol):
    """Tenants and keys."""

    @property
    def on_change(self) -> list[OnRecord]: ...
    def fresh(self, at: float | None = None) -> bool: ...
    def tenant_nowait(self, name: str) -> TenantRecord | None: ...
    async def tenant(self, name: str) -> TenantRecord | None: ...
    def is_erased(self, name: str) -> bool: ...
    async def put_tenant(self, record: TenantRecord) -> None: ...
    async def change_tenant(self, name: str, change: ChangeTenant) -> TenantRecord: ...
    def tenants(self) -> Iterator[TenantRecord]: ...
    def key_nowait(self, key_id: str) -> KeyRecord | None: ...
    async def key(self, key_id: str) -> KeyRecord | None: ...
    async def put_key(self, record: KeyRecord) -> None: ...
    async def change_key(self, key_id: str, change: ChangeKey) -> KeyRecord | None: ...
    def keys(self, tenant: str | None = None) -> Iterator[KeyRecord]: ...
    def session_nowait(self, session: str) -> SessionRecord | None: ...
    async def session(self, session: str) -> SessionRecord | None: ...
    def sessions(self) -> Iterator[SessionRecord]: ...
    async def change_session(self, session: str, change: ChangeSession) -> SessionRecord | None: ...


class LimitRegistry(Protocol):
    """Limits and tiers of tenants."""

    def limits(self, tenant: str, function: str) -> EffectiveLimits: ...
    def tier_of(self, tenant: str) -> Tier: ...
    def weight_of(self, tenant: str) -> float: ...
    def own_limits(self, tenant: str) -> Limits: ...
    def tier(self, name: str) -> Tier | None: ...
    def tier_configured(self, name: str) -> Tier | None: ...
    def tiers(self) -> list[Tier]: ...
    async def change_tier(self, name: str, change: ChangeTier) -> Tier | None: ...
    async def limits_set(self, tenant: str) -> LimitsRecord | None: ...
    async def change_limits(self, tenant: str, change: ChangeLimits) -> LimitsRecord: ...
    def budgets(self, tenant: str) -> BudgetsRecord | None: ...
    def each_budgets(self) -> Iterator[BudgetsRecord]: ...
    async def change_budgets(self, tenant: str, change: ChangeBudgets) -> BudgetsRecord | None: ...
    def credits(self, tenant: str) -> CreditsRecord | None: ...
    async def change_credits(self, tenant: str, change: ChangeCredits) -> CreditsRecord: ...


class IssuerRegistry(TenantRegistry, Protocol):
    """Issuers of tokens, and the tenants whom they stand for."""

    def issuers(self) -> Iterator[IssuerRecord]: ...
    async def change_issuer(self, issuer: str, change: ChangeIssuer) -> IssuerRecord | None: ...


class NodeRegistry(Protocol):
    """Nodes, the tokens by which they join, and pools of them."""

    @property
    def on_change(self) -> list[OnRecord]: ...
    def node_nowait(self, node: str) -> NodeRecord | None: ...
    async def node(self, node: str) -> NodeRecord | None: ...
    def nodes(self) -> Iterator[NodeRecord]: ...
    async def change_node(self, node: str, change: ChangeNode) -> NodeRecord | None: ...
    def join_tokens(self) -> Iterator[JoinTokenRecord]: ...
    async def change_join_token(self, token: str, change: ChangeJoinToken) -> JoinTokenRecord | None: ...
    def pools(self) -> Iterator[PoolRecord]: ...
    async def pool(self, name: str) -> PoolRecord | None: ...
    async def change_pool(self, name: str, change: ChangePool) -> PoolRecord | None: ...
    def launches(self) -> Iterator[LaunchRecord]: ...


class RolloutRegistry(Protocol):
    """Where the rollouts of an app are looked up: in memory."""

    def rollout_nowait(self, tenant: str, app: str) -> RolloutRecord | None: ...


class RegistryPort(IssuerRegistry, LimitRegistry, PriceRegistry, NodeRegistry, Protocol):
    """The whole registry, with apps, versions, curves, shares, scales, weights, models and files."""

    @property
    def policies(self) -> PolicyBook: ...
    def app_nowait(self, tenant: str, app: str) -> AppRecord | None: ...
    async def app(self, tenant: str, app: str) -> AppRecord | None: ...
    def iter_apps(self, tenant: str | None = None) -> Iterator[AppRecord]: ...
    def version(self, version_id: str) -> VersionRecord | None: ...
    async def fetch_version(self, version_id: str) -> VersionRecord | None: ...
    async def put_version(self, record: VersionRecord) -> None: ...
    def curves(self, version_id: str) -> CurvesRecord | None: ...
    async def change_curves(self, version_id: str, change: ChangeCurves) -> CurvesRecord: ...
    async def deploy(self, record: AppRecord, expected_revision: int) -> None: ...
    async def delete_app(self, record: AppRecord) -> None: ...
    def bytes_of(self, tenant: str) -> int: ...
    def share_nowait(self, owner: str, app: str) -> FunctionShareRecord | None: ...
    async def share(self, owner: str, app: str) -> FunctionShareRecord | None: ...
    async def change_share(self, owner: str, app: str, change: ChangeFunctionShare) -> FunctionShareRecord: ...
    def shares(self) -> Iterator[FunctionShareRecord]: ...
    def scale_nowait(self, tenant: str, app: str, function: str) -> ScaleRecord | None: ...
    async def scale(self, tenant: str, app: str, function: str) -> ScaleRecord | None: ...
    async def change_scale(self, tenant: str, app: str, function: str, change: ChangeScale) -> ScaleRecord | None: ...
    def rollout_nowait(self, tenant: str, app: str) -> RolloutRecord | None: ...
    async def rollout(self, tenant: str, app: str) -> RolloutRecord | None: ...
    def iter_rollouts(self) -> Iterator[RolloutRecord]: ...
    async def change_rollout(self, tenant: str, app: str, change: ChangeRollout) -> RolloutRecord | None: ...
    async def weights(self, tenant: str, name: str) -> WeightsRecord | None: ...
    def iter_weights(self, tenant: str) -> Iterator[WeightsRecord]: ...
    async def change_weights(self, tenant: str, name: str, change: ChangeWeights) -> WeightsRecord | None: ...
    def model_nowait(self, tenant: str, name: str) -> ModelRecord | None: ...
    async def model(self, tenant: str, name: str) -> ModelRecord | None: ...
    def iter_models(self, tenant: str) -> Iterator[ModelRecord]: ...
    async def change_model(self, tenant: str, name: str, change: ChangeModel) -> ModelRecord | None: ...
    async def file(self, tenant: str, file_id: str) -> FileRecord | None: ...
    def iter_files(self, tenant: str) -> Iterator[FileRecord]: ...
    async def change_file(self, tenant: str, file_id: str, change: ChangeFile) -> FileRecord | None: ...


standard_tiers = cache(load_tiers)


@dataclass(kw_only=True)
class MemoryRegistry:
    """An in-memory `RegistryPort`. Tests set `stale`, and `conflicts`, the number of deploys to refuse."""

    tenant_records: dict[str, TenantRecord] = field(default_factory=dict)
    key_records: dict[str, KeyRecord] = field(default_factory=dict)
    session_records: dict[str, SessionRecord] = field(default_factory=dict)
    tier_records: dict[str, Tier] = field(default_factory=dict)
    limit_records: dict[str, LimitsRecord] = field(default_factory=dict)
    budget_records: dict[str, BudgetsRecord] = field(default_factory=dict)
    credit_records: dict[str, CreditsRecord] = field(default_factory=dict)
    price_records: dict[str, PriceRecord] = field(default_factory=dict)
    share_records: dict[tuple[str, str], FunctionShareRecord] = field(default_factory=dict)
    scale_records: dict[tuple[str, str, str], ScaleRecord] = field(default_factory=dict)
    rollout_records: dict[tuple[str, str], RolloutRecord] = field(default_factory=dict)
    weights_records: dict[tuple[str, str], WeightsRecord] = field(default_factory=dict)
    model_records: dict[tuple[str, str], ModelRecord] = field(default_factory=dict)
    file_records: dict[tuple[str, str], FileRecord] = field(default_factory=dict)
    issuer_records: dict[str, IssuerRecord] = field(default_factory=dict)
    node_records: dict[str, NodeRecord] = field(default_factory=dict)
    join_records: dict[str, JoinTokenRecord] = field(default_factory=dict)
    pool_records: dict[str, PoolRecord] = field(default_factory=dict)
    launch_records: dict[str, LaunchRecord] = field(default_factory=dict)
    """By pool and slot, with a dot between."""
    apps: dict[tuple[str, str], AppRecord] = field(default_factory=dict)
    versions: dict[str, VersionRecord] = field(default_factory=dict)
    curve_records: dict[str, CurvesRecord] = field(default_factory=dict)
    policies: MemoryPolicies = field(default_factory=MemoryPolicies)
    stale: bool = False
    conflicts: int = 0
    on_change: list[OnRecord] = field(default_factory=list)

    def fresh(self, at: float | None = None) -> bool:  # noqa: ARG002
        return not self.stale

    def tenant_nowait(self, name: str) -> TenantRecord | None:
        return self.tenant_records.get(name)

    async def tenant(self, name: str) -> TenantRecord | None:
        return self.tenant_records.get(name)

    def is_erased(self, name: str) -> bool:
        tenant = self.tenant_records.get(name)
        return tenant is not None and tenant.erased_at > 0

    async def put_tenant(self, record: TenantRecord) -> None:
        self._change("tenant", self.tenant_records, record.name, lambda _: record)

    async def change_tenant(self, name: str, change: ChangeTenant) -> TenantRecord:
        return self._change("tenant", self.tenant_records, name, change)

    def tenants(self) -> Iterator[TenantRecord]:
        return iter(list(self.tenant_records.values()))

    def key_nowait(self, key_id: str) -> KeyRecord | None:
        return self.key_records.get(key_id)

    async def key(self, key_id: str) -> KeyRecord | None:
        return self.key_records.get(key_id)

    async def put_key(self, record: KeyRecord) -> None:
        self._change("key", self.key_records, record.id, lambda _: record)

    async def change_key(self, key_id: str, change: ChangeKey) -> KeyRecord | None:
        return self._change("key", self.key_records, key_id, change)

    def keys(self, tenant: str | None = None) -> Iterator[KeyRecord]:
        return iter([key for key in self.key_records.values() if tenant in (None, key.tenant)])

    def session_nowait(self, session: str) -> SessionRecord | None:
        return self.session_records.get(session)

    async def session(self, session: str) -> SessionRecord | None:
        return self.session_records.get(session)

    def sessions(self) -> Iterator[SessionRecord]:
        return iter(list(self.session_records.values()))

    async def change_session(self, session: str, change: ChangeSession) -> SessionRecord | None:
        return self._change("session", self.session_records, session, change)

    def limits(self, tenant: str, function: str) -> EffectiveLimits:
        return self._allowances().limits(tenant, function)

    def tier_of(self, tenant: str) -> Tier:
        return self._allowances().tier_of(tenant)

    def weight_of(self, tenant: str) -> float:
        return self._allowances().weight_of(tenant)

    def own_limits(self, tenant: str) -> Limits:
        return self._allowances().own(tenant)

    def tier(self, name: str) -> Tier | None:
        return self._allowances().tier(name)

    def tier_configured(self, name: str) -> Tier | None:
        return standard_tiers().get(name)

    def tiers(self) -> list[Tier]:
        return self._allowances().tiers()

    async def change_tier(self, name: str, change: ChangeTier) -> Tier | None:
        return self._change("tier", self.tier_records, name, change)

    async def limits_set(self, tenant: str) -> LimitsRecord | None:
        return self.limit_records.get(tenant)

    async def change_limits(self, tenant: str, change: ChangeLimits) -> LimitsRecord:
        return self._change("limits", self.limit_records, tenant, change)

    def budgets(self, tenant: str) -> BudgetsRecord | None:
        return self.budget_records.get(tenant)

    def each_budgets(self) -> Iterator[BudgetsRecord]:
        return iter(list(self.budget_records.values()))

    async def change_budgets(self, tenant: str, change: ChangeBudgets) -> BudgetsRecord | None:
        return self._change("budget", self.budget_records, tenant, change)

    def credits(self, tenant: str) -> CreditsRecord | None:
        return self.credit_records.get(tenant)

    async def change_credits(self, tenant: str, change: ChangeCredits) -> CreditsRecord:
        return self._change("credit", self.credit_records, tenant, change)

    def issuers(self) -> Iterator[IssuerRecord]:
        return iter(list(self.issuer_records.values()))

    async def change_issuer(self, issuer: str, change: ChangeIssuer) -> IssuerRecord | None:
        return self._change("issuer", self.issuer_records, issuer, change)

    def node_nowait(self, node: str) -> NodeRecord | None:
        return self.node_records.get(node)

    async def node(self, node: str) -> NodeRecord | None:
        return self.node_records.get(node)

    def nodes(self) -> Iterator[NodeRecord]:
        return iter(list(self.node_records.values()))

    async def change_node(self, node: str, change: ChangeNode) -> NodeRecord | None:
        return self._change("node", self.node_records, node, change)

    def join_tokens(self) -> Iterator[JoinTokenRecord]:
        return iter(list(self.join_records.values()))

    async def change_join_token(self, token: str, change: ChangeJoinToken) -> JoinTokenRecord | None:
        return self._change("join", self.join_records, token, change)

    def pools(self) -> Iterator[PoolRecord]:
        return iter(list(self.pool_records.values()))

    async def pool(self, name: str) -> PoolRecord | None:
        return self.pool_records.get(name)

    async def change_pool(self, name: str, change: ChangePool) -> PoolRecord | None:
        return self._change("pool", self.pool_records, name, change)

    def launches(self) -> Iterator[LaunchRecord]:
        return iter(list(self.launch_records.values()))

    async def change_launch(self, pool: str, slot: int, change: ChangeLaunch) -> LaunchRecord | None:
        return self._change("launch", self.launch_records, f"{pool}.{slot}", change)

    def prices(self) -> Iterator[PriceRecord]:
        return iter(self.price_records.values())

    async def change_price(
        self, price: str, change: Callable[[PriceRecord | None], PriceRecord | None]
    ) -> PriceRecord | None:
        return self._change("price", self.price_records, check_price(price), change)

    def app_nowait(self, tenant: str, app: str) -> AppRecord | None:
        return self.apps.get((tenant, app))

    async def app(self, tenant: str, app: str) -> AppRecord | None:
        return self.apps.get((tenant, app))

    def iter_apps(self, tenant: str | None = None) -> Iterator[AppRecord]:
        return iter([app for app in self.apps.values() if tenant in (None, app.tenant)])

    def version(self, version_id: str) -> VersionRecord | None:
        return self.versions.get(version_id)

    async def fetch_version(self, version_id: str) -> VersionRecord | None:
        return self.versions.get(version_id)

    async def put_version(self, record: VersionRecord) -> None:
        kept = self.versions.get(record.id, record)
        self.versions[record.id] = msgspec.structs.replace(
            kept, manifest_sha256=record.manifest_sha256, evidence=record.evidence or kept.evidence
        )

    def curves(self, version_id: str) -> CurvesRecord | None:
        return self.curve_records.get(version_id)

    async def change_curves(self, version_id: str, change: ChangeCurves) -> CurvesRecord:
        return self._change("curves", self.curve_records, version_id, change)

    async def deploy(self, record: AppRecord, expected_revision: int) -> None:
        present = self.apps.get((record.tenant, record.app))
        if self.conflicts or (present.revision if present else 0) != expected_revision:
            self.conflicts = max(0, self.conflicts - 1)
            raise Conflict(f"The app {record.app} was changed meanwhile; read it and deploy again.")
        self.apps[record.tenant, record.app] = record

    async def delete_app(self, record: AppRecord) -> None:
        present = self.apps.get((record.tenant, record.app))
        if present is not None and present.revision != record.revision:
            raise Conflict(f"The app {record.app} was changed meanwhile; read it and try again.")
        self.apps.pop((record.tenant, record.app), None)
        self.share_records.pop((record.tenant, record.app), None)
        self.rollout_records.pop((record.tenant, record.app), None)
        for key in [key for key in self.scale_records if key[:2] == (record.tenant, record.app)]:
            del self.scale_records[key]
        for name in [model.name for model in self.iter_models(record.tenant) if model.app == record.app]:
            del self.model_records[record.tenant, name]
        of_app = [one.id for one in self.versions.values() if (one.tenant, one.app) == (record.tenant, record.app)]
        for version_id in of_app:
            del self.versions[version_id]
            self.curve_records.pop(version_id, None)

    def bytes_of(self, tenant: str) -> int:
        named = (
            self.apps,
            self.versions,
            self.share_records,
            self.scale_records,
            self.rollout_records,
            self.weights_records,
            self.model_records,
        )
        records: list[Any] = [record for records in named for record in records.values()]
        return sum(len(msgspec.msgpack.encode(record)) for record in records if record.tenant == tenant)

    def share_nowait(self, owner: str, app: str) -> FunctionShareRecord | None:
        return self.share_records.get((owner, app))

    async def share(self, owner: str, app: str) -> FunctionShareRecord | None:
        return self.share_records.get((owner, app))

    async def change_share(self, owner: str, app: str, change: ChangeFunctionShare) -> FunctionShareRecord:
        return self._change("share", self.share_records, (owner, app), change)

    def shares(self) -> Iterator[FunctionShareRecord]:
        return iter(list(self.share_records.values()))

    def scale_nowait(self, tenant: str, app: str, function: str) -> ScaleRecord | None:
        return self.scale_records.get((tenant, app, function))

    async def scale(self, tenant: str, app: str, function: str) -> ScaleRecord | None:
        return self.scale_records.get((tenant, app, function))

    async def change_scale(self, tenant: str, app: str, function: str, change: ChangeScale) -> ScaleRecord | None:
        return self._change("scale", self.scale_records, (tenant, app, function), change)

    def rollout_nowait(self, tenant: str, app: str) -> RolloutRecord | None:
        return self.rollout_records.get((tenant, app))

    async def rollout(self, tenant: str, app: str) -> RolloutRecord | None:
        return self.rollout_records.get((tenant, app))

    def iter_rollouts(self) -> Iterator[RolloutRecord]:
        return iter(list(self.rollout_records.values()))

    async def change_rollout(self, tenant: str, app: str, change: ChangeRollout) -> RolloutRecord | None:
        return self._change("rollout", self.rollout_records, (tenant, app), change)

    async def weights(self, tenant: str, name: str) -> WeightsRecord | None:
        return self.weights_records.get((tenant, name))

    def iter_weights(self, tenant: str) -> Iterator[WeightsRecord]:
        return iter([record for key, record in self.weights_records.items() if key[0] == tenant])

    async def change_weights(self, tenant: str, name: str, change: ChangeWeights) -> WeightsRecord | None:
        return self._change("weights", self.weights_records, (tenant, name), change)

    def model_nowait(self, tenant: str, name: str) -> ModelRecord | None:
        return self.model_records.get((tenant, name))

    async def model(self, tenant: str, name: str) -> ModelRecord | None:
        return self.model_records.get((tenant, name))

    def iter_models(self, tenant: str) -> Iterator[ModelRecord]:
        return iter([record for key, record in self.model_records.items() if key[0] == tenant])

    async def change_model(self, tenant: str, name: str, change: ChangeModel) -> ModelRecord | None:
        return self._change("model", self.model_records, (tenant, name), change)

    async def file(self, tenant: str, file_id: str) -> FileRecord | None:
        return self.file_records.get((tenant, file_id))

    def iter_files(self, tenant: str) -> Iterator[FileRecord]:
        return iter([record for key, record in self.file_records.items() if key[0] == tenant])

    async def change_file(self, tenant: str, file_id: str, change: ChangeFile) -> FileRecord | None:
        return self._change("file", self.file_records, (tenant, file_id), change)

    def _change(self, kind: str, records: dict[K, Any], name: K, change: Callable[[Any], W]) -> W:
        record = change(records.get(name))
        if record is None:
            records.pop(name, None)
        else:
            records[name] = record
        for callback in self.on_change:
            callback(f"{kind}.{name}", record)
        return record

    def _allowances(self) -> Allowances:
        named = {f"tenant.{name}": record for name, record in self.tenant_records.items()}
        more = {f"tier.{name}": record for name, record in self.tier_records.items()}
        own = {f"limits.{name}": record for name, record in self.limit_records.items()}
        return Allowances(named | more | own, standard_tiers())
