"""Rollouts as people see them: of one app, its earlier ones, and those of all apps."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from msgspec.structs import asdict

from pilotlight_core.model.api.rollouts.rollout_api import GuardView, RolloutList, RolloutView
from pilotlight_core.model.errors import NotFound
from pilotlight_core.model.messages.node_messages import NodeReport
from pilotlight_core.model.rollouts.rollout_record import (
    EndedRollout,
    Rollout,
    RolloutRecord,
    RolloutState,
    Verdict,
)
from pilotlight_core.model.spec import AppRecord
from pilotlight_gateway.deploys.app_records import version_name
from pilotlight_gateway.judging.guard_facts import guard_facts
from pilotlight_gateway.judging.verdicts import verdict_of
from pilotlight_gateway.rollouts.evidence_store import EvidenceStore
from pilotlight_gateway.rollouts.rollout_facts import counted
from pilotlight_gateway.tenancy.name_hints import known_app
from pilotlight_gateway.tenancy.registry_port import RegistryPort

LISTED = 500
"""Rollouts of a list of all apps', the running ones first."""
READ_AT_ONCE = 32
"""Running rollouts of such a list of which the evidence is read; of others it is what was written at the last step."""
KEPT_S = 2.0
"""For which a verdict is not worked out again for a list."""


class _Judged(NamedTuple):
    """What the evidence says now."""

    verdict: Verdict
    seen: tuple[GuardView, ...] = ()
    at: float = 0.0


@dataclass(frozen=True, kw_only=True)
class RolloutViews:
    """`reports`: what nodes say now; `wall`: unix seconds."""

    registry: RegistryPort
    store: EvidenceStore
    reports: Callable[[], Iterable[NodeReport]]
    wall: Callable[[], float] = time.time
    _kept: dict[str, _Judged] = field(default_factory=dict)
    """By rollout, for lists."""

    async def show(self, tenant: str, app: str) -> RolloutView:
        """The rollout under way, or the last one. Raises NotFound: there was none."""
        record = await known_app(self.registry, tenant, app)
        rollouts = await self.registry.rollout(tenant, app)
        if rollouts is None or rollouts.rollout is None:
            raise NotFound(f"{app} has had no rollout.")
        judged = await self._judged(rollouts, rollouts.rollout)
        return self.view(record, rollouts.rollout, judged.verdict, judged.seen)

    async def past(self, tenant: str, app: str) -> list[RolloutView]:
        """All that are known, the newest first."""
        record = await known_app(self.registry, tenant, app)
        rollouts = await self.registry.rollout(tenant, app)
        if rollouts is None:
            return []
        last = [self.view(record, one, one.verdict)] if (one := rollouts.rollout) is not None else []
        return last + [_ended_view(record, one) for one in reversed(rollouts.past)]

    async def of_apps(self, tenant: str | None) -> RolloutList:
        """Of each app the rollout under way, or the last one: running ones first, then the last to end.

        `tenant`: whose; None: everybody's. Without what each guard has seen, which one app's rollout says.
        """
        found = [
            (record, one) for record in self.registry.iter_rollouts()
            if (one := record.rollout) is not None and tenant in (None, record.tenant)
        ]  # fmt: skip
        found.sort(key=lambda pair: (not pair[1].is_running, -pair[1].since, pair[0].tenant, pair[0].app))
        ready = counted(self.reports()).ready
        views = []
        for place, (rollouts, one) in enumerate(found[:LISTED]):
            if (record := self.registry.app_nowait(rollouts.tenant, rollouts.app)) is not None:
                verdict = await self._listed(rollouts, one) if place < READ_AT_ONCE else one.verdict
                views.append(rollout_view(record, one, verdict, ready))
        return RolloutList(rollouts=tuple(views), left=max(0, len(found) - LISTED))

    def view(
        self, record: AppRecord, rollout: Rollout, verdict: Verdict, seen: tuple[GuardView, ...] = ()
    ) -> RolloutView:
        """A rollout as people see it."""
        ready = counted(self.reports()).ready
        return rollout_view(record, rollout, verdict, ready, seen)

    async def _listed(self, record: RolloutRecord, rollout: Rollout) -> Verdict:
        """Evidence is read often where many look, so what it says is kept for a moment."""
        if not rollout.is_running:
            return rollout.verdict
        at, kept = self.wall(), self._kept.get(rollout.id)
        if kept is None or not 0.0 <= at - kept.at < KEPT_S:
            for old in [name for name, one in self._kept.items() if not 0.0 <= at - one.at < KEPT_S]:
                del self._kept[old]
            kept = self._kept[rollout.id] = (await self._judged(record, rollout))._replace(seen=(), at=at)
        return kept.verdict

    async def _judged(self, record: RolloutRecord, rollout: Rollout) -> _Judged:
        """What is known now; of a rollout that is over, what was said at its end."""
        kept = await self.store.read(record.tenant, record.app)
        if kept.evidence is None or kept.evidence.rollout != rollout.id:
            return _Judged(rollout.verdict)
        seen = guard_facts(kept.evidence)
        if not rollout.is_running or rollout.state is RolloutState.ROLLING_BACK:
            return _Judged(rollout.verdict, seen)
        return _Judged(verdict_of(kept.evidence, self.wall()), seen)


