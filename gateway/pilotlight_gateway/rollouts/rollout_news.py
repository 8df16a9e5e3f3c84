"""Tells people what becomes of rollouts: as events of the platform, and as deliveries of webhooks.

What is to be told stands in the record of the rollout, written with the change that it tells of. Whoever keeps rollouts
tells it, and strikes it out then: if it dies before, the next one tells it again, under the same id.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pilotlight_core.bus import BusError
from pilotlight_core.host.events.event_log import EventLog
from pilotlight_core.model.api.webhook_api import ROLLOUT_EVENTS
from pilotlight_core.model.errors import PilotlightError
from pilotlight_core.model.messages.logs import SENTENCE_LENGTH, PlatformEvent
from pilotlight_core.model.rollouts.rollout_moves import without_news
from pilotlight_core.model.rollouts.rollout_record import EndedRollout, Rollout, RolloutRecord, UntoldNews
from pilotlight_gateway.tenancy.registry_port import RegistryPort
from pilotlight_gateway.webhooks.webhook_notices import DeliveryStore, make_deliveries


@dataclass(frozen=True, kw_only=True)
class RolloutTeller:
    """Where it is told."""

    registry: RegistryPort
    events: EventLog
    hooks: DeliveryStore

    async def notify_all(self, record: RolloutRecord) -> None:
        """Tell what a record has to be told, in its order.

        Raises:
            BusError, OSError, PilotlightError: the rest cannot be told now; what was told is struck out.
        """
        told: list[str] = []
        failed: Exception | None = None
        try:
            for news in record.untold:
                await self._notify(record, news)
                told.append(news.id)
        except (BusError, OSError, PilotlightError) as error:
            failed = error
        if told:
            await self.registry.change_rollout(
                record.tenant, record.app, lambda present: without_news(present, told) if present is not None else None
            )
        if failed is not None:
            raise failed

    async def _notify(self, record: RolloutRecord, news: UntoldNews) -> None:
        says, rollout = (
            f"Rollout {news.number} of {record.app}: {news.says}"[:SENTENCE_LENGTH],
            rollout_of(record, news),
        )
        facts = facts_told(record, news, rollout)
        event = PlatformEvent(at=news.at, kind=news.kind, tenant=record.tenant, says=says, facts=facts)
        await self.events.store(event, news.id)
        if news.kind in ROLLOUT_EVENTS:
            data = facts | {"says": says, "sentences": list(rollout.verdict.sentences) if rollout is not None else []}
            await make_deliveries(self.hooks, record.tenant, news.kind, about_of(news), data, news.at)


def rollout_of(record: RolloutRecord, news: UntoldNews) -> Rollout | EndedRollout | None:
    """The rollout that news are of; None: so many came after it that it is not kept any more."""
    last = record.rollout
    if last is not None and last.id == news.rollout:
        return last
    return next((one for one in record.past if one.id == news.rollout), None)


def facts_told(record: RolloutRecord, news: UntoldNews, rollout: Rollout | EndedRollout | None) -> dict[str, Any]:
    """What programs read of it."""
    return {
        "app": record.app, "rollout": news.rollout, "number": news.number, "state": news.state, "step": news.step + 1,
        "share": news.share / 100, "held": news.held, "reason": news.reason, "verdict": news.word,
        "evidence": news.evidence, "canary": rollout.canary if rollout is not None else {},
    }  # fmt: skip


def about_of(news: UntoldNews) -> str:
    """What a delivery's id follows from: one that holds for the same reason again at one step is told once."""
    return f"{news.rollout}:{news.kind}:{news.state}:{news.step}:{news.held}"
