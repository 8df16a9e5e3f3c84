"""Tells people what becomes of rollouts: as events of the platform, and as deliveries of webhooks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pilotlight_core.host.events.event_log import EventLog
from pilotlight_core.model.api.webhook_api import ROLLOUT_EVENTS
from pilotlight_core.model.messages.logs import SENTENCE_LENGTH, PlatformEvent
from pilotlight_core.model.rollouts.rollout_record import Rollout, RolloutRecord
from pilotlight_gateway.judging.decisions import RolloutNews
from pilotlight_gateway.webhooks.webhook_notices import DeliveryStore, notify_webhooks


@dataclass(frozen=True, kw_only=True)
class RolloutTeller:
    """Where it is told."""

    events: EventLog
    hooks: DeliveryStore

    async def notify(self, record: RolloutRecord, rollout: Rollout, news: RolloutNews, at: float) -> None:
        """Tell one of them."""
        says = f"Rollout {rollout.number} of {record.app}: {news.says}"[:SENTENCE_LENGTH]
        self.events.note(
            PlatformEvent(at=at, kind=news.kind, tenant=record.tenant, says=says, facts=facts_told(record, rollout))
        )
        if news.kind in ROLLOUT_EVENTS:
            data = facts_told(record, rollout) | {"says": says, "sentences": list(rollout.verdict.sentences)}
            await notify_webhooks(self.hooks, record.tenant, news.kind, about_of(rollout, news.kind), data, at)


def facts_told(record: RolloutRecord, rollout: Rollout) -> dict[str, Any]:
    """What programs read of it."""
    return {
        "app": record.app, "rollout": rollout.id, "number": rollout.number, "state": str(rollout.state),
        "step": rollout.step + 1, "share": rollout.share / 100, "held": rollout.held, "reason": rollout.reason,
        "verdict": rollout.verdict.word, "evidence": rollout.verdict.evidence, "canary": rollout.canary,
    }  # fmt: skip


def about_of(rollout: Rollout, kind: str) -> str:
    """What a delivery's id follows from: one that holds for the same reason again at one step is told once."""
    return f"{rollout.id}:{kind}:{rollout.state}:{rollout.step}:{rollout.held}"
