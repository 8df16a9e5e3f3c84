"""Rollouts as people see them: when they go on, and those of all apps."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from pilotlight_core.model.rollouts.rollout_record import RolloutState
from pilotlight_gateway.rollouts.evidence_store import StoredEvidence
from pilotlight_gateway.rollouts.rollout_views import KEPT_S, LISTED, READ_AT_ONCE, RolloutViews, next_at
from tests.gateway.rollouts.kept_rollout import QUICK, KeptRollout, record_of, rollout, traffic


class CountingStore:
    """Counts what is read of another one."""

    def __init__(self, of: Any) -> None:
        self.of = of
        self.read_apps: list[str] = []

    async def read(self, tenant: str, app: str) -> StoredEvidence:
        self.read_apps.append(app)
        found: StoredEvidence = await self.of.read(tenant, app)
        return found


def views_of(kept: KeptRollout, store: Any = None) -> RolloutViews:
    return RolloutViews(
        registry=kept.registry, store=store or kept.store, reports=lambda: [kept.report()], wall=lambda: kept.at
    )


async def test_what_each_guard_has_seen_is_said_also_when_it_is_over() -> None:
    """The verdict of one that is over stays what it was."""
    kept = KeptRollout(at=100.0)
    await kept.keep_until(RolloutState.RAMP)
    kept.store.stream += traffic(300, failing=True)
    await kept.keep_until(RolloutState.ROLLED_BACK)
    shown = await views_of(kept).show("acme", "shop")

    assert (shown.tenant, shown.state, shown.verdict) == ("acme", "rolled_back", "regressed")
    loudest = shown.seen[0]
    assert (loudest.guard, loudest.function) == ("crash", "price")
    assert loudest.evidence >= 100.0
    assert loudest.canary > 0


async def test_the_rollouts_of_all_apps_begin_with_those_under_way() -> None:
    """Then those that ended last; of one tenant, or of everybody."""
    kept = KeptRollout()
    app = kept.registry.apps["acme", "shop"]
    for tenant, name, state, since in (
        ("acme", "old", RolloutState.PROMOTED, 5.0), ("acme", "late", RolloutState.ROLLED_BACK, 9.0),
        ("rival", "theirs", RolloutState.RAMP, 7.0),
    ):  # fmt: skip
        kept.registry.apps[tenant, name] = replace(app, tenant=tenant, app=name)
        one = rollout(id=f"rol_{name}", state=state, since=since)
        kept.registry.rollout_records[tenant, name] = record_of(one, tenant=tenant, app=name)
    kept.registry.rollout_records["acme", "gone"] = record_of(rollout(id="rol_gone"), app="gone")  # of no app
    kept.registry.rollout_records["acme", "none"] = replace(record_of(rollout()), app="none", rollout=None)
    views = views_of(kept)

    own, all_of_them = await views.of_apps("acme"), await views.of_apps(None)
    assert [one.app for one in own.rollouts] == ["shop", "late", "old"]
    assert [(one.tenant, one.app) for one in all_of_them.rollouts][:2] == [("rival", "theirs"), ("acme", "shop")]
    assert (own.left, own.rollouts[0].seen) == (0, ())


async def test_a_list_reads_evidence_within_bounds_and_keeps_it_for_a_moment() -> None:
    """Of those that run; the others say what was written of them."""
    kept = KeptRollout(at=100.0)
    app = kept.registry.apps["acme", "shop"]
    for number in range(LISTED + 7):
        one = rollout(id=f"rol_{number}", state=RolloutState.RAMP, since=50.0 - number)
        kept.registry.apps["acme", f"app-{number}"] = replace(app, app=f"app-{number}")
        kept.registry.rollout_records["acme", f"app-{number}"] = record_of(one, app=f"app-{number}")
    store = CountingStore(kept.store)
    views = views_of(kept, store)

    first = await views.of_apps("acme")
    assert (len(first.rollouts), first.left) == (LISTED, 8)
    assert len(store.read_apps) == READ_AT_ONCE
    await views.of_apps("acme")
    assert len(store.read_apps) == READ_AT_ONCE
    kept.at += KEPT_S
    await views.of_apps("acme")
    assert len(store.read_apps) == 2 * READ_AT_ONCE


@pytest.mark.parametrize(
    ("fields", "at"),
    [
        ({"state": RolloutState.RAMP}, 10.0 + QUICK.every_s),
        ({"state": RolloutState.BAKING}, 10.0 + QUICK.bake_s),
        ({"state": RolloutState.RAMP, "held": "calls"}, 0.0),
        ({"state": RolloutState.RAMP, "held": "evidence"}, 0.0),
        ({"state": RolloutState.RAMP, "paused_by": "key1"}, 0.0),
        ({"state": RolloutState.RAMP, "frozen": True}, 0.0),
        ({"state": RolloutState.PAIRS}, 0.0),
        ({"state": RolloutState.PROMOTED}, 0.0),
    ],
)
def test_it_goes_on_in_time_where_that_is_a_matter_of_time(fields: dict[str, Any], at: float) -> None:
    assert next_at(rollout(since=10.0, **fields)) == at
