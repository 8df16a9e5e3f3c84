"""The overview says what is wrong, the worst first."""

from __future__ import annotations

from pilotlight_gateway.dashboard.pages.overview_page import overview_blocks, troubles_of
from tests.gateway.dashboard.pages.scenes import answer_of, breaker, node, queue, queues, slowdown

TOTALS = {"gateways": 1, "requests_per_s": 0.0, "calls": 0, "loop_lag_s": 0.0}
SCALING = {"gateways": [], "sum": TOTALS, "most": TOTALS}


def test_where_nothing_is_wrong_it_says_so() -> None:
    """And a platform without devices has a page too."""
    blocks = overview_blocks(
        {"totals": {}}, {"nodes": [node()]}, queues(queue("full")), {"slowdowns": []},
        {"breakers": [breaker("closed")]}, SCALING,
    )  # fmt: skip
    assert answer_of(blocks) == ("Nothing is wrong.", "good")


def test_a_crash_loop_is_worse_than_a_lack_of_room() -> None:
    """Then silent nodes, what finds no place, breakers, and whoever is slowed down."""
    found = troubles_of(
        {"nodes": [node(), node("n2", status="silent")]},
        queues(queue("no_capacity"), queue("crash_loop", version="shop.bad@v1")),
        {"slowdowns": [slowdown()]},
        {"breakers": [breaker()]},
    )
    assert [key.partition("-")[0] for key, *_ in found] == ["loop", "node", "room", "breaker", "slow"]
    blocks = overview_blocks(
        {"totals": {}}, {"nodes": []}, queues(queue("crash_loop"), queue("no_capacity")), {"slowdowns": []},
        {"breakers": []}, SCALING,
    )  # fmt: skip
    assert answer_of(blocks)[0] == "Containers of shop.hello@v1 cannot be loaded. And 1 thing more, below."
