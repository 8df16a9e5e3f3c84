"""A keeper folds, decides and writes; a person's word goes first, and a death at any point changes nothing."""

from __future__ import annotations

import asyncio
import random
from dataclasses import replace as replace_dataclass
from typing import Any, cast

import pytest
from msgspec.structs import replace
from structlog.testing import capture_logs

from pilotlight_core.bus import BusDown, Lease
from pilotlight_core.host.blobs import BlobsDown
from pilotlight_core.model.errors import QuotaExceeded
from pilotlight_core.model.messages.logs import ComparedCalls
from pilotlight_core.model.rollouts.rollout_moves import moved, rolled_back, started
from pilotlight_core.model.rollouts.rollout_record import Arm, RolloutRecord, RolloutState
from pilotlight_gateway.deploys.moves.app_moves import AppMoves
from pilotlight_gateway.judging.decisions import Action, RolloutDecision
from pilotlight_gateway.judging.evidence import Evidence, encode_evidence, fold, start
from pilotlight_gateway.rollouts.evidence_store import ComparedPage, StoredEvidence
from pilotlight_gateway.rollouts.evidence_store_fake import MemoryEvidence
from pilotlight_gateway.rollouts.rollout_facts import counted
from pilotlight_gateway.rollouts.rollout_keeper import RolloutKeeper, after
from pilotlight_gateway.tenancy.registry_port import MemoryRegistry
from tests.gateway.rollouts.kept_rollout import (
    NEW,
    OLD,
    QUICK,
    TWIN,
    KeptRollout,
    compared,
    record_of,
    rollout,
    told,
    traffic,
)
from tests.waiting import until


async def test_an_equal_version_is_promoted_step_by_step() -> None:
    """With a twin from the start; the app's record has the new version at the end."""
    kept = KeptRollout()
    await kept.keep_until(RolloutState.RAMP)
    assert (kept.now.twins, kept.now.share, kept.now.twin_share) == ({"price": TWIN}, 5_000, 5_000)
    kept.store.stream += traffic(40)
    await kept.keep_until(RolloutState.BAKING)
    assert kept.deployed == OLD
    keeper = kept.keeper()
    await kept.keep_until(RolloutState.PROMOTED, keeper=keeper)

    assert (kept.deployed, keeper.counts["promote"]) == (NEW, 1)
    assert kept.kinds[-1] == "rollout.promoted"
    assert kept.kinds.count("rollout.promoted") == 1
    assert kept.now.verdict.calls


async def test_a_failing_version_goes_back_and_is_marked() -> None:
    """Routing first; it is over when nothing of it runs any more."""
    kept = KeptRollout()
    await kept.keep_until(RolloutState.RAMP)
    kept.store.stream += traffic(60, failing=True)
    await kept.keep()
    assert (kept.now.state, kept.now.share, kept.now.twin_share) == (RolloutState.ROLLING_BACK, 0, 0)
    assert kept.record.withdrawn == {NEW: "rol_1"}
    assert kept.now.verdict.word == "regressed"
    await kept.keep_until(RolloutState.ROLLED_BACK)

    assert kept.deployed == OLD
    assert kept.kinds[-1] == "rollout.rolled_back"


async def test_without_calls_nothing_is_promoted() -> None:
    """No data is never success."""
    kept = KeptRollout()
    await kept.keep_until(RolloutState.RAMP)
    keeper = kept.keeper()
    for _ in range(20):
        kept.at += 10.0
        await kept.keep(keeper=keeper)
    assert (kept.now.state, kept.now.held, kept.deployed) == (RolloutState.RAMP, "calls", OLD)


async def test_shares_move_onto_ready_capacity_alone() -> None:
    """Nothing free holds, and after ten minutes it goes back without a mark."""
    kept = KeptRollout(ready={OLD: 4})
    await kept.keep_until(RolloutState.STARTING)
    await kept.keep(3)
    assert (kept.now.held, kept.now.share) == ("no_capacity", 0)
    kept.ready |= {NEW: 1, TWIN: 1}
    await kept.keep_until(RolloutState.RAMP)
    assert kept.now.share == 2_500
    kept.ready |= {NEW: 2, TWIN: 2}
    await kept.keep(2)
    assert (kept.now.share, kept.now.held) == (5_000, "")


