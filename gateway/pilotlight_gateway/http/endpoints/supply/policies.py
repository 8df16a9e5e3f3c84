"""Policies about what versions may be made of: a tenant's own, and the operator's for all."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from starlette.requests import Request
from starlette.responses import Response

from pilotlight_core.host.records.policy_registry import PolicyBook
from pilotlight_core.model.api.supply.supply_api import PolicyInfo
from pilotlight_core.model.supply.policies import Policy, PolicyRecord
from pilotlight_gateway.bodies.byte_budget import ByteBudget
from pilotlight_gateway.http.protocol.api_operations import BODY, Operation, json_answer, principal_of, read_struct
from pilotlight_gateway.supply.policy_book import remove_policy, set_policy

OPERATORS = ""
"""The tenant whose policy is the operator's."""


@dataclass(frozen=True, kw_only=True)
class PolicyServices:
    """The ports of these endpoints. `wall` is unix seconds."""

    policies: PolicyBook
    budget: ByteBudget
    wall: Callable[[], float] = time.time


async def show_policy(request: Request, services: PolicyServices) -> Response:
    """`GET /v1/policy`."""
    return json_answer(policy_info(services.policies.policy(principal_of(request).tenant)))


async def put_policy(request: Request, services: PolicyServices) -> Response:
    """`PUT /v1/policy`."""
    return await _put(request, services, principal_of(request).tenant)


async def drop_policy(request: Request, services: PolicyServices) -> Response:
    """`DELETE /v1/policy`."""
    await remove_policy(services.policies, principal_of(request).tenant)
    return Response(status_code=204)


async def show_platform_policy(_: Request, services: PolicyServices) -> Response:
    """`GET /v1/platform-policy`: for all, since all are held to it."""
    return json_answer(policy_info(services.policies.policy(OPERATORS)))


async def put_platform_policy(request: Request, services: PolicyServices) -> Response:
    """`PUT /v1/platform-policy`."""
    return await _put(request, services, OPERATORS)


async def drop_platform_policy(_: Request, services: PolicyServices) -> Response:
    """`DELETE /v1/platform-policy`."""
    await remove_policy(services.policies, OPERATORS)
    return Response(status_code=204)


async def _put(request: Request, services: PolicyServices, tenant: str) -> Response:
    policy = await read_struct(request, services.budget, Policy)
    by = principal_of(request).key_id
    return json_answer(policy_info(await set_policy(services.policies, tenant, policy, by=by, at=services.wall())))


def policy_info(record: PolicyRecord | None) -> PolicyInfo:
    """A record as it is shown."""
    if record is None:
        return PolicyInfo(policy=Policy())
    return PolicyInfo(
        policy=record.policy, revision=record.revision, changed_at=record.changed_at, changed_by=record.changed_by
    )


POLICIES = (
    Operation(
        method="GET", path="/v1/policy", name="getPolicy", endpoint=show_policy, scopes=("read", "deploy"),
        about="What the tenant's own versions may be made of.", answer=PolicyInfo,
    ),
    Operation(
        method="PUT", path="/v1/policy", name="setPolicy", endpoint=put_policy, scopes=("admin",), tells=("*",),
        about="Say what the tenant's own versions may be made of.", request=Policy, answer=PolicyInfo,
        errors=(*BODY, "conflict"),
    ),
    Operation(
        method="DELETE", path="/v1/policy", name="removePolicy", endpoint=drop_policy, scopes=("admin",), status=204,
        about="Look for nothing on the tenant's behalf any more.", errors=("conflict",),
    ),
    Operation(
        method="GET", path="/v1/platform-policy", name="getPlatformPolicy", endpoint=show_platform_policy,
        about="What all versions of the platform may be made of.", scopes=("read", "deploy", "operator"),
        answer=PolicyInfo,
    ),
    Operation(
        method="PUT", path="/v1/platform-policy", name="setPlatformPolicy", endpoint=put_platform_policy,
        about="Say what all versions of the platform may be made of.", scopes=("operator",), tells=("*",),
        request=Policy, answer=PolicyInfo, errors=(*BODY, "conflict"),
    ),
    Operation(
        method="DELETE", path="/v1/platform-policy", name="removePlatformPolicy", endpoint=drop_platform_policy,
        about="Hold no version to a policy of the operator's any more.", scopes=("operator",), status=204,
        errors=("conflict",),
    ),
)  # fmt: skip
