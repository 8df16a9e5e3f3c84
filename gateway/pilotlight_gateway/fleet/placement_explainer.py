"""Asks the leading controller for its reasons, and one that advises for its advice."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

from pilotlight_core.bus import Bus, BusDown, BusTimeout, NoResponders
from pilotlight_core.model import subjects
from pilotlight_core.model.errors import NotFound, Unavailable
from pilotlight_core.model.messages.controller_questions import ExplainPlacement, PlacementReply

ANSWER_S = 5.0
"""Long enough to rebuild a past fleet."""


NOBODY_ADVISES = "No controller advises: start one beside the leader with `python -m pilotlight_autoscaler --advise`."


class Explainer(Protocol):
    """Explains placements and scaling."""

    async def explain(self, asked: ExplainPlacement) -> PlacementReply:
        """The controller's explanation.

        Raises:
            Unavailable: no controller leads.
        """
        ...

    async def advise(self, asked: ExplainPlacement) -> PlacementReply:
        """What a controller that advises would have.

        Raises:
            NotFound: none is there.
        """
        ...


class BusExplainer:
    """The `Explainer` over the bus."""

    def __init__(self, bus: Bus, *, region: str) -> None:
        self._bus = bus
        self._region = region

    async def explain(self, asked: ExplainPlacement) -> PlacementReply:
        reply = await self._ask(subjects.explain(self._region), asked)
        if reply is None:
            raise Unavailable(
                "No controller leads now, so no placement can be explained.", code="starting", retry_after=2.0
            )
        return reply

    async def advise(self, asked: ExplainPlacement) -> PlacementReply:
        reply = await self._ask(subjects.advice(self._region), asked)
        if reply is None:
            raise NotFound(NOBODY_ADVISES)
        return reply

    async def _ask(self, subject: str, asked: ExplainPlacement) -> PlacementReply | None:
        try:
            reply = await self._bus.request(subject, asked, ANSWER_S)
        except (BusDown, BusTimeout, NoResponders):
            return None
        return reply if isinstance(reply, PlacementReply) else None


NOTHING = PlacementReply(found=False, lines=("Nothing was decided yet.",))


@dataclass(kw_only=True)
class MemoryExplainer:
    """An in-memory `Explainer`; without `reply` no controller leads, without `advice` none advises."""

    reply: PlacementReply | None = NOTHING
    advice: PlacementReply | None = None
    asked: list[ExplainPlacement] = field(default_factory=list)

    async def explain(self, asked: ExplainPlacement) -> PlacementReply:
        self.asked.append(asked)
        if self.reply is None:
            raise Unavailable(
                "No controller leads now, so no placement can be explained.", code="starting", retry_after=2.0
            )
        return self.reply

    async def advise(self, asked: ExplainPlacement) -> PlacementReply:
        self.asked.append(asked)
        if self.advice is None:
            raise NotFound(NOBODY_ADVISES)
        return self.advice
