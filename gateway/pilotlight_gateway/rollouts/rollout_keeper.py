"""Keeps all rollouts of a region: reads what is told of their calls, decides, and writes down what follows.

One gateway does, under a lease; another one goes on where it stopped. The order is: fold, store the evidence with its
place in the stream, decide, change the record by compare-and-set. A death between any two repeats what came after the
last one that was written, and every one of them says the same when it is repeated.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

import structlog
from msgspec.structs import replace

from pilotlight_core.bus import BusError, KeyConflict, Lease
from pilotlight_core.host.events.event_log import EventLog
from pilotlight_core.model.errors import Conflict, NotFound, PilotlightError
from pilotlight_core.model.messages.logs import SENTENCE_LENGTH, PlatformEvent
from pilotlight_core.model.rollouts.rollout_moves import ended, moved, rolled_back
from pilotlight_core.model.rollouts.rollout_record import Rollout, RolloutRecord, RolloutState, Verdict
from pilotlight_core.model.spec import Mode, VersionRecord
from pilotlight_gateway.deploys.moves.app_moves import AppMoves
from pilotlight_gateway.judging.evidence import Evidence, begin_evidence, fold
from pilotlight_gateway.judging.rollout_steps import RolloutStep, next_step
from pilotlight_gateway.judging.verdicts import HOLD, verdict_of
from pilotlight_gateway.rollouts.evidence_store import EvidenceStore
from pilotlight_gateway.rollouts.rollout_facts import FactSources, facts_of
from pilotlight_gateway.tenancy.registry_port import RegistryPort

EVERY_S = 0.5
SHOWN_EVERY_S = 5.0
"""A verdict that says nothing new is written down so often."""
PAGES_AT_ONCE = 8
"""Pages of calls of one rollout that are folded before the next rollout has its turn."""

log = structlog.get_logger(__name__)


@dataclass(kw_only=True)
class RolloutKeeper:
    """`wall`: unix seconds."""

    registry: RegistryPort
    store: EvidenceStore
    moves: AppMoves
    make_twin: Callable[[VersionRecord], Awaitable[VersionRecord]]
    """`Deployer.twin`."""
    sources: FactSources
    events: EventLog
    wall: Callable[[], float] = time.time
    counts: Counter[str] = field(default_factory=Counter)
    """Folded calls, and what rollouts came to."""
    _shown_at: dict[str, float] = field(default_factory=dict)

    async def run(self, lease: Lease) -> None:
        """Keep them until the lease is lost."""
        while lease.valid(time.monotonic()):
            for record in list(self.registry.iter_rollouts()):
                if record.running is not None:
                    await self._keep_safely(record)
            await asyncio.sleep(EVERY_S)

    async def _keep_safely(self, record: RolloutRecord) -> None:
        """Keep one; what goes wrong there is its own."""
        try:
            await self.keep(record)
        except (BusError, OSError) as error:
            log.warning("a rollout is looked at later", tenant=record.tenant, app=record.app, error=str(error))
        except KeyConflict:
            pass  # somebody else has it now
        except PilotlightError as error:
            log.warning("a rollout could not go on", tenant=record.tenant, app=record.app, reason=error.detail)
        except Exception:
            log.exception("a rollout could not go on", tenant=record.tenant, app=record.app)

    async def keep(self, record: RolloutRecord) -> None:
        """Fold what is new of a rollout, and take the step that is due."""
        rollout = record.running
        if rollout is None:
            return
        evidence = await self._fold(record, rollout)
        at = self.wall()
        verdict = verdict_of(evidence, at)
        if rollout.state is RolloutState.STARTING:
            rollout = await self._with_twins(record, rollout)
        facts = await facts_of(self.sources, record, rollout, evidence, at)
        step = next_step(rollout, verdict, facts, at)
        if step is not None:
            await self._take(record, step, verdict, at)
        elif self._is_news(rollout, verdict, at):
            await self._show(record, rollout, verdict)

    async def _fold(self, record: RolloutRecord, rollout: Rollout) -> Evidence:
        """The evidence with all that was told since, as it is stored."""
        kept = await self.store.read(record.tenant, record.app)
        if kept is not None and kept.evidence.rollout == rollout.id:
            evidence, revision = kept.evidence, kept.revision
        else:
            place = await self.store.last_place()
            evidence, revision = begin_evidence(rollout, streams=self._streams(rollout), seq=place), 0
            revision = await self.store.write(
                record.tenant, record.app, evidence, kept.revision if kept is not None else revision
            )
        for _ in range(PAGES_AT_ONCE):
            messages = await self.store.messages(record.tenant, record.app, evidence.seq)
            for seq, message in messages:
                fold(evidence, seq, message.calls)
                self.counts["calls"] += len(message.calls)
                await asyncio.sleep(0)
            if not messages:
                break
            revision = await self.store.write(record.tenant, record.app, evidence, revision)
        return evidence

    def _streams(self, rollout: Rollout) -> bool:
        versions = [self.registry.version(version) for version in rollout.canary.values()]
        return any(method.mode is Mode.GENERATOR for one in versions if one is not None for method in one.spec.methods)

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

    async def _take(self, record: RolloutRecord, step: RolloutStep, verdict: Verdict, at: float) -> None:
        """Write a step down, unless somebody has changed the rollout meanwhile: then it is decided anew."""
        if step.promotes:
            try:
                await self.moves.promote(record.tenant, record.app, step.rollout)
            except (Conflict, NotFound) as error:
                await self._supersede(record, step.rollout, error.detail, at)
                return
        before = record.running
        taken = False

        def change(present: RolloutRecord | None) -> RolloutRecord | None:
            nonlocal taken
            taken = False
            if present is None or before is None or not _is_as_decided(present, before):
                return present
            taken = True
            after = replace(step.rollout, verdict=verdict)
            if after.state is RolloutState.ROLLING_BACK and before.state is not RolloutState.ROLLING_BACK:
                return rolled_back(present, at, step.rollout.reason, verdict, marked=step.marks)
            if not after.is_running:
                return ended(moved(present, replace(before, verdict=verdict)), at, after.state, after.reason)
            return moved(present, after)

        await self.registry.change_rollout(record.tenant, record.app, change)
        if taken and step.event:
            self.counts[step.event] += 1
            self._tell(record, step.rollout, step.event, step.said, verdict, at)

    async def _supersede(self, record: RolloutRecord, rollout: Rollout, why: str, at: float) -> None:
        def change(present: RolloutRecord | None) -> RolloutRecord | None:
            now = present.running if present is not None else None
            if present is None or now is None or now.id != rollout.id:
                return present
            return ended(present, at, RolloutState.SUPERSEDED, why)

        await self.registry.change_rollout(record.tenant, record.app, change)
        self._tell(record, rollout, "superseded", why, rollout.verdict, at)

    def _is_news(self, rollout: Rollout, verdict: Verdict, at: float) -> bool:
        """Whether a verdict is to be shown: it is another one, or the last was shown a while ago and calls came."""
        before = rollout.verdict
        if verdict.word != before.word or (verdict.evidence >= HOLD) != (before.evidence >= HOLD):
            return True
        return verdict.calls != before.calls and at - self._shown_at.get(rollout.id, 0.0) >= SHOWN_EVERY_S

    async def _show(self, record: RolloutRecord, rollout: Rollout, verdict: Verdict) -> None:
        """Write the verdict into the record, for people. It changes no call's side, so `revision` stays."""
        if len(self._shown_at) > 10_000:
            self._shown_at.clear()
        self._shown_at[rollout.id] = self.wall()

        def change(present: RolloutRecord | None) -> RolloutRecord | None:
            if present is None or not _is_as_decided(present, rollout) or present.rollout is None:
                return present
            return replace(present, rollout=replace(present.rollout, verdict=verdict))

        await self.registry.change_rollout(record.tenant, record.app, change)

    def _tell(
        self, record: RolloutRecord, rollout: Rollout, event: str, said: str, verdict: Verdict, at: float
    ) -> None:
        says = f"Rollout {rollout.number} of {record.app}: {event.replace('_', ' ')}: {said}"
        facts = {
            "app": record.app, "rollout": rollout.id, "state": str(rollout.state), "share": rollout.share,
            "evidence": verdict.evidence, "verdict": verdict.word,
        }  # fmt: skip
        self.events.note(
            PlatformEvent(
                at=at, kind=f"rollout.{event}", tenant=record.tenant, says=says[:SENTENCE_LENGTH], facts=facts
            )
        )


def _is_as_decided(present: RolloutRecord, before: Rollout) -> bool:
    """Whether a rollout is where it was when it was decided on, but for what is shown of it."""
    now = present.running
    return now is not None and replace(now, verdict=before.verdict, twins=before.twins) == before
