"""Decisions: what was decided, and why."""

from __future__ import annotations

from typing import Any

from pilotlight_gateway.dashboard.page_parts.gateway_client import ApiAnswer
from pilotlight_gateway.dashboard.pages.decisions_page import decisions_blocks
from tests.gateway.dashboard.pages.scenes import answer_of, table_of
from tests.gateway.dashboard.site import Site


def decision(**more: Any) -> dict[str, Any]:
    usual = {
        "container": "ctr_1", "function": "acme:shop.hello", "version": "shop.hello@v1", "state": "running",
        "decided_at": "2026-11-27T06:00:00Z", "considered": 7, "refused": {"memory": 2, "kind": 3}, "reason": "",
        "winner": {"node": "n1", "what": "3g", "slice": "s", "value": {}, "step": ""},
        "losers": [{"node": "n2", "what": "3g", "slice": "s", "value": {}, "step": "stranded"}],
    }  # fmt: skip
    return usual | more


def test_a_decision_is_said_with_its_best_loser_or_its_reason() -> None:
    """The filter that refused most stands first."""
    waiting = decision(state="waiting", winner=None, losers=[], reason="no H100 is free")
    blocks = decisions_blocks({"lines": ["Because."], "decisions": [decision(), waiting]}, "")
    assert answer_of(blocks) == ("2 decisions; 1 wait for a place.", "warn")
    first, second = table_of(blocks, "decisions")
    assert first == (
        "2026-11-27 06:00:00", "shop.hello@v1", "running", "n1 3g", "7", "kind 3, memory 2",
        "best before n2 by stranded",
    )  # fmt: skip
    assert (second[3], second[6]) == ("", "no H100 is free")


async def test_what_the_controller_does_not_know_is_said(site: Site) -> None:
    """In its words, on the page."""
    site.api.answers["/v1/placement/explain"] = ApiAnswer(status=404, body=b'{"detail": "Nothing was decided."}')
    async with site.logged_in() as browser:
        answer = await browser.get("/ui/decisions", params={"function": "acme:shop.hello"})
    assert answer.status_code == 200
    assert "Nothing was decided." in answer.text
    assert ("GET", "/v1/placement/explain?function=acme%3Ashop.hello") in site.api.asked