async def test_too_long_without_capacity_goes_back_without_a_mark() -> None:
    kept = KeptRollout(ready={OLD: 4})
    await kept.keep_until(RolloutState.STARTING)
    await kept.keep(2)
    kept.at += 601.0
    await kept.keep()
    assert kept.now.state is RolloutState.ROLLING_BACK
    assert "no_capacity" in kept.now.reason
    assert kept.record.withdrawn == {}


async def test_what_policies_refuse_does_not_start() -> None:
    """It says why."""
    kept = KeptRollout(refused="A policy refuses shop.price@v2: pickle of m.bin.")
    await kept.keep_until(RolloutState.ROLLED_BACK)
    assert kept.now.reason == kept.refused


async def test_what_policies_refuse_while_it_is_under_way_is_held_and_not_ended() -> None:
    """Within a minute, with the sentence; it goes on when they let it run, and is not promoted before."""
    kept = KeptRollout()
    await kept.keep_until(RolloutState.RAMP)
    kept.store.stream += traffic(40)
    kept.refused = "A policy refuses shop.price@v2: vulnerability of pkg:pypi/x@1."
    keeper = kept.keeper()
    for _ in range(4):
        await kept.keep(keeper=keeper)
        kept.at += 300.0
    assert (kept.now.state, kept.now.held, kept.deployed) == (RolloutState.RAMP, "policy", OLD)
    last = kept.events.events[-1]
    assert (last.kind, last.says) == ("rollout.held", f"Rollout 1 of shop: The rollout does not go on: {kept.refused}")

    kept.refused = ""
    await kept.keep_until(RolloutState.PROMOTED)
    assert kept.deployed == NEW


@pytest.mark.parametrize("error", [BlobsDown("The store is away."), RecursionError("a bug")])
async def test_a_policy_that_cannot_be_asked_holds_a_rollout_and_keeps_it_from_no_rollback(error: Exception) -> None:
    """Not knowing is not well; and a failing version goes back all the same."""
    kept = KeptRollout()
    await kept.keep_until(RolloutState.RAMP)

    async def broken(*_: object) -> str:
        raise error

    keeper = replace_check(kept.keeper(), broken)
    await kept.keep(keeper=keeper)
    assert (kept.now.state, kept.now.held) == (RolloutState.RAMP, "policy")
    kept.store.stream += traffic(60, failing=True)
    await kept.keep(keeper=keeper)
    assert kept.now.state is RolloutState.ROLLING_BACK


def replace_check(keeper: RolloutKeeper, check: Any) -> RolloutKeeper:
    keeper.check = check
    return keeper


async def test_a_breaker_that_opens_aborts_also_while_it_is_paused() -> None:
    kept = KeptRollout()
    await kept.keep_until(RolloutState.RAMP)
    kept.registry.rollout_records["acme", "shop"] = moved(kept.record, replace(kept.now, paused_by="key1"))
    kept.breaker = NEW
    await kept.keep()
    assert kept.now.state is RolloutState.ROLLING_BACK
    assert "breaker of price" in kept.now.reason


async def test_another_deploy_supersedes() -> None:
    """What is compared is not what is deployed any more."""
    kept = KeptRollout()
    await kept.keep_until(RolloutState.RAMP)
    app = kept.registry.apps["acme", "shop"]
    kept.registry.apps["acme", "shop"] = replace(app, functions={"price": "ver_other"})
    await kept.keep()
    assert (kept.now.state, kept.now.share) == (RolloutState.SUPERSEDED, 0)


async def test_what_cannot_be_promoted_ends_with_its_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    """Such as the schedules of the new version, for which its tenant has no room any more: it is not tried forever."""

    async def refuse(*_: object) -> None:
        raise QuotaExceeded("acme has 100 schedules already.")

    kept = KeptRollout()
    await kept.keep_until(RolloutState.RAMP)
    kept.store.stream += traffic(40)
    monkeypatch.setattr(AppMoves, "promote", refuse)
    await kept.keep_until(RolloutState.SUPERSEDED)
    assert kept.deployed == OLD
    assert "100 schedules" in kept.now.reason


