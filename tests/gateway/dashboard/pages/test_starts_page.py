"""Cold starts: which step takes their time."""

from __future__ import annotations

from pilotlight_gateway.dashboard.pages.starts_page import starts_blocks
from tests.gateway.dashboard.pages.scenes import answer_of, table_of


def test_the_slowest_step_of_the_slowest_function_is_the_answer() -> None:
    """Each step that any of them has is a column."""
    base = {"tenant": "acme", "containers": 1, "starting": 0, "longest_ms": 900.0}
    listed = [
        {**base, "function": "acme:shop.a", "total_ms": 900.0, "steps": {"load": 800.0, "warm": 100.0}},
        {**base, "function": "acme:shop.b", "total_ms": 50.0, "steps": {"bind": 50.0}},
    ]
    blocks = starts_blocks({"starts": listed})
    assert answer_of(blocks)[0] == "A start of acme:shop.a takes 900 ms, most of it load (800 ms)."
    assert [row[5:] for row in table_of(blocks, "starts")] == [("800 ms", "100 ms", "–"), ("–", "–", "50 ms")]
    assert answer_of(starts_blocks({"starts": []}))[0] == "No container has told how it started."
