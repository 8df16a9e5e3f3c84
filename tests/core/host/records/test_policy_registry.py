"""Policies and verdicts are records of the registry: the fake and the real one do the same."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from pilotlight_core.bus import Bus
from pilotlight_core.host.records.policy_registry import MemoryPolicies, PolicyBook, policy_key
from pilotlight_core.host.registry import Registry
from pilotlight_core.model.errors import BadInput
from pilotlight_core.model.supply.findings import VerdictRecord, verdict_of
from pilotlight_core.model.supply.policies import Policy, PolicyRecord
from tests.builders.supply import AT


@pytest.fixture(params=["bus", "memory"])
async def book(request: pytest.FixtureRequest, bus: Bus) -> AsyncIterator[PolicyBook]:
    if request.param == "memory":
        yield MemoryPolicies()
        return
    async with Registry(bus) as registry:
        yield registry.policies


def record(tenant: str, revision: int = 1) -> PolicyRecord:
    return PolicyRecord(tenant=tenant, policy=Policy(signed=True), revision=revision, changed_at=AT)


async def test_the_operators_policy_and_a_tenants_are_apart(book: PolicyBook) -> None:
    """No tenant's is called as the operator's."""
    await book.change_policy("", lambda _: record(""))
    await book.change_policy("operator", lambda _: record("operator", 2))

    assert (book.policy(), book.policy("operator"), book.policy("acme")) == (record(""), record("operator", 2), None)
    await book.change_policy("", lambda _: None)
    assert book.policy() is None
    with pytest.raises(BadInput):
        policy_key("platform.operator")


async def test_a_verdict_is_of_one_version(bus: Bus) -> None:
    """The last one that was said."""
    async with Registry(bus) as registry:
        said = VerdictRecord(version="ver_1", tenant="acme", verdict=verdict_of([], AT, None, {}))
        await registry.policies.change_verdict("ver_1", lambda _: said)

        assert registry.policies.verdict("ver_1") == said
        assert list(registry.policies.verdicts()) == [said]
        assert registry.policies.verdict("ver_2") is None
        assert registry.bytes_of("acme") > 0
