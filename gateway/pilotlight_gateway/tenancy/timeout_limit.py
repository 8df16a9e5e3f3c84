"""How long a tenant's calls may run: its limit `timeout_s`, which bounds how long a call holds its place."""

from __future__ import annotations

import math

from pilotlight_core.model.errors import BadInput
from pilotlight_core.model.limits import ReachedLimit
from pilotlight_core.model.spec import VersionRecord
from pilotlight_gateway.tenancy.registry_port import LimitRegistry

TIMEOUT = "timeout_s"


def longest_call_s(registry: LimitRegistry, tenant: str, function: str) -> float:
    """What a call of `tenant` to `function` (`tenant:app.function` of its owner) may take in all; inf: no limit."""
    limit = registry.limits(tenant, function).function.timeout_s
    return math.inf if limit is None else limit


def check_job_time(registry: LimitRegistry, tenant: str, version: VersionRecord) -> None:
    """Refuse a job that could run for longer than its tenant's limit: its function's timeout alone ends it.

    Raises:
        BadInput: naming the limit.
    """
    function = f"{version.tenant}:{version.app}.{version.function}"
    check_seconds(version.spec.timeout, longest_call_s(registry, tenant, function), tenant, f"timeout of {function}")


def check_seconds(asked_s: float, allowed_s: float, tenant: str, field: str) -> None:
    """Refuse more seconds than are allowed.

    Raises:
        BadInput: naming the limit and its value; `field` begins the sentence.
    """
    if asked_s > allowed_s:
        reached = ReachedLimit(limit=TIMEOUT, tenant=tenant, allowed=allowed_s, current=asked_s)
        detail = f"{field}: {asked_s:g} s is more than the limit timeout_s of {tenant} allows, {allowed_s:g} s."
        raise BadInput(detail, field=field.partition(" ")[0], limits=(reached,))
