"""How much a tenant may have deployed. Pure.

A gateway decides by what it knows, so deploys at the same time on several gateways may together exceed a quota once.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from pilotlight_core.model.limits import Limits
from pilotlight_core.model.spec import AppRecord, VersionRecord
from pilotlight_gateway.tenancy.quotas import check_quota

ROOM = "delete an app, or deploy fewer functions; versions that are not kept any more are deleted within hours"


def check_deploy_quota(
    limits: Limits, after: AppRecord, apps: Iterable[AppRecord], versions: Iterable[VersionRecord], used_bytes: int
) -> None:
    """Refuse a deploy that would make a tenant have more than it may. What it has already may be deployed anew.

    `after` is the app's record after the deploy, `apps` are the tenant's present ones, `versions` the new ones, and
    `used_bytes` is the size of what it has in the registry.

    Raises:
        QuotaExceeded: names the limit.
    """
    tenant, present = after.tenant, {record.app: record for record in apps}
    before = present.pop(after.app, None)
    if before is None:
        count = len(present) + 1
        check_quota(tenant, "apps", limits.apps, count, "apps", "delete one with 'pilotlight app delete'")
    if before is None or len(after.named_functions) > len(before.named_functions):
        count = len(after.named_functions) + sum(len(record.named_functions) for record in present.values())
        check_quota(tenant, "functions", limits.functions, count, "functions", "delete an app, or deploy fewer")
    grows = _size(after) - (_size(before) if before is not None else 0)
    check_record_bytes(limits, versions, used_bytes, more=grows, tenant=tenant)


def check_record_bytes(
    limits: Limits, versions: Iterable[VersionRecord], used_bytes: int, *, tenant: str, more: int = 0
) -> None:
    """Refuse new versions, and `more` bytes, that would not fit. Without new versions nothing is refused.

    Raises:
        QuotaExceeded: names the limit.
    """
    added = sum(map(_size, versions))
    if added:
        wanted = used_bytes + added + more
        check_quota(tenant, "record_bytes", limits.record_bytes, wanted, "bytes of records", ROOM)


def _size(record: AppRecord | VersionRecord) -> int:
    return len(msgspec.msgpack.encode(record))