def rollout_view(
    record: AppRecord, rollout: Rollout, verdict: Verdict, ready: Mapping[str, int], seen: tuple[GuardView, ...] = ()
) -> RolloutView:
    """A rollout as people see it; `ready`: containers that take calls, by version. Pure."""
    terms = rollout.terms
    return RolloutView(
        id=rollout.id, number=rollout.number, app=record.app, tenant=record.tenant, state=str(rollout.state),
        held=rollout.held, step=rollout.step + 1, steps=tuple(share / 100 for share in terms.steps),
        share=rollout.share / 100, twin_share=rollout.twin_share / 100, since=rollout.since,
        next_at=next_at(rollout), started_at=rollout.started_at, by=rollout.by, paused_by=rollout.paused_by,
        frozen=rollout.frozen, reason=rollout.reason, functions=_functions(record, rollout.control, rollout.canary),
        verdict=verdict.word, evidence=verdict.evidence, guards=verdict.guards, seen=seen,
        verified_within=verdict.verified_within, calls=verdict.calls, sentences=verdict.sentences,
        ready={
            side: sum(ready.get(version, 0) for version in of_side.values())
            for side, of_side in (
                ("control", rollout.control), ("canary", rollout.canary), ("twin", rollout.twins),
            )
        },
        terms=asdict(terms) | {"steps": [share / 100 for share in terms.steps]},
    )  # fmt: skip


def next_at(rollout: Rollout) -> float:
    """When a rollout leaves its step at the earliest, in unix seconds; 0: that is no matter of time. Pure."""
    if rollout.paused_by or rollout.frozen or rollout.held:
        return 0.0
    if rollout.state is RolloutState.RAMP:
        return rollout.since + rollout.terms.every_s
    return rollout.since + rollout.terms.bake_s if rollout.state is RolloutState.BAKING else 0.0


def _functions(record: AppRecord, control: dict[str, str], canary: dict[str, str]) -> dict[str, dict[str, str]]:
    return {
        name: {
            "canary": version_name(record, name, version),
            **({"control": version_name(record, name, control[name])} if name in control else {}),
        }
        for name, version in canary.items()
    }


def _ended_view(record: AppRecord, one: EndedRollout) -> RolloutView:
    verdict = one.verdict
    return RolloutView(
        id=one.id, number=one.number, app=record.app, tenant=record.tenant, state=str(one.state), since=one.ended_at,
        started_at=one.started_at, by=one.by, reason=one.reason, verdict=verdict.word, evidence=verdict.evidence,
        functions=_functions(record, one.control, one.canary), guards=verdict.guards,
        verified_within=verdict.verified_within, calls=verdict.calls, sentences=verdict.sentences,
    )  # fmt: skip
