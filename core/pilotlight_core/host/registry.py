"""The registry: tenants, keys, limits, apps and versions, as typed records over a live mirror.

    TENANCY   tenant.{tenant}        TenantRecord
              tier.{tier}            Tier             over the configured tier of that name
              limits.{tenant}        LimitsRecord     over its tier's limits
              key.{key id}           KeyRecord
              budget.{tenant}        BudgetsRecord    what it may spend
              credit.{tenant}        CreditsRecord    what it has paid ahead
              node.{node}            NodeRecord       its identity, labels and state
              join.{token id}        JoinTokenRecord  by which one node may join
              issuer.{issuer}        IssuerRecord     whose tokens are taken, and what their claims stand for
              pool.{pool}            PoolRecord       machines that may be launched
              launch.{pool}.{slot}   LaunchRecord     a machine that was asked for, until it is gone
              session.{session id}   SessionRecord    a login in a browser, or the code of a link to one
    REGISTRY  app.{tenant}.{app}     AppRecord        replaced by compare-and-set: a deploy is atomic for the app
              share.{tenant}.{app}   FunctionShareRecord      other tenants that may call the app's functions
              scale.{tenant}.{app}.{function}  ScaleRecord  people's word about the size of a function
              rollout.{tenant}.{app} RolloutRecord    aliases, and how the app's traffic is split
              version.{version id}   VersionRecord    immutable
              curves.{version id}    CurvesRecord     its throughput curves, measured and learnt
              price.{price}          PriceRecord      its rates over time, over those of the price book
              weights.{tenant}.{name}  WeightsRecord  what a tenant has pushed under a name
              model.{tenant}.{digest}  ModelRecord    which function a model's name is of
              file.{tenant}.{file id}  FileRecord     a file that a tenant has uploaded
               policy., verdict.       see `policy_registry`

Plain methods answer from memory; the async ones of the same name read from the bus what memory lacks. Callers that
decide on a record check `fresh` and fail closed: a disconnected mirror may miss that a key was revoked.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator, Mapping
from types import TracebackType
from typing import Any

import msgspec

from pilotlight_core.bus import Bus, KeyConflict
from pilotlight_core.host.effective_limits import Allowances
from pilotlight_core.host.records.named_records import NamedRecords, rollout_key, scale_key
from pilotlight_core.host.records.policy_registry import PolicyRegistry
from pilotlight_core.host.records.registry_records import OnRecord, RegistryRecords
from pilotlight_core.model.api.curve_api import CurvesRecord
from pilotlight_core.model.errors import Conflict
from pilotlight_core.model.ids import check_name
from pilotlight_core.model.limits import EffectiveLimits, Limits, Tier, load_tiers
from pilotlight_core.model.money.budgets import BudgetsRecord
from pilotlight_core.model.money.credits import CreditsRecord
from pilotlight_core.model.price_book import PriceRecord, check_price
from pilotlight_core.model.records.issuers import ISSUER_KEYS, IssuerRecord
from pilotlight_core.model.records.nodes import NODE_KEYS, JoinTokenRecord, NodeRecord
from pilotlight_core.model.records.pools import LAUNCH_KEYS, POOL_KEYS, LaunchRecord, PoolRecord
from pilotlight_core.model.records.sessions import SESSION_KEYS, SessionRecord
from pilotlight_core.model.scaling.scale_record import ScaleRecord
from pilotlight_core.model.served.model_records import ModelRecord
from pilotlight_core.model.spec import AppRecord, VersionRecord
from pilotlight_core.model.tenancy import FunctionShareRecord, KeyRecord, LimitsRecord, TenantRecord

__all__ = ["FunctionShareRecord", "KeyRecord", "LimitsRecord", "OnRecord", "Registry", "TenantRecord"]

_CHANGED = "The app {app} was changed meanwhile; read it and try again."


class Registry(NamedRecords):
    """The registry in one process; an async context manager, which reads all records on entry.

    `tiers` are the configured ones (default: the standard tiers). The methods `change_…` take a pure function from the
    present record (None: there is none) to the next one; it may raise to refuse. After a conflict it is called again,
    so that no change is lost; repeated conflicts raise Conflict.
    """

    def __init__(self, bus: Bus, tiers: Mapping[str, Tier] | None = None) -> None:
        self._records = RegistryRecords(bus, self._changed)
        self.policies = PolicyRegistry(self._records)
        self._allowances = Allowances(self._records.present, load_tiers() if tiers is None else tiers)
        self.on_change: list[OnRecord] = []
        """Plain, fast functions, called from the read loop for each changed record."""

    async def __aenter__(self) -> Registry:
        await self._records.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._records.__aexit__(kind, error, trace)

    def fresh(self, at: float | None = None) -> bool:
        """Whether its answers may be relied on at `at` (monotonic seconds; default: now)."""
        return self._records.fresh(time.monotonic() if at is None else at)

    def age(self, at: float) -> float:
        return self._records.age(at)

    # -- tenants and keys ---------------------------------------------------------------------------------------

    def tenant_nowait(self, name: str) -> TenantRecord | None:
        return self._records.get(f"tenant.{name}", TenantRecord)

    async def tenant(self, name: str) -> TenantRecord | None:
        return await self._records.fetch(f"tenant.{name}", TenantRecord)

    def is_erased(self, name: str) -> bool:
        """Whether a tenant was erased, or that was begun."""
        tenant = self.tenant_nowait(name)
        return tenant is not None and tenant.erased_at > 0

    async def put_tenant(self, record: TenantRecord) -> None:
        check_name(record.name, "tenant")
        await self._records.put(f"tenant.{record.name}", record)

    async def change_tenant(self, name: str, change: Callable[[TenantRecord | None], TenantRecord]) -> TenantRecord:
        return await self._records.change(f"tenant.{check_name(name, 'tenant')}", change)

    def tenants(self) -> Iterator[TenantRecord]:
        return self._records.each("tenant.", TenantRecord)

    def key_nowait(self, key_id: str) -> KeyRecord | None:
        return self._records.get(f"key.{key_id}", KeyRecord)

    async def key(self, key_id: str) -> KeyRecord | None:
        return await self._records.fetch(f"key.{key_id}", KeyRecord)

    async def put_key(self, record: KeyRecord) -> None:
        check_name(record.id, "key")
        await self._records.put(f"key.{record.id}", record)

    async def change_key(self, key_id: str, change: Callable[[KeyRecord | None], KeyRecord | None]) -> KeyRecord | None:
        return await self._records.change(f"key.{check_name(key_id, 'key')}", change)

    def keys(self, tenant: str | None = None) -> Iterator[KeyRecord]:
        return (key for key in self._records.each("key.", KeyRecord) if tenant in (None, key.tenant))

    def session_nowait(self, session: str) -> SessionRecord | None:
        return self._records.get(f"{SESSION_KEYS}{session}", SessionRecord)

    async def session(self, session: str) -> SessionRecord | None:
        return await self._records.fetch(f"{SESSION_KEYS}{check_name(session, 'session')}", SessionRecord)

    def sessions(self) -> Iterator[SessionRecord]:
        return self._records.each(SESSION_KEYS, SessionRecord)

    async def change_session(
        self, session: str, change: Callable[[SessionRecord | None], SessionRecord | None]
    ) -> SessionRecord | None:
        return await self._records.change(f"{SESSION_KEYS}{check_name(session, 'session')}", change)

    # -- issuers of tokens --------------------------------------------------------------------------------------

    def issuers(self) -> Iterator[IssuerRecord]:
        return self._records.each(ISSUER_KEYS, IssuerRecord)

    async def change_issuer(
        self, issuer: str, change: Callable[[IssuerRecord | None], IssuerRecord | None]
    ) -> IssuerRecord | None:
        return await self._records.change(f"{ISSUER_KEYS}{check_name(issuer, 'issuer')}", change)

    # -- nodes --------------------------------------------------------------------------------------------------

    def node_nowait(self, node: str) -> NodeRecord | None:
        return self._records.get(f"{NODE_KEYS}{node}", NodeRecord)

    async def node(self, node: str) -> NodeRecord | None:
        """The node's record, from the bus."""
        return (await self._records.read(f"{NODE_KEYS}{check_name(node, 'node')}", NodeRecord))[0]

    def nodes(self) -> Iterator[NodeRecord]:
        return self._records.each(NODE_KEYS, NodeRecord)

    async def change_node(
        self, node: str, change: Callable[[NodeRecord | None], NodeRecord | None]
    ) -> NodeRecord | None:
        return await self._records.change(f"{NODE_KEYS}{check_name(node, 'node')}", change)

    def join_tokens(self) -> Iterator[JoinTokenRecord]:
        return self._records.each("join.", JoinTokenRecord)

    async def change_join_token(
        self, token: str, change: Callable[[JoinTokenRecord | None], JoinTokenRecord | None]
    ) -> JoinTokenRecord | None:
        return await self._records.change(f"join.{check_name(token, 'token')}", change)

    # -- pools of nodes -----------------------------------------------------------------------------------------

    def pools(self) -> Iterator[PoolRecord]:
        return self._records.each(POOL_KEYS, PoolRecord)

    async def pool(self, name: str) -> PoolRecord | None:
        """The pool's record, from the bus."""
        return (await self._records.read(f"{POOL_KEYS}{check_name(name, 'pool')}", PoolRecord))[0]

    async def change_pool(
        self, name: str, change: Callable[[PoolRecord | None], PoolRecord | None]
    ) -> PoolRecord | None:
        return await self._records.change(f"{POOL_KEYS}{check_name(name, 'pool')}", change)

    def launches(self) -> Iterator[LaunchRecord]:
        return self._records.each(LAUNCH_KEYS, LaunchRecord)

    async def change_launch(
        self, pool: str, slot: int, change: Callable[[LaunchRecord | None], LaunchRecord | None]
    ) -> LaunchRecord | None:
        return await self._records.change(f"{LAUNCH_KEYS}{check_name(pool, 'pool')}.{slot}", change)

    # -- what tenants are allowed -------------------------------------------------------------------------------

    def limits(self, tenant: str, function: str) -> EffectiveLimits:
        return self._allowances.limits(tenant, function)

    def tier_of(self, tenant: str) -> Tier:
        return self._allowances.tier_of(tenant)

    def own_limits(self, tenant: str) -> Limits:
        """What is set for a tenant over its tier's limits."""
        return self._allowances.own(tenant)

    def weight_of(self, tenant: str) -> float:
        return self._allowances.weight_of(tenant)

    def tier(self, name: str) -> Tier | None:
        return self._allowances.tier(name)

    def tier_configured(self, name: str) -> Tier | None:
        """The configured tier, without the registry's record."""
        return self._allowances.configured(name)

    def tiers(self) -> list[Tier]:
        return self._allowances.tiers()

    async def change_tier(self, name: str, change: Callable[[Tier | None], Tier | None]) -> Tier | None:
        """Change the registry's record of a tier; None removes it, which restores the configured tier."""
        return await self._records.change(f"tier.{check_name(name, 'tier')}", change)

    async def limits_set(self, tenant: str) -> LimitsRecord | None:
        """The operator's limits for the tenant, from the bus."""
        key = f"limits.{check_name(tenant, 'tenant')}"
        return (await self._records.read(key, LimitsRecord))[0]

    async def change_limits(self, tenant: str, change: Callable[[LimitsRecord | None], LimitsRecord]) -> LimitsRecord:
        return await self._records.change(f"limits.{check_name(tenant, 'tenant')}", change)

    def budgets(self, tenant: str) -> BudgetsRecord | None:
        return self._records.get(f"budget.{tenant}", BudgetsRecord)

    def each_budgets(self) -> Iterator[BudgetsRecord]:
        return self._records.each("budget.", BudgetsRecord)

    async def change_budgets(
        self, tenant: str, change: Callable[[BudgetsRecord | None], BudgetsRecord | None]
    ) -> BudgetsRecord | None:
        return await self._records.change(f"budget.{check_name(tenant, 'tenant')}", change)

    def credits(self, tenant: str) -> CreditsRecord | None:
        return self._records.get(f"credit.{tenant}", CreditsRecord)

    async def change_credits(
        self, tenant: str, change: Callable[[CreditsRecord | None], CreditsRecord]
    ) -> CreditsRecord:
        return await self._records.change(f"credit.{check_name(tenant, 'tenant')}", change)

    # -- prices ---------------------------------------------------------------------------------------------------

    def prices(self) -> Iterator[PriceRecord]:
        return self._records.each("price.", PriceRecord)

    async def change_price(
        self, price: str, change: Callable[[PriceRecord | None], PriceRecord | None]
    ) -> PriceRecord | None:
        return await self._records.change(f"price.{check_price(price)}", change)

    # -- shared functions ---------------------------------------------------------------------------------------

    def share_nowait(self, owner: str, app: str) -> FunctionShareRecord | None:
        return self._records.get(f"share.{owner}.{app}", FunctionShareRecord)

    async def share(self, owner: str, app: str) -> FunctionShareRecord | None:
        """The app's share record, from the bus."""
        key = f"share.{check_name(owner, 'tenant')}.{check_name(app, 'app')}"
        return (await self._records.read(key, FunctionShareRecord))[0]

    async def change_share(
        self, owner: str, app: str, change: Callable[[FunctionShareRecord | None], FunctionShareRecord]
    ) -> FunctionShareRecord:
        return await self._records.change(f"share.{check_name(owner, 'tenant')}.{check_name(app, 'app')}", change)

    def shares(self) -> Iterator[FunctionShareRecord]:
        return self._records.each("share.", FunctionShareRecord)

    # -- apps and versions --------------------------------------------------------------------------------------

    def app_nowait(self, tenant: str, app: str) -> AppRecord | None:
        return self._records.get(f"app.{tenant}.{app}", AppRecord)

    async def app(self, tenant: str, app: str) -> AppRecord | None:
        """The app's record, read from the bus, as a deploy requires."""
        key = f"app.{tenant}.{app}"
        return (await self._records.read(key, AppRecord))[0]

    def iter_apps(self, tenant: str | None = None) -> Iterator[AppRecord]:
        return self._records.each("app." if tenant is None else f"app.{tenant}.", AppRecord)

    def version(self, version_id: str) -> VersionRecord | None:
        return self._records.get(f"version.{version_id}", VersionRecord)

    async def fetch_version(self, version_id: str) -> VersionRecord | None:
        """The version, from the bus if memory lacks it."""
        return await self._records.fetch(f"version.{version_id}", VersionRecord)

    async def put_version(self, record: VersionRecord) -> None:
        """Store a version. Storing it again is allowed, and renews it: whoever was about to delete it fails.

        Raises:
            Conflict: if its id belongs to another function, or it was changed meanwhile.
        """
        key = f"version.{check_name(record.id, 'version')}"
        kept, revision = await self._records.read(key, VersionRecord)
        if kept is not None:
            if (kept.tenant, kept.app, kept.function) != (record.tenant, record.app, record.function):
                raise Conflict(f"The version {record.id} belongs to something else.")
            # A gateway of 0.1 may have stored it, which knows none of these.
            record = msgspec.structs.replace(
                kept,
                renewed_at=record.created_at,
                base=record.base,
                needs=record.needs,
                artifacts=record.artifacts,
                manifest_sha256=record.manifest_sha256,  # the same bytes, perhaps signed with another key
                evidence=record.evidence or kept.evidence,
            )
        try:
            await self._records.replace(key, record, revision)
        except KeyConflict:
            raise Conflict(f"The version {record.id} was changed meanwhile; try again.") from None

    def curves(self, version_id: str) -> CurvesRecord | None:
        return self._records.get(f"curves.{version_id}", CurvesRecord)

    async def change_curves(
        self, version_id: str, change: Callable[[CurvesRecord | None], CurvesRecord]
    ) -> CurvesRecord:
        return await self._records.change(f"curves.{check_name(version_id, 'version')}", change)

    async def deploy(self, record: AppRecord, expected_revision: int) -> None:
        """Replace an app's record, if it is still at `expected_revision` (0: there is none yet).

        `record.revision` must be the next one, so that no two writers can both succeed the same state.

        Raises:
            Conflict: after another change of the app.
        """
        if record.revision != expected_revision + 1:
            raise ValueError(f"revision {record.revision} does not follow {expected_revision}")
        key = f"app.{check_name(record.tenant, 'tenant')}.{check_name(record.app, 'app')}"
        present, at = await self._records.read(key, AppRecord)
        if (present.revision if present is not None else 0) != expected_revision:
            raise Conflict(_CHANGED.format(app=record.app))
        try:
            await self._records.replace(key, record, at)
        except KeyConflict:
            raise Conflict(_CHANGED.format(app=record.app)) from None

    async def delete_app(self, record: AppRecord) -> None:
        """Delete an app's share and record, if it is still at `record.revision`, then what people said of its
        functions, and its versions with their curves.

        It is stopped first, which another change of it prevents: one that goes on keeps its share.
        A version that another deploy stores anew meanwhile stays; one that a crash leaves is deleted by the duties.

        Raises:
            Conflict: after another change of the app.
        """
        name = f"{record.tenant}.{record.app}"
        present, at = await self._records.read(f"app.{name}", AppRecord)
        if present is None or present.revision != record.revision:
            raise Conflict(_CHANGED.format(app=record.app))
        before = {f"version.{one.id}": one.id for one in self.versions(record.tenant) if one.app == record.app}
        revisions = {key: self._records.revision(key) for key in before}
        share, share_at = await self._records.read(f"share.{name}", FunctionShareRecord)
        stopped = msgspec.structs.replace(record, stopped=True, revision=record.revision + 1)
        try:
            await self._records.replace(f"app.{name}", stopped, at)
            present, at = await self._records.read(f"app.{name}", AppRecord)
            if present != stopped:
                raise Conflict(_CHANGED.format(app=record.app))
            # The share first: whoever takes the name next must not share with strangers unawares.
            if share is not None:
                await self._records.remove(f"share.{name}", share_at)
            await self._records.remove(f"app.{name}", at)
        except KeyConflict:
            raise Conflict(_CHANGED.format(app=record.app)) from None
        await self._records.remove(rollout_key(record.tenant, record.app))
        for scale in self._records.each(f"scale.{name}.", ScaleRecord):
            await self._records.remove(scale_key(scale.tenant, scale.app, scale.function))
        for model in [one for one in self.iter_models(record.tenant) if one.app == record.app]:
            await self.change_model(model.tenant, model.name, lambda held: _unless_of(held, record.app))
        for key, version_id in before.items():
            with contextlib.suppress(KeyConflict):
                await self._records.remove(key, revisions[key])
                for kind in ("curves", "verdict"):
                    await self._records.remove(f"{kind}.{version_id}")

    def versions(self, tenant: str | None = None) -> Iterator[VersionRecord]:
        versions = self._records.each("version.", VersionRecord)
        return (version for version in versions if tenant in (None, version.tenant))

    def bytes_of(self, tenant: str) -> int:
        """The bytes of the tenant's apps, versions, shares, curves, scales and weights."""
        return self._records.bytes_of(tenant)

    def _changed(self, key: str, record: Any) -> None:
        self._allowances.changed(key)
        for callback in self.on_change:
            callback(key, record)


def _unless_of(held: ModelRecord | None, app: str) -> ModelRecord | None:
    """The name as it stays when an app is deleted: another one may have it by now."""
    return None if held is None or held.app == app else held
