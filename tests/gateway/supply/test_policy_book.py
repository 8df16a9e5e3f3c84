"""A policy on record counts its revisions, and is removed once."""

from __future__ import annotations

import pytest

from pilotlight_core.host.records.policy_registry import MemoryPolicies
from pilotlight_core.model.errors import BadInput
from pilotlight_core.model.supply.policies import Policy
from pilotlight_gateway.supply.policy_book import remove_policy, set_policy
from tests.builders.supply import AT


async def test_each_change_is_a_revision_and_the_same_again_is_none() -> None:
    """With who has changed it, and when."""
    book = MemoryPolicies()
    first = await set_policy(book, "acme", Policy(signed=True), by="key1", at=AT)
    again = await set_policy(book, "acme", Policy(signed=True), by="key2", at=AT + 1)
    other = await set_policy(book, "acme", Policy(), by="key2", at=AT + 1)

    assert again is first
    assert (first.revision, other.revision, other.changed_by, other.changed_at) == (1, 2, "key2", AT + 1)
    assert book.policy("acme") == other
    for _ in range(2):
        await remove_policy(book, "acme")
    assert book.policy("acme") is None


async def test_what_cannot_be_meant_is_not_put_on_record() -> None:
    """The present one stays."""
    book = MemoryPolicies()
    with pytest.raises(BadInput):
        await set_policy(book, "", Policy(deny_packages=("a b",)), by="k", at=AT)
    assert book.policy() is None
