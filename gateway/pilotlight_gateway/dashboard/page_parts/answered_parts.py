"""Parts of a page by themselves: what the API says, or why it does not, so that one part takes no other away.

Three states that are often shown alike look different here: the viewer may not know, there is nothing, and nobody says.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from pilotlight_gateway.dashboard.page_parts.blocks import Sentence
from pilotlight_gateway.dashboard.page_parts.gateway_client import ApiProblem
from pilotlight_gateway.dashboard.page_parts.page import ABSENT, PageView

LOGGED_OUT, REFUSED = 401, 403


class PartState(StrEnum):
    """What became of a question."""

    ANSWERED = "answered"
    NOT_ALLOWED = "not allowed"  # the viewer's key has not the scope
    NOT_THERE = "not there"  # the API knows of no such thing
    NOT_KNOWN = "not known"  # nobody has answered, or with a failure


TONES = {PartState.NOT_ALLOWED: "warn", PartState.NOT_THERE: "quiet", PartState.NOT_KNOWN: "bad"}


@dataclass(frozen=True, kw_only=True)
class AnsweredPart:
    """The JSON of a route, or the API's word in its place."""

    state: PartState = PartState.ANSWERED
    value: Any = None
    detail: str = ""

    @property
    def answered(self) -> bool:
        return self.state is PartState.ANSWERED


async def read_part(view: PageView, path: str, **query: object) -> AnsweredPart:
    """What a route says, or why it says nothing.

    Raises:
        ApiProblem: the viewer's session has ended.
    """
    try:
        return AnsweredPart(value=await view.read(path, **query))
    except ApiProblem as problem:
        if problem.status == LOGGED_OUT:
            raise
        return AnsweredPart(state=_state_of(problem.status), detail=problem.detail)


def _state_of(status: int) -> PartState:
    if status == REFUSED:
        return PartState.NOT_ALLOWED
    return PartState.NOT_THERE if status in ABSENT else PartState.NOT_KNOWN


def unanswered(name: str, what: str, part: AnsweredPart) -> list[Sentence]:
    """In the place of a part that is not shown, why; nothing in that of one that is."""
    if part.answered:
        return []
    return [Sentence(id=name, text=f"{what}: {part.state}. {part.detail}".strip(), tone=TONES[part.state])]
