"""How often a keeper looks at a rollout that gathers pairs."""

from __future__ import annotations

import asyncio
from dataclasses import replace as replace_dataclass

import pytest

from pilotlight_core.model.rollouts.rollout_record import RolloutState
from pilotlight_gateway.rollouts.evidence_store import ComparedPage
from pilotlight_gateway.rollouts.evidence_store_fake import MemoryEvidence
from pilotlight_gateway.rollouts.rollout_facts import counted
from tests.gateway.rollouts.kept_rollout import TWIN, KeptRollout, rollout


@pytest.mark.parametrize(("state", "looks"), [(RolloutState.PAIRS, 2), (RolloutState.RAMP, 4)])
async def test_pairs_are_looked_at_once_a_second(state: RolloutState, looks: int) -> None:
    """Callers have the old version's answers then, and wait for the loop meanwhile; a ramp is looked at each time."""
    times = iter((0.0, 0.9, 1.0, 1.5))
    kept = KeptRollout(rollout=rollout(state=state, paused_by="key1", twins={"price": TWIN}, step=0, share=100))
    store = kept.store = CountingStore()
    keeper = replace_dataclass(kept.keeper(), clock=lambda: next(times))
    async with asyncio.TaskGroup() as asking:
        for _ in range(4):
            await keeper._keep_safely(asking, kept.record, counted([kept.report()]))
    assert store.pages == looks


class CountingStore(MemoryEvidence):
    """Counts how often it is asked what is new."""

    def __init__(self) -> None:
        super().__init__()
        self.pages = 0

    async def page(self, tenant: str, app: str, after: int) -> ComparedPage:
        self.pages += 1
        return await super().page(tenant, app, after)
