"""What the functions of a deploy may hold: their timeouts, GPUs and kept containers, by the limits of their tenant."""

from __future__ import annotations

from collections.abc import Iterable

from pilotlight_core.model.errors import BadInput
from pilotlight_core.model.limits import ReachedLimit
from pilotlight_core.model.spec import FunctionSpec
from pilotlight_gateway.tenancy.registry_port import RegistryPort
from pilotlight_gateway.tenancy.timeout_limit import check_seconds, longest_call_s


def check_holdings(registry: RegistryPort, tenant: str, app: str, specs: Iterable[FunctionSpec]) -> None:
    """Refuse a deploy of `specs` as `app` that would hold more than its tenant may.

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
    kept = sum(spec.min_containers for spec in specs)
    elsewhere = kept_containers(registry, tenant, except_app=app) if kept else 0
    what = f"its functions would keep {kept + elsewhere} containers, {elsewhere} of them of other apps"
    _check(kept + elsewhere if kept else 0, limits.floor_containers, "floor_containers", tenant, "min_containers", what)


def kept_containers(registry: RegistryPort, tenant: str, *, except_app: str = "") -> int:
    """The floors of a tenant's deployed functions together, without those of one app."""
    apps = (app for app in registry.iter_apps(tenant) if not app.stopped and app.app != except_app)
    versions = (registry.version(version) for app in apps for version in app.functions.values())
    return sum(version.spec.min_containers for version in versions if version is not None)


def _check_floor(spec: FunctionSpec, containers: int | None, tenant: str) -> None:
    what = f"{spec.name} would keep {spec.min_containers} containers"
    _check(spec.min_containers, containers, "containers", tenant, "min_containers", what)


def _check(asked: int, allowed: int | None, limit: str, tenant: str, field: str, what: str) -> None:
    if allowed is not None and asked > allowed:
        reached = ReachedLimit(limit=limit, tenant=tenant, allowed=allowed, current=asked)
        raise BadInput(
            f"{field}: {what}, and the limit {limit} of {tenant} is {allowed}.", field=field, limits=(reached,)
        )
