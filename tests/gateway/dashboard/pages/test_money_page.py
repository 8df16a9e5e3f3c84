"""Money: whether all time is accounted for."""

from __future__ import annotations

from typing import Any

from pilotlight_gateway.dashboard.pages.money_page import money_blocks
from tests.gateway.dashboard.pages.scenes import answer_of, table_of


def costs(sold: float) -> dict[str, Any]:
    device = {
        "node": "n1", "device": "gpu", "gpu": "H100", "hours": 10.0, "sold": sold, "revenue": "5", "list_value": "20",
    }  # fmt: skip
    return {"currency": "USD", "tenants": [], "operator": [], "devices": [device]}


def test_a_device_that_was_sold_for_more_than_its_time_is_the_answer() -> None:
    """Rounding is none."""
    assert answer_of(money_blocks(costs(1.0000001), None))[1] == "good"
    blocks = money_blocks(costs(1.01), {"counts": [{"node": "n1", "reason": "late", "events": 3}]})
    text, tone = answer_of(blocks)
    assert (text, tone) == ("n1 gpu was sold for more time than it was metered for.", "bad")
    assert table_of(blocks, "devices") == [("n1 gpu", "H100", "10", "101.0 %", "5.00 USD", "20.00 USD")]
    assert table_of(blocks, "quarantine") == [("n1", "late", "3")]