async def test_a_gate_is_asked_before_each_step_and_nobody_waits_for_it() -> None:
    """Only yes goes on."""
    sender: Any = GateSender(503)
    terms = replace(QUICK, gate="https://gate.example.com/")
    kept = KeptRollout(rollout=rollout(terms=terms), sender=sender)
    await kept.keep_until(RolloutState.RAMP)
    kept.store.stream += traffic(40)
    keeper = kept.keeper()
    for _ in range(4):
        kept.at += 1.0
        await kept.keep(keeper=keeper)
    assert (kept.now.state, kept.now.held, len(sender.asked)) == (RolloutState.RAMP, "gate", 1)
    sender.status = 204
    kept.at += 11.0
    await kept.keep(keeper=keeper)
    await kept.keep(keeper=keeper)
    assert kept.now.state is RolloutState.BAKING


class GateSender:
    def __init__(self, status: int) -> None:
        self.status = status
        self.asked: list[bytes] = []

    async def post(self, tenant: str, url: str, headers: Any, body: bytes) -> Any:
        from pilotlight_core.model.api.webhook_api import DeliveryAttempt
        from pilotlight_gateway.webhooks.delivery_attempts import DeliveryOutcome

        assert (tenant, url) == ("acme", "https://gate.example.com/")
        assert headers
        self.asked.append(body)
        return DeliveryOutcome(attempt=DeliveryAttempt(at=0.0, ms=1.0, status=self.status))


# -- a person's word ---------------------------------------------------------------------------------------------------


async def test_what_a_person_writes_meanwhile_wins() -> None:
    """A decision is written only if the rollout is as it was when it was taken."""
    kept = KeptRollout()
    await kept.keep_until(RolloutState.RAMP)
    kept.store.stream += traffic(40)
    kept.at += 10.0
    kept.registry = AbortingRegistry.over(kept.registry)
    await kept.keep()
    assert kept.now.state is RolloutState.ROLLING_BACK
    assert kept.now.reason == "aborted by a person"
    assert kept.record.withdrawn == {}


class AbortingRegistry(MemoryRegistry):
    """Somebody aborts just before each change is written."""

    @classmethod
    def over(cls, registry: MemoryRegistry) -> AbortingRegistry:
        made = cls()
        made.__dict__.update(registry.__dict__)
        return made

    async def change_rollout(self, tenant: str, app: str, change: Any) -> RolloutRecord | None:
        present = self.rollout_records[tenant, app]
        self.rollout_records[tenant, app] = rolled_back(present, 5.0, "aborted by a person", marked=False)
        return await super().change_rollout(tenant, app, change)


async def test_an_abort_undoes_a_promotion_that_was_under_way() -> None:
    """The app's record was written, the rollout's was not: the abort came between."""
    kept = KeptRollout()
    await kept.keep_until(RolloutState.RAMP)
    await kept.keeper().moves.promote("acme", "shop", kept.now)
    assert kept.deployed == NEW
    kept.registry.rollout_records["acme", "shop"] = rolled_back(kept.record, kept.at, "aborted", marked=False)
    await kept.keep_until(RolloutState.ROLLED_BACK)
    assert kept.deployed == OLD


async def test_a_death_within_a_promotion_is_finished() -> None:
    """Whoever keeps it next sees that the app has the new versions."""
    kept = KeptRollout()
    await kept.keep_until(RolloutState.RAMP)
    await kept.keeper().moves.promote("acme", "shop", kept.now)
    await kept.keep()
    assert (kept.now.state, kept.deployed) == (RolloutState.PROMOTED, NEW)


# -- deaths ------------------------------------------------------------------------------------------------------------


class Killed(BaseException):
    """The process is gone."""


class DyingEvidence(MemoryEvidence):
    """Kills whoever uses it before or after one of its operations, now and then."""

    def __init__(self, seed: int) -> None:
        super().__init__(page_size=3)
        self.chance = random.Random(seed)
        self.deaths = 0
        self.is_deadly = True

    def _perhaps(self) -> None:
        if self.is_deadly and self.chance.random() < 0.4:
            self.deaths += 1
            raise Killed

    async def read(self, tenant: str, app: str) -> StoredEvidence:
        self._perhaps()
        return await super().read(tenant, app)

    async def write(self, tenant: str, app: str, evidence: Evidence, revision: int) -> int:
        self._perhaps()
        written = await super().write(tenant, app, evidence, revision)
        self._perhaps()
        return written

    async def page(self, tenant: str, app: str, after: int) -> ComparedPage:
        self._perhaps()
        return await super().page(tenant, app, after)


