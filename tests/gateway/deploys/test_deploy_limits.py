"""What a deploy may hold: each field that holds more than its tenant's limit is refused, naming both."""

from __future__ import annotations

from typing import Any

import pytest

from pilotlight_core.model.errors import BadInput
from pilotlight_core.model.limits import Limits
from pilotlight_core.model.spec import AppRecord
from pilotlight_core.model.tenancy import LimitsRecord, TenantRecord
from pilotlight_core.model.units import GpuAsk
from pilotlight_gateway.deploys.deploy_limits import check_holdings, kept_containers
from pilotlight_gateway.tenancy.registry_port import MemoryRegistry
from tests.builders.specs import function_spec, version_record

LIMITS = Limits(timeout_s=100.0, containers=4, gpus=2, floor_containers=3)


@pytest.fixture
def registry() -> MemoryRegistry:
    """`acme` with limits, and with an app `other` that keeps two containers."""
    registry = MemoryRegistry()
    registry.limit_records["acme"] = LimitsRecord(
        tenant="acme", limits=LIMITS, functions={"acme:shop.patient": Limits(timeout_s=1_000.0)}
    )
    registry.versions["ver_1"] = version_record(function_spec(min_containers=2), app="other")
    registry.apps["acme", "other"] = AppRecord(tenant="acme", app="other", revision=1, functions={"greet": "ver_1"})
    return registry


def check(registry: MemoryRegistry, *names: str, tenant: str = "acme", **options: Any) -> None:
    specs = [function_spec(name, **{"timeout": 1.0, "startup_timeout": 1.0} | options) for name in names]
    check_holdings(registry, tenant, "shop", specs, 0.0)


@pytest.mark.parametrize(
    ("options", "field", "limit", "allowed"),
    [
        ({"timeout": 100.5}, "timeout", "timeout_s", 100.0),
        ({"startup_timeout": 600.0}, "startup_timeout", "timeout_s", 100.0),
        ({"gpu": (GpuAsk("H100", 1), GpuAsk("A10", 3))}, "gpu", "gpus", 2),
        ({"min_containers": 5}, "min_containers", "containers", 4),
        ({"min_containers": 2}, "min_containers", "floor_containers", 3),
    ],
)
def test_more_than_is_allowed_is_refused(
    registry: MemoryRegistry, options: dict[str, Any], field: str, limit: str, allowed: float
) -> None:
    """The detail names the limit and its value, and so does the document."""
    with pytest.raises(BadInput, match=rf"{limit} of acme .*{allowed:g}") as refused:
        check(registry, "f", **options)

    (reached,) = refused.value.more["limits"]
    assert (refused.value.more["field"], reached.limit, reached.allowed) == (field, limit, allowed)


def test_what_is_allowed_passes(registry: MemoryRegistry) -> None:
    """All of it; without limits anything; a function may have a longer time of its own."""
    check(registry, "f", timeout=100.0, startup_timeout=100.0, gpu=(GpuAsk("H100", 2),), min_containers=1)
    registry.tenant_records["big"] = TenantRecord(name="big", created_at=0.0, tier="enterprise")
    check(registry, "f", tenant="big", timeout=86_400.0, gpu=(GpuAsk("H100", 8),))
    check(registry, "patient", timeout=1_000.0)


def test_the_floors_of_all_functions_count_together(registry: MemoryRegistry) -> None:
    """Those of an app that is deployed again only once, those of a stopped app not at all."""
    with pytest.raises(BadInput, match="4 containers, 2 of them of other apps"):
        check(registry, "f", "g", min_containers=1)

    assert kept_containers(registry, "acme", 0.0) == 2
    registry.apps["acme", "other"] = AppRecord(
        tenant="acme", app="other", revision=2, functions={"greet": "ver_1"}, stopped=True
    )
    check(registry, "f", "g", "h", min_containers=1)
    registry.apps["acme", "shop"] = AppRecord(tenant="acme", app="shop", revision=1, functions={"greet": "ver_1"})
    check(registry, "f", "g", "h", min_containers=1)


def test_who_keeps_nothing_may_deploy_whatever_is_kept_elsewhere(registry: MemoryRegistry) -> None:
    """A limit that was lowered keeps no app without floors out."""
    registry.limit_records["acme"] = LimitsRecord(tenant="acme", limits=Limits(floor_containers=1))

    check(registry, "f")
