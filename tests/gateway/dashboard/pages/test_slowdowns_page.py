"""Neighbours: who is slowed down, and by whom."""

from __future__ import annotations

from pilotlight_gateway.dashboard.pages.slowdowns_page import slowdowns_blocks
from tests.gateway.dashboard.pages.scenes import answer_of, slowdown


def test_the_worst_is_the_answer() -> None:
    """With the tenant that holds most of the slots, if it is known."""
    text, tone = answer_of(slowdowns_blocks({"slowdowns": [slowdown()]}))
    assert (text, tone) == (
        "Calls of acme to acme:shop.hello take 15.7 times as long as alone; bully holds most of the slots.", "bad",
    )  # fmt: skip
    assert "nobody else holds" in answer_of(slowdowns_blocks({"slowdowns": [slowdown(neighbour="")]}))[0]
    assert answer_of(slowdowns_blocks({"slowdowns": []}))[1] == "good"