def folded(stream: list[ComparedCalls]) -> bytes:
    """The evidence of a stream, folded by one judge that nobody kills."""
    evidence = start(rollout())
    for seq, message in enumerate(stream, 1):
        fold(evidence, seq, message.calls)
    return encode_evidence(evidence)


@pytest.mark.parametrize("seed", [1, 2, 3])
async def test_a_judge_that_is_killed_fifty_times_finds_the_same_to_the_bit(seed: int) -> None:
    """Between read, fold, store and act: what is stored is what an unkilled one has, and the record says the same."""
    store, messages = DyingEvidence(seed), traffic(900, seed=seed)
    kept = KeptRollout(store=store)
    store.is_deadly = False
    await kept.keep_until(RolloutState.RAMP)
    store.is_deadly = True
    keeper: RolloutKeeper | None = None
    while store.deaths < 50 or messages:
        store.stream += messages[:2]
        del messages[:2]
        keeper = keeper or kept.keeper()
        try:
            await kept.keep(keeper=keeper)
        except* Killed:
            keeper = None
    store.is_deadly = False
    await kept.keep(10)

    assert store.deaths >= 50
    assert store.kept["acme", "shop"][0] == folded(store.stream)


async def test_who_dies_between_a_change_and_its_news_leaves_both() -> None:
    """The record has what is to be told: the next keeper tells it, also of a rollout that is over by then."""
    kept = KeptRollout()
    await kept.keep_until(RolloutState.RAMP)
    kept.store.stream += traffic(60, failing=True)
    before = len(kept.events.events)
    async with asyncio.TaskGroup() as asking:
        for _ in range(2):  # and nobody tells
            await kept.keeper().keep(asking, kept.record, counted([kept.report()]))
    assert kept.now.state in (RolloutState.ROLLING_BACK, RolloutState.ROLLED_BACK)
    assert len(kept.events.events) == before
    lease = TurningLease(3)
    await kept.keeper().run(cast("Lease", lease))
    assert kept.kinds[before:].count("rollout.rolled_back") == 1
    assert kept.record.untold == ()


async def test_a_rollout_that_hangs_holds_no_other() -> None:
    """Its check never ends; the other one goes on meanwhile."""
    kept, hangs = KeptRollout(), asyncio.Event()
    kept.registry.apps["acme", "slow"] = replace(kept.registry.apps["acme", "shop"], app="slow")
    kept.registry.rollout_records["acme", "slow"] = started(None, "acme", "slow", rollout(id="rol_slow"))
    looked: list[str] = []

    async def check(record: RolloutRecord, _rollout: object) -> str:
        looked.append(record.app)
        if record.app == "slow":
            await hangs.wait()
        return ""

    keeper = replace_dataclass(kept.keeper(), check=check)
    lease = TurningLease(1_000)
    async with asyncio.TaskGroup() as group:
        group.create_task(keeper.run(cast("Lease", lease)))
        await until(lambda: "slow" in looked)
        await until(lambda: kept.now.twins != {})
        assert looked.count("slow") == 1
        lease.looks = 0  # and nothing waits for it when another gateway keeps them


class TurningLease:
    """It is held for so many looks."""

    def __init__(self, looks: int) -> None:
        self.looks = looks

    def valid(self, _at: float) -> bool:
        self.looks -= 1
        return self.looks > 0


@pytest.mark.parametrize("error", [BusDown("No bus."), RuntimeError("a mistake")])
async def test_news_that_cannot_be_told_hold_no_rollout(error: Exception) -> None:
    """They are tried again later, not at each look, which is said once."""
    kept, tries, at = KeptRollout(), 0, 0.0

    async def fail(_record: RolloutRecord) -> None:
        nonlocal tries
        tries += 1
        raise error

    keeper = replace_dataclass(kept.keeper(), notify_all=fail, clock=lambda: at)
    with capture_logs() as logs:
        for at, tried in ((0.0, 1), (0.5, 2)):  # noqa: B007 - the keeper's clock
            await keeper.run(cast("Lease", TurningLease(12)))
            assert tries == tried
    assert (kept.now.state is RolloutState.PLANNED, kept.record.untold == ()) == (False, False)
    assert sum(one["event"].startswith("news of a rollout") for one in logs) == 1


