"""How long calls may run, and what is refused because it could run for longer."""

from __future__ import annotations

import math

import pytest

from pilotlight_core.model.errors import BadInput
from pilotlight_core.model.limits import Limits
from pilotlight_core.model.tenancy import LimitsRecord, TenantRecord
from pilotlight_gateway.tenancy.registry_port import MemoryRegistry
from pilotlight_gateway.tenancy.timeout_limit import check_job_time, longest_call_s
from tests.builders.specs import function_spec, version_record


def test_a_job_is_bounded_by_its_functions_timeout() -> None:
    """Nothing else ends it, so a longer one than its caller may have is refused, be it another tenant's function."""
    registry = MemoryRegistry()
    version = version_record(function_spec(timeout=300.0), tenant="zoo")
    registry.tenant_records["acme"] = TenantRecord(name="acme", created_at=0.0, tier="enterprise")
    assert longest_call_s(registry, "acme", "zoo:hello.greet") == math.inf
    registry.limit_records["acme"] = LimitsRecord(tenant="acme", limits=Limits(timeout_s=300.0))
    check_job_time(registry, "acme", version)

    registry.limit_records["acme"] = LimitsRecord(tenant="acme", limits=Limits(timeout_s=299.0))
    with pytest.raises(BadInput, match=r"timeout of zoo:hello\.greet: 300 s .* timeout_s of acme allows, 299 s") as no:
        check_job_time(registry, "acme", version)

    assert no.value.more["field"] == "timeout"
