"""Commands about credits: what they send, and what they show."""

from __future__ import annotations

import msgspec

from tests.sdk.cli.shell import cells, run
from tests.sdk.scripted import ScriptedPlatform, answer

GRANT = {
    "id": "grant_1", "usd": "10", "left_usd": "8", "begins": "2026-11-26", "ends": None, "priority": 0,
    "note": "to begin with",
}  # fmt: skip
LINE = {"day": "2026-11-26", "change": "granted", "grant": "grant_1", "usd": "10", "balance_usd": "10"}
TOLD = {"balance_usd": "8", "owed_usd": "0", "grants": [GRANT], "history": [LINE], "currency": "USD"}


def test_a_balance_is_shown_with_its_history(platform: ScriptedPlatform) -> None:
    """And as JSON."""
    platform.will("GET", "/v1/tenants/acme/credits", answer(TOLD))
    told = run("billing", "credit", "show", "acme", "--history")
    assert told.startswith("acme has 8 USD.\n")
    assert ["grant_1", "10", "8", "2026-11-26", "never", "0", "to begin with"] in cells(told)
    assert ["2026-11-26", "granted", "grant_1", "10", "10"] in cells(told)
    assert msgspec.json.decode(run("billing", "credit", "show", "acme", "--json")) == TOLD


def test_credit_is_granted_and_ended(platform: ScriptedPlatform) -> None:
    """What is owed is told."""
    platform.will("POST", "/v1/tenants/acme/credits", answer(TOLD | {"balance_usd": "-2", "owed_usd": "2"}))
    platform.will("DELETE", "/v1/tenants/acme/credits/grant_1", answer(TOLD))
    words = ("--ends", "2027-01-01", "--priority", "-1", "--note", "to begin with")
    assert run("billing", "credit", "grant", "acme", "10", *words).startswith("acme has -2 USD, 2 of it owed.\n")
    (sent,) = platform.asked("/v1/tenants/acme/credits")
    assert msgspec.json.decode(sent.body) == {
        "usd": "10", "ends": "2027-01-01", "priority": -1, "note": "to begin with",
    }  # fmt: skip
    assert run("billing", "credit", "end", "acme", "grant_1").startswith("acme has 8 USD.\n")
    assert msgspec.json.decode(run("billing", "credit", "grant", "acme", "10", "--json"))["owed_usd"] == "2"
    assert msgspec.json.decode(run("billing", "credit", "end", "acme", "grant_1", "--json")) == TOLD
