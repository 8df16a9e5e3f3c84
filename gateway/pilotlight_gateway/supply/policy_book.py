"""Policies on record: set whole, each time with the next revision."""

from __future__ import annotations

from pilotlight_core.host.records.policy_registry import PolicyBook
from pilotlight_core.model.supply.policies import Policy, PolicyRecord, check_policy


async def set_policy(book: PolicyBook, tenant: str, policy: Policy, *, by: str, at: float) -> PolicyRecord:
    """Put a policy on record; of `tenant` "", the operator's.

    Raises:
        BadInput: names the field.
    """
    check_policy(policy)
    made = PolicyRecord(tenant=tenant, policy=policy, revision=1, changed_at=at, changed_by=by)

    def change(present: PolicyRecord | None) -> PolicyRecord:
        nonlocal made
        if present is not None and present.policy == policy:
            made = present
        else:
            revision = 1 if present is None else present.revision + 1
            made = PolicyRecord(tenant=tenant, policy=policy, revision=revision, changed_at=at, changed_by=by)
        return made

    await book.change_policy(tenant, change)
    return made


async def remove_policy(book: PolicyBook, tenant: str) -> None:
    """Take a policy off the record, if there is one."""
    await book.change_policy(tenant, lambda _: None)