async def test_evidence_of_another_release_begins_anew() -> None:
    """What cannot be read is replaced, under its revision."""
    kept = KeptRollout()
    kept.store.kept["acme", "shop"] = (b"\xff", 7)
    await kept.keep()
    assert kept.store.kept["acme", "shop"][1] == 8


async def test_calls_of_a_rollout_before_are_not_counted() -> None:
    kept = KeptRollout()
    kept.store.stream += [told(*[compared(n, Arm.CANARY, failed=True, rollout="rol_0") for n in range(50)])]
    await kept.keep_until(RolloutState.RAMP)
    kept.store.stream += [told(*[compared(n, Arm.CANARY, failed=True, rollout="rol_0") for n in range(50)])]
    await kept.keep(2)
    assert kept.now.state is RolloutState.RAMP


def test_a_stay_and_what_is_decided_of_a_rollout_that_is_over_change_nothing() -> None:
    over, record = record_of(rollout(state=RolloutState.PROMOTED)), record_of(rollout())
    assert after(over, RolloutDecision(action=Action.ROLL_BACK), 1.0) is over
    assert after(record, RolloutDecision(), 1.0) is record


async def test_terms_without_a_twin_compare_with_all_of_the_old_version() -> None:
    kept = KeptRollout(rollout=rollout(terms=replace(QUICK, twin=False)), ready={OLD: 2, NEW: 2})
    await kept.keep_until(RolloutState.RAMP)
    assert (kept.now.twins, kept.now.twin_share) == ({}, 0)


async def test_gateways_are_told_when_calls_are_slow_if_that_changes() -> None:
    """Once a second at most, and by the next keeper again; what the bus did not take is said again."""
    kept = KeptRollout(rollout=rollout(terms=replace(QUICK, every_s=900.0)))
    await kept.keep_until(RolloutState.RAMP)
    assert [limits.functions["price"].usual for limits in kept.store.slow] == [{}]
    keeper = kept.keeper()
    await kept.keep(keeper=keeper)
    written = len(kept.store.slow)
    kept.store.stream += traffic(200)
    await kept.keep(3, keeper)
    assert len(kept.store.slow) == written
    kept.at += 1.0
    await kept.keep(3, keeper)
    assert len(kept.store.slow) == written + 1
    assert kept.store.slow[-1].functions["price"].usual
    kept.at += 1.0
    await kept.keep(3, keeper)
    assert len(kept.store.slow) == written + 1

    write = kept.store.write_limits

    error: Exception = OSError("away")

    async def refuse(*_: object) -> None:
        raise error

    kept.store.write_limits, keeper = refuse, kept.keeper()
    await kept.keep(keeper=keeper)
    kept.at, error = kept.at + 1.0, RecursionError("a bug, which ends the keeping of no other rollout")
    await kept.keep(keeper=keeper)
    assert len(kept.store.slow) == written + 1
    kept.store.write_limits, kept.at = write, kept.at + 1.0
    await kept.keep(keeper=keeper)
    assert len(kept.store.slow) == written + 2


async def test_no_decision_waits_for_gateways_to_be_told_when_calls_are_slow() -> None:
    """Nor is it written twice at a time."""
    kept, hold, writes = KeptRollout(), asyncio.Event(), 0
    await kept.keep_until(RolloutState.RAMP)

    async def hang(*_: object) -> None:
        nonlocal writes
        writes += 1
        await hold.wait()

    kept.store.write_limits, keeper = hang, kept.keeper()
    async with asyncio.TaskGroup() as asking:
        for _ in range(3):
            kept.at += 1.0
            await keeper.keep(asking, kept.record, counted([kept.report()]))
            await asyncio.sleep(0)
            kept.store.stream += traffic(60, failing=True)
        assert (writes, kept.now.state) == (1, RolloutState.ROLLED_BACK)
        hold.set()
