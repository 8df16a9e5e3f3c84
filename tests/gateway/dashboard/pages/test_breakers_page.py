"""Breakers: which are not closed."""

from __future__ import annotations

from pilotlight_gateway.dashboard.pages.breakers_page import breakers_blocks
from tests.gateway.dashboard.pages.scenes import answer_of, breaker, table_of


def test_those_that_are_not_closed_are_counted() -> None:
    """What counts failures is listed too."""
    listed = [breaker(), breaker("half_open", of="tenant", caller="friend"), breaker("closed", retry_after_s=0.0)]
    blocks = breakers_blocks({"breakers": listed})
    assert answer_of(blocks) == ("2 breakers not closed.", "bad")
    assert [(row[2], row[3], row[5]) for row in table_of(blocks, "breakers")] == [
        ("all calls", "open", "4.00 s"), ("friend", "half open", "4.00 s"), ("all calls", "closed", "–"),
    ]  # fmt: skip
    assert answer_of(breakers_blocks({"breakers": [breaker("closed")]})) == ("All breakers are closed.", "good")
