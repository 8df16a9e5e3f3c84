"""Tenants: who has what, and who is hurt."""

from __future__ import annotations

from pilotlight_gateway.dashboard.pages.tenants_page import tenants_blocks
from tests.gateway.dashboard.pages.scenes import answer_of, container, queue, queues, slowdown, table_of


def test_a_tenant_is_told_with_all_that_is_its_own() -> None:
    """Also its calls of others' functions that wait; who has most stands first."""
    tenants = [
        {"name": name, "tier": "paid", "weight": 1.0, "disabled": name == "off"} for name in ("off", "acme", "friend")
    ]
    flow = {"tenant": "friend", "priority": "batch", "queued": 3, "oldest_ms": 5.0}
    costs = {"currency": "USD", "tenants": [{"tenant": "acme", "cost": "12.5", "calls": 7}]}
    blocks = tenants_blocks(
        {"tenants": tenants}, {"containers": [container(), container(state="loading")]},
        queues(queue(queued=3, flows=[flow])), {"slowdowns": [slowdown()]}, costs,
    )  # fmt: skip
    assert answer_of(blocks) == ("3 tenants; 1 slowed down by others, 1 waiting.", "bad")
    assert table_of(blocks, "tenants") == [
        ("acme", "paid", "1", "2", "1", "0", "15.7", "7", "12.50 USD"),
        ("friend", "paid", "1", "0", "0", "3", "–", "0", "0.00 USD"),
        ("off", "paid, disabled", "1", "0", "0", "0", "–", "0", "0.00 USD"),
    ]  # fmt: skip
