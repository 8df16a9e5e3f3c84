"""Queues: who waits longest, and for what."""

from __future__ import annotations

from pilotlight_gateway.dashboard.pages.queues_page import queues_blocks
from tests.gateway.dashboard.pages.scenes import answer_of, queue, queues, table_of


def test_the_longest_wait_is_the_answer() -> None:
    """With its reason; a version whose calls all run is in the table alone."""
    flow = {"tenant": "friend", "priority": "batch", "queued": 1, "oldest_ms": 5_000.0}
    listed = queues(queue("crash_loop", flows=[flow]), queue(queued=0, running=3), left=2)
    blocks = queues_blocks(listed)
    text, tone = answer_of(blocks)
    assert (text, tone) == ("1 call waits, the first one for 5.00 s: shop.hello@v1. Because.", "bad")
    assert [(row[1], row[8]) for row in table_of(blocks, "queues")] == [("1", "cannot be loaded"), ("0", "runs")]
    assert table_of(blocks, "flows") == [("shop.hello@v1", "friend", "batch", "1", "5.00 s")]


def test_where_nobody_waits_it_says_so() -> None:
    """Whatever runs."""
    assert answer_of(queues_blocks(queues(queue(queued=0)))) == ("No call waits.", "good")
