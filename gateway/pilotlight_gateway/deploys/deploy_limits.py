"""What the functions of a deploy may hold: their timeouts, GPUs and kept containers, by the limits of their tenant."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from pilotlight_core.model.errors import BadInput
from pilotlight_core.model.limits import Limits, ReachedLimit
from pilotlight_core.model.scaling.scale_bounds import most_kept
from pilotlight_core.model.scaling.scale_record import ScaleRecord
from pilotlight_core.model.spec import FunctionSpec, VersionRecord
from pilotlight_gateway.tenancy.registry_port import RegistryPort
from pilotlight_gateway.tenancy.timeout_limit import check_seconds, longest_call_s


def check_holdings(registry: RegistryPort, tenant: str, app: str, specs: Iterable[FunctionSpec], at: float) -> None:
    """Refuse a deploy of `specs` as `app`, at the unix second `at`, that would hold more than its tenant may.

    Raises:
        BadInput: naming the field, the limit and its value.
    """
    specs = tuple(specs)
    limits = registry.limits(tenant, "").tenant
    for spec in specs:
        allowed_s = longest_call_s(registry, tenant, f"{tenant}:{app}.{spec.name}")
        check_seconds(spec.timeout, allowed_s, tenant, f"timeout of {spec.name}")
        check_seconds(spec.startup_timeout, allowed_s, tenant, f"startup_timeout of {spec.name}")
        _check(spec.gpus, limits.gpus, "gpus", tenant, "gpu", f"a container of {spec.name} may have {spec.gpus} GPUs")
        _check_floor(spec, limits.containers, tenant)
    kept = sum(most_kept(spec, registry.scale_nowait(tenant, app, spec.name), at) for spec in specs)
    elsewhere = kept_containers(registry, tenant, at, except_app=app) if kept else 0
    _check_kept(kept + elsewhere if kept else 0, elsewhere, limits, tenant, "of other apps")


def check_override(
    registry: RegistryPort, version: VersionRecord, before: ScaleRecord | None, after: ScaleRecord, at: float
) -> None:
    """Refuse people's word about a function by which its tenant would keep more than it may; less is never refused.

    Raises:
        BadInput: naming the limit and its value.
    """
    tenant = version.tenant
    limits, kept = registry.limits(tenant, "").tenant, most_kept(version.spec, after, at)
    if kept <= most_kept(version.spec, before, at):
        return
    what = f"{version.function} would keep {kept} containers"
    _check(kept, limits.containers, "containers", tenant, "min_containers", what)
    own = (version.app, version.function)
    elsewhere = sum(count for name, count in _kept_by(registry, tenant, at) if name != own)
    _check_kept(kept + elsewhere, elsewhere, limits, tenant, "of other functions")


def kept_containers(registry: RegistryPort, tenant: str, at: float, *, except_app: str = "") -> int:
    """The most that a tenant's deployed functions keep together from the unix second `at` on, without one app's."""
    return sum(count for (app, _), count in _kept_by(registry, tenant, at) if app != except_app)


def _kept_by(registry: RegistryPort, tenant: str, at: float) -> Iterator[tuple[tuple[str, str], int]]:
    """App and function, and the most that it keeps, of all that a tenant has deployed."""
    for app in registry.iter_apps(tenant):
        for name, id_ in app.functions.items() if not app.stopped else ():
            if (version := registry.version(id_)) is not None:
                record = registry.scale_nowait(tenant, app.app, name)
                yield (app.app, name), most_kept(version.spec, record, at)


def _check_kept(kept: int, elsewhere: int, limits: Limits, tenant: str, of: str) -> None:
    what = f"its functions would keep {kept} containers, {elsewhere} of them {of}"
    _check(kept, limits.floor_containers, "floor_containers", tenant, "min_containers", what)


def _check_floor(spec: FunctionSpec, containers: int | None, tenant: str) -> None:
    kept = most_kept(spec, None, 0.0)
    field = "min_containers" if kept == spec.min_containers else "warm"
    _check(kept, containers, "containers", tenant, field, f"{spec.name} would keep {kept} containers")


def _check(asked: int, allowed: int | None, limit: str, tenant: str, field: str, what: str) -> None:
    if allowed is not None and asked > allowed:
        reached = ReachedLimit(limit=limit, tenant=tenant, allowed=allowed, current=asked)
        raise BadInput(
            f"{field}: {what}, and the limit {limit} of {tenant} is {allowed}.", field=field, limits=(reached,)
        )
