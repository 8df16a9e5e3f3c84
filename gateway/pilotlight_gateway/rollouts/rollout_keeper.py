"""Keeps all rollouts of a region: reads what is told of their calls, decides, and writes down what follows.

One gateway does, under a lease; another one goes on where it stopped. The order is: fold, store the evidence with its
place in the stream, decide, change the record by compare-and-set. A death between any two repeats what came after the
last one that was written, and each of them says the same when it is repeated.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import structlog
from msgspec.structs import replace

from pilotlight_core.bus import BusError, KeyConflict, Lease
from pilotlight_core.model.errors import BadInput, Conflict, NotFound, PilotlightError, QuotaExceeded
from pilotlight_core.model.rollouts.rollout_moves import ended, moved, rolled_back, with_news
from pilotlight_core.model.rollouts.rollout_record import Rollout, RolloutRecord, RolloutState
from pilotlight_core.model.spec import Mode, VersionRecord
from pilotlight_gateway.deploys.moves.app_moves import AppMoves
from pilotlight_gateway.judging.decisions import Action, RolloutDecision, RolloutNews, decide, why_not_on
from pilotlight_gateway.judging.evidence import Evidence, fold, slow_limits_of, start
from pilotlight_gateway.judging.usual.slow_limits import SlowLimits
from pilotlight_gateway.rollouts.evidence_store import EvidenceStore
from pilotlight_gateway.rollouts.news_pauses import NewsPauses
from pilotlight_gateway.rollouts.rollout_facts import (
    CountedContainers,
    FactSources,
    counted,
    facts_of,
    is_promoted,
    paired_functions,
)
from pilotlight_gateway.rollouts.rollout_gates import RolloutGates
from pilotlight_gateway.tenancy.registry_port import RegistryPort

EVERY_S = 0.25
PAIRS_EVERY_S = 1.0
"""While pairs are gathered: no caller gets the new version's answers then, so nothing is lost by a second. Callers wait
for the loop each time that evidence is read, folded, written and decided on."""
PAGES_AT_ONCE = 8
"""Pages of calls of one rollout that are folded before it is decided on."""
KEPT_AT_ONCE = 32
"""Rollouts; further ones wait for their turn."""
ANSWERED_S = 5.0
"""So long a rollout waits for what policies say of its new version."""
HELD = 1_000
"""Rollouts whose evidence is kept in memory; of more it is read each time."""
LIMITS_EVERY_S = 1.0
CHECKED_S = 60.0
"""After which it is asked again whether policies and keys let the new versions run."""
UNDER_WAY = frozenset({RolloutState.PAIRS, RolloutState.RAMP, RolloutState.BAKING})
FAILED_S = 10.0
"""After which a rollout that could not go on is looked at again."""

log = structlog.get_logger(__name__)


class _Refusal(NamedTuple):
    at: float
    why: str


class _Held(NamedTuple):
    evidence: Evidence
    revision: int


class _Told(NamedTuple):
    limits: SlowLimits
    at: float
    writing: asyncio.Task[bool]
    """Whether they are written."""


@dataclass(slots=True)
class _Kept:
    """What is known here of a rollout that runs: nothing of it must not be lost."""

    held: _Held | None = None
    """Evidence as it was written last."""
    told: _Told | None = None
    """What gateways know of when its calls are slow."""
    refusal: _Refusal | None = None
    again_at: float = 0.0
    """When it is looked at again after it could not go on."""
    pairs_at: float = 0.0
    """Until when pairs are left to gather."""
    task: asyncio.Task[None] | None = None
    """That keeps it just now."""


@dataclass(kw_only=True)
class RolloutKeeper:
    """`wall`: unix seconds; `clock`: monotonic ones."""

    registry: RegistryPort
    store: EvidenceStore
    moves: AppMoves
    make_twin: Callable[[VersionRecord], Awaitable[VersionRecord]]
    """`Deployer.twin`."""
    sources: FactSources
    gates: RolloutGates
    notify_all: Callable[[RolloutRecord], Awaitable[None]]
    """`RolloutTeller.notify_all`."""
    rate_of: Callable[[Sequence[str]], Awaitable[float]]
    """Calls an hour of functions (`tenant:app.function`); 0: it is not known."""
    check: Callable[[RolloutRecord, Rollout], Awaitable[str]]
    """Why the new versions may not run; "": they may."""
    wall: Callable[[], float] = time.time
    clock: Callable[[], float] = time.monotonic
    counts: Counter[str] = field(default_factory=Counter)
    """Folded calls, and what rollouts came to."""
    _kept: dict[str, _Kept] = field(default_factory=dict)
    """By rollout, of those that run."""
    _pauses: NewsPauses = field(default_factory=NewsPauses)
    _turns: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(KEPT_AT_ONCE))

    async def run(self, lease: Lease) -> None:
        """Keep them until the lease is lost: each in a task, so one whose blobs are slow holds no other."""
        self._kept.clear()
        async with asyncio.TaskGroup() as asking:
            notifying = asking.create_task(self._notify(lease))  # whoever listens slowly holds no rollout
            while lease.valid(time.monotonic()):
                running = {one.running.id: one for one in self.registry.iter_rollouts() if one.running is not None}
                containers = counted(self.sources.reports() if running else ())
                self._kept = {id_: kept for id_, kept in self._kept.items() if id_ in running or kept.task is not None}
                for id_, record in running.items():
                    kept = self._kept_of(id_)
                    if kept.task is None:
                        kept.task = asking.create_task(self._keep_in_turn(asking, lease, kept, record, containers))
                await asyncio.sleep(EVERY_S)
            for task in (notifying, *[kept.task for kept in self._kept.values() if kept.task is not None]):
                task.cancel()

    def _kept_of(self, rollout: str) -> _Kept:
        """What is known here of a rollout, by its id."""
        return self._kept.setdefault(rollout, _Kept())

    async def _notify(self, lease: Lease) -> None:
        """Tell what became of rollouts, whoever has moved them."""
        while lease.valid(time.monotonic()):
            untold = [record for record in self.registry.iter_rollouts() if record.untold]
            self._pauses.keep_only({(record.tenant, record.app) for record in untold})
            for record in untold:
                if self._pauses.may_try((record.tenant, record.app), self.clock()):
                    await self._notify_safely(record)
            await asyncio.sleep(EVERY_S)

    async def _notify_safely(self, record: RolloutRecord) -> None:
        app = record.tenant, record.app
        try:
            await self.notify_all(record)
        except (BusError, OSError, KeyConflict, PilotlightError) as error:
            if self._pauses.note_failed(app, self.clock()):
                log.warning("news of a rollout are told later", tenant=record.tenant, app=record.app, error=str(error))
        except Exception:
            if self._pauses.note_failed(app, self.clock()):
                log.exception("news of a rollout were not told", tenant=record.tenant, app=record.app)
        else:
            if self._pauses.note_told(app):
                log.info("news of a rollout are told by now", tenant=record.tenant, app=record.app)

    async def _keep_in_turn(
        self, asking: asyncio.TaskGroup, lease: Lease, kept: _Kept, record: RolloutRecord, containers: CountedContainers
    ) -> None:
        try:
            async with self._turns:
                if lease.valid(time.monotonic()):
                    await self._keep_safely(asking, record, containers)
        finally:
            kept.task = None

    async def _keep_safely(
        self, asking: asyncio.TaskGroup, record: RolloutRecord, containers: CountedContainers
    ) -> None:
        """Keep one; what goes wrong there is its own."""
        rollout = record.running
        if rollout is None or self.wall() < (kept := self._kept_of(rollout.id)).again_at:
            return
        if rollout.state is RolloutState.PAIRS:
            if (at := self.clock()) < kept.pairs_at:
                return
            kept.pairs_at = at + PAIRS_EVERY_S
        try:
            await self.keep(asking, record, containers)
        except (BusError, OSError) as error:
            log.warning("a rollout is looked at later", tenant=record.tenant, app=record.app, error=str(error))
        except KeyConflict:
            log.info("a rollout was kept by somebody else", tenant=record.tenant, app=record.app)
        except Exception as error:
            reason = error.detail if isinstance(error, PilotlightError) else ""
            log.exception("a rollout could not go on", tenant=record.tenant, app=record.app, reason=reason)
            kept.again_at = self.wall() + FAILED_S

    async def keep(self, asking: asyncio.TaskGroup, record: RolloutRecord, containers: CountedContainers) -> None:
        """Fold what is new of a rollout, and do what follows from that and from `containers`, as they are now."""
        rollout = record.running
        if rollout is None:
            return
        if rollout.state is RolloutState.ROLLING_BACK:
            await self._undo_promotion(record, rollout)
        evidence = await self._folded(record, rollout)
        if rollout.state is RolloutState.STARTING:
            rollout = await self._with_twins(record, rollout)
        checks = await self.check(record, rollout) if rollout.state is RolloutState.CHECKING else None
        refused = await self._refused(record, rollout) if rollout.state in UNDER_WAY else ""
        rate = await self.rate_of([f"{record.tenant}:{record.app}.{function}" for function in rollout.control])
        at = self.wall()
        facts = facts_of(
            self.sources, record.tenant, record.app, rollout, containers,
            checks=checks, refused=refused, calls_per_hour=rate,
        )  # fmt: skip
        asks = rollout.terms.gate and rollout.step >= 0 and not refused
        if asks and why_not_on(evidence, rollout, at, facts) == "gate":
            facts = replace(facts, gate=self.gates.answer(asking, record, rollout))
        decision = decide(evidence, rollout, at, facts)
        if decision.action is not Action.STAY:
            await self._do(record, rollout, decision, at)
        self._publish_limits(asking, record, rollout, evidence, at)

    async def _refused(self, record: RolloutRecord, rollout: Rollout) -> str:
        """Why the new versions may not run any more, looked at again each minute; "": they may."""
        at, kept = self.wall(), self._kept_of(rollout.id)
        known = kept.refusal
        if known is not None and 0.0 <= at - known.at < CHECKED_S:
            return known.why
        try:
            async with asyncio.timeout(ANSWERED_S):
                why = await self.check(record, rollout)
        except Exception:  # whatever it is, it must not keep a rollback from being decided
            log.exception("what policies say of a rollout is not known", app=record.app)
            why = "What policies say of the new version is not known now."
        kept.refusal = _Refusal(at, why)
        return why

    # -- evidence -----------------------------------------------------------------------------------------------

    async def _folded(self, record: RolloutRecord, rollout: Rollout) -> Evidence:
        """The evidence with all that was told since, as it is stored."""
        kept = self._kept_of(rollout.id)
        held, kept.held = kept.held, None  # it is used up: what is stored counts if this fails
        evidence, revision = await self._begun(record, rollout) if held is None else held
        place = evidence.seq
        for _ in range(PAGES_AT_ONCE):
            page = await self.store.page(record.tenant, record.app, place)
            for seq, message in page.messages:
                fold(evidence, seq, message.calls)
                self.counts["folded"] += len(message.calls)
                await asyncio.sleep(0)  # a page may be thousands of calls, and this loop serves callers too
            if page.messages:
                revision = await self.store.write(record.tenant, record.app, evidence, revision)
            place = page.last
            if page.is_last:
                break
        if len(self._kept) <= HELD:
            kept.held = _Held(evidence, revision)
        return evidence

    async def _begun(self, record: RolloutRecord, rollout: Rollout) -> _Held:
        """What is stored of a rollout's evidence; begun now if nothing is."""
        kept = await self.store.read(record.tenant, record.app)
        if kept.evidence is not None and kept.evidence.rollout == rollout.id:
            return _Held(kept.evidence, kept.revision)
        streaming = [name for name, version in rollout.canary.items() if self._streams(version)]
        shadowed = paired_functions(self.registry, rollout) if rollout.terms.twin and self.sources.has_pairs else ()
        evidence = start(rollout, streaming=streaming, shadowed=shadowed)
        evidence.seq = await self.store.last_place()
        return _Held(evidence, await self.store.write(record.tenant, record.app, evidence, kept.revision))

    def _streams(self, version_id: str) -> bool:
        version = self.registry.version(version_id)
        return version is not None and any(method.mode is Mode.GENERATOR for method in version.spec.methods)

    def _publish_limits(
        self, asking: asyncio.TaskGroup, record: RolloutRecord, rollout: Rollout, evidence: Evidence, at: float
    ) -> None:
        """Let gateways know from when on calls are slow, where that has changed; no decision waits for it."""
        kept = self._kept_of(rollout.id)
        told = kept.told
        if told is not None and (at - told.at < LIMITS_EVERY_S or not told.writing.done()):
            return
        limits = slow_limits_of(evidence)
        if told is not None and limits == told.limits and told.writing.result():
            return
        writing = asking.create_task(self._write_limits(record, limits))
        kept.told = _Told(limits, at, writing)

    async def _write_limits(self, record: RolloutRecord, limits: SlowLimits) -> bool:
        """Write when calls are slow; whether that was done."""
        try:
            await self.store.write_limits(record.tenant, record.app, limits)
        except (BusError, KeyConflict, OSError) as error:
            log.warning("when calls are slow is said later", app=record.app, error=str(error))
            return False
        except Exception:  # whatever it is, it ends the keeping of no other rollout
            log.exception("when calls are slow is not said", app=record.app)
            return False
        return True

    # -- what follows -------------------------------------------------------------------------------------------

    async def _with_twins(self, record: RolloutRecord, rollout: Rollout) -> Rollout:
        """The rollout with its twins, made now if they are not there yet."""
        wanted = rollout.control.keys() & rollout.canary.keys()
        if not rollout.terms.twin or rollout.twins.keys() >= wanted:
            return rollout
        twins = {}
        for function in sorted(wanted):
            version = self.registry.version(rollout.control[function])
            if version is None:
                raise NotFound(f"The deployed version of {function} is not kept any more.")
            twins[function] = (await self.make_twin(version)).id

        def with_twins(present: RolloutRecord | None) -> RolloutRecord | None:
            now = present.running if present is not None else None
            if present is None or now is None or now.id != rollout.id or now.twins == twins:
                return present
            return moved(present, replace(now, twins=twins))

        changed = await self.registry.change_rollout(record.tenant, record.app, with_twins)
        now = changed.running if changed is not None else None
        return now if now is not None and now.id == rollout.id else rollout

    async def _do(self, record: RolloutRecord, rollout: Rollout, decision: RolloutDecision, at: float) -> None:
        """Write a decision down, unless somebody has changed the rollout meanwhile: then it is decided anew."""
        if decision.action is Action.PROMOTE:
            decision = await self._promoted(record, rollout, decision)
            if decision.action is Action.STAY:
                return
        taken = False

        def change(present: RolloutRecord | None) -> RolloutRecord | None:
            nonlocal taken
            taken = present is not None and present.running == rollout
            return after(present, decision, at) if taken and present is not None else present

        changed = await self.registry.change_rollout(record.tenant, record.app, change)
        if not taken or changed is None or changed.rollout is None:
            return
        was_promoted = decision.state is RolloutState.PROMOTED
        self.counts[(Action.PROMOTE if was_promoted else decision.action).value] += 1

    async def _promoted(self, record: RolloutRecord, rollout: Rollout, decision: RolloutDecision) -> RolloutDecision:
        """Put the new versions into service; what is said of the rollout then."""
        present = await self.registry.rollout(record.tenant, record.app)
        if present is None or present.running != rollout:
            return RolloutDecision()  # a person's word came between
        try:
            await self.moves.promote(record.tenant, record.app, rollout)
        except (BadInput, Conflict, NotFound, QuotaExceeded) as error:
            why = error.detail
            news = (RolloutNews("rollout.superseded", f"The rollout cannot be promoted: {why}"),)
            return replace(decision, action=Action.END, state=RolloutState.SUPERSEDED, reason=why, news=news)
        news = (RolloutNews("rollout.promoted", f"The rollout is promoted: {decision.reason}"),)
        return replace(decision, action=Action.END, state=RolloutState.PROMOTED, news=news)

    async def _undo_promotion(self, record: RolloutRecord, rollout: Rollout) -> None:
        """An abort goes before a promotion that was under way: the old versions are put back."""
        app = self.registry.app_nowait(record.tenant, record.app)
        if is_promoted(rollout, app):
            await self.moves.demote(record.tenant, record.app, rollout)


def after(record: RolloutRecord, decision: RolloutDecision, at: float) -> RolloutRecord:
    """The record when a decision on its running rollout is written, with what is to be told of that. Pure."""
    written = _moved_on(record, decision, at)
    if written is not record:
        for news in decision.news:
            written = with_news(written, news.kind, news.says, at)
    return written


def _moved_on(record: RolloutRecord, decision: RolloutDecision, at: float) -> RolloutRecord:
    rollout = record.running
    if rollout is None:
        return record
    match decision.action:
        case Action.MOVE if decision.rollout is not None:
            return moved(record, decision.rollout)
        case Action.ROLL_BACK:
            return rolled_back(record, at, decision.reason, decision.verdict, marked=decision.marked)
        case Action.END if decision.state is not None:
            with_verdict = replace(record, rollout=replace(rollout, verdict=decision.verdict))
            return ended(with_verdict, at, decision.state, decision.reason)
    return record
