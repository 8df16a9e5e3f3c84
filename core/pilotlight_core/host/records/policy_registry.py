"""Of the registry: policies about what versions may be made of, and what was last said of those that run."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Protocol

from pilotlight_core.host.records.registry_records import RegistryRecords
from pilotlight_core.model.ids import check_name
from pilotlight_core.model.supply.findings import VerdictRecord
from pilotlight_core.model.supply.policies import OPERATORS_POLICY, POLICY_KEYS, PolicyRecord

ChangePolicy = Callable[[PolicyRecord | None], PolicyRecord | None]
ChangeVerdict = Callable[[VerdictRecord | None], VerdictRecord | None]


class PolicyBook(Protocol):
    """`tenant` "" stands for the operator, whose policy all versions are held against."""

    def policy(self, tenant: str = "") -> PolicyRecord | None: ...
    async def change_policy(self, tenant: str, change: ChangePolicy) -> PolicyRecord | None: ...
    def verdict(self, version_id: str) -> VerdictRecord | None: ...


@dataclass
class MemoryPolicies:
    """The `PolicyBook` of tests."""

    records: dict[str, PolicyRecord] = field(default_factory=dict)
    verdict_records: dict[str, VerdictRecord] = field(default_factory=dict)

    def policy(self, tenant: str = "") -> PolicyRecord | None:
        return self.records.get(tenant)

    async def change_policy(self, tenant: str, change: ChangePolicy) -> PolicyRecord | None:
        changed = change(self.records.get(tenant))
        if changed is None:
            self.records.pop(tenant, None)
        else:
            self.records[tenant] = changed
        return changed

    def verdict(self, version_id: str) -> VerdictRecord | None:
        return self.verdict_records.get(version_id)


class PolicyRegistry:
    """The `PolicyBook` of a registry."""

    def __init__(self, records: RegistryRecords) -> None:
        self._records = records

    def policy(self, tenant: str = "") -> PolicyRecord | None:
        return self._records.get(policy_key(tenant), PolicyRecord)

    async def change_policy(self, tenant: str, change: ChangePolicy) -> PolicyRecord | None:
        return await self._records.change(policy_key(tenant), change)

    def verdict(self, version_id: str) -> VerdictRecord | None:
        return self._records.get(_verdict_key(version_id), VerdictRecord)

    def verdicts(self) -> Iterator[VerdictRecord]:
        return self._records.each("verdict.", VerdictRecord)

    async def change_verdict(self, version_id: str, change: ChangeVerdict) -> VerdictRecord | None:
        return await self._records.change(_verdict_key(version_id), change)


def policy_key(tenant: str) -> str:
    """Of a tenant's policy; "": of the operator's."""
    return f"{POLICY_KEYS}{check_name(tenant, 'tenant')}" if tenant else OPERATORS_POLICY


def _verdict_key(version_id: str) -> str:
    return f"verdict.{check_name(version_id, 'version')}"
