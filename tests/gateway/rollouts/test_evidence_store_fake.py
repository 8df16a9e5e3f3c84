"""The store in memory keeps revisions as the bus does."""

from __future__ import annotations

import pytest

from pilotlight_core.bus import KeyConflict
from pilotlight_gateway.judging.evidence import start
from pilotlight_gateway.rollouts.evidence_store_fake import MemoryEvidence
from tests.gateway.rollouts.kept_rollout import rollout, traffic


async def test_a_write_under_another_revision_is_refused() -> None:
    store, evidence = MemoryEvidence(), start(rollout())
    assert await store.write("acme", "shop", evidence, 0) == 1
    with pytest.raises(KeyConflict):
        await store.write("acme", "shop", evidence, 0)
    kept = await store.read("acme", "shop")
    assert (kept.revision, kept.evidence) == (1, evidence)


async def test_pages_follow_each_other() -> None:
    store = MemoryEvidence(page_size=2)
    store.stream += traffic(21)
    first = await store.page("acme", "shop", 0)
    last = await store.page("acme", "shop", first.last)
    assert ([seq for seq, _ in first.messages], first.is_last) == ([1, 2], False)
    assert ([seq for seq, _ in last.messages], last.is_last) == ([3], True)
    assert (await store.page("acme", "other", 0)).messages == []
