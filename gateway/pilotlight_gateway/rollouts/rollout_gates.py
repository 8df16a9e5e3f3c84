"""Gates: a URL of the app's owner that is asked before each step of its rollout.

An answer of 2xx within the time says yes. Anything else is no answer: the rollout holds, and the gate is asked again.
Nobody waits for one, so a gate that hangs holds its own rollout alone.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

import msgspec
import structlog

from pilotlight_core.model.rollouts.rollout_record import Rollout, RolloutRecord

if TYPE_CHECKING:
    from pilotlight_gateway.webhooks.http_sender import HttpSender

EVERY_S = 10.0
"""Between two questions about one step."""
AT_ONCE = 16
OF_TENANT = 2
KNOWN = 1_000
"""Rollouts of which something is known."""

log = structlog.get_logger(__name__)


class _Said(NamedTuple):
    place: tuple[str, int, str]
    """Rollout, step, state."""
    yes: bool
    at: float


@dataclass(kw_only=True)
class RolloutGates:
    """Asks in tasks of a group that its owner runs. `clock`: monotonic seconds."""

    sender: HttpSender
    clock: Callable[[], float] = time.monotonic
    _said: dict[str, _Said] = field(default_factory=dict)
    _asking: dict[str, str] = field(default_factory=dict)
    """By rollout, its tenant."""

    def answer(self, group: asyncio.TaskGroup, record: RolloutRecord, rollout: Rollout) -> bool | None:
        """What the gate has said to this step; None: it was not asked yet, and is now."""
        place, said = (rollout.id, rollout.step, str(rollout.state)), self._said.get(rollout.id)
        known = said if said is not None and said.place == place else None
        if known is not None and (known.yes or self.clock() - known.at < EVERY_S):
            return known.yes
        if rollout.id not in self._asking and self._has_room(record.tenant):
            self._asking[rollout.id] = record.tenant
            group.create_task(self._ask(record, rollout, place))
        return known.yes if known is not None else None

    def _has_room(self, tenant: str) -> bool:
        of_tenant = sum(one == tenant for one in self._asking.values())
        return len(self._asking) < AT_ONCE and of_tenant < OF_TENANT

    async def _ask(self, record: RolloutRecord, rollout: Rollout, place: tuple[str, int, str]) -> None:
        try:
            outcome = await self.sender.post(
                record.tenant, rollout.terms.gate, {"content-type": "application/json"}, question(record, rollout)
            )
            yes = 200 <= outcome.attempt.status < 300 and not outcome.attempt.error
            if len(self._said) >= KNOWN:
                self._said.clear()
            self._said[rollout.id] = _Said(place, yes, self.clock())
        except Exception:
            log.exception("a gate could not be asked", rollout=rollout.id)
        finally:
            self._asking.pop(rollout.id, None)


def question(record: RolloutRecord, rollout: Rollout) -> bytes:
    """What a gate is asked."""
    return msgspec.json.encode({
        "type": "rollout.gate",
        "data": {
            "app": record.app, "rollout": rollout.id, "number": rollout.number, "state": str(rollout.state),
            "step": rollout.step + 1, "steps": len(rollout.terms.steps), "share": rollout.share / 100,
            "canary": rollout.canary, "verdict": rollout.verdict.word, "evidence": rollout.verdict.evidence,
        },
    })  # fmt: skip
