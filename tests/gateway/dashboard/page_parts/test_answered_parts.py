"""Parts that are not answered say why, and look different."""

from __future__ import annotations

from typing import Any

import pytest

from pilotlight_gateway.dashboard.page_parts.answered_parts import (
    AnsweredPart,
    PartState,
    read_part,
    unanswered,
)
from pilotlight_gateway.dashboard.page_parts.gateway_client import AnswerCache, ApiAnswer, ApiProblem
from pilotlight_gateway.dashboard.page_parts.page import PageView
from pilotlight_gateway.dashboard.page_parts.viewers import Viewer

VIEWER = Viewer(token="t", tenant="acme", key="k", scopes=frozenset({"read"}), expires_at=0.0)


class OneAnswer:
    """A `GatewayApi` that answers with one status."""

    def __init__(self, status: int) -> None:
        self.status = status

    async def ask(self, method: str, path: str, token: str = "", body: Any = None) -> ApiAnswer:
        if not self.status:
            raise ApiProblem(0, "unreachable", "No gateway answers.")
        body = b'{"a": 1}' if self.status == 200 else b'{"code": "x", "detail": "It says why."}'
        return ApiAnswer(status=self.status, body=body)


def view(status: int) -> PageView:
    return PageView(viewer=VIEWER, answers=AnswerCache(OneAnswer(status)))


@pytest.mark.parametrize(
    ("status", "state", "tone"),
    [
        (403, PartState.NOT_ALLOWED, "warn"),
        (404, PartState.NOT_THERE, "quiet"),
        (405, PartState.NOT_THERE, "quiet"),
        (503, PartState.NOT_KNOWN, "bad"),
        (0, PartState.NOT_KNOWN, "bad"),
    ],
)
async def test_three_states_that_look_alike_elsewhere(status: int, state: PartState, tone: str) -> None:
    """Each with the API's own words."""
    part = await read_part(view(status), "/v1/x")
    assert (part.state, part.answered) == (state, False)
    (sentence,) = unanswered("id", "Keys", part)
    assert sentence.tone == tone
    assert sentence.text.startswith(f"Keys: {state}. ")
    assert sentence.text.endswith(part.detail)


async def test_what_is_answered_is_shown() -> None:
    """And has no sentence in its place; a session that has ended is no part's affair."""
    part = await read_part(view(200), "/v1/x", limit=5)
    assert part == AnsweredPart(value={"a": 1})
    assert unanswered("id", "Keys", part) == []
    with pytest.raises(ApiProblem):
        await read_part(view(401), "/v1/x")
