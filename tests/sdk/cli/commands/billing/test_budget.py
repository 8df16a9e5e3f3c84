"""Commands about budgets: what they send, and what they show."""

from __future__ import annotations

import msgspec

from tests.sdk.cli.shell import cells, invoke, run
from tests.sdk.scripted import ScriptedPlatform, answer, problem

MONTH = {
    "id": "month", "usd": "250", "period": "month", "tz": "UTC", "function": None, "key": None, "mode": "hard",
    "thresholds": [50, 80], "by_operator": True, "begins": "2026-11-01T00:00:00Z",
    "resets_at": "2026-12-01T00:00:00Z", "spent_usd": "130.123456789", "left_usd": "119.876543211",
    "is_exhausted": False, "reached": [50], "prepaid": False,
}  # fmt: skip


def test_budgets_are_a_table(platform: ScriptedPlatform) -> None:
    """People see four digits, machines all."""
    told = {"budgets": [MONTH], "currency": "USD"}
    platform.will("GET", "/v1/tenants/acme/budgets", answer(told))

    assert cells(run("billing", "budget", "list", "acme")) == [
        ["budget", "USD", "spent", "left", "mode", "told at", "begins anew"],
        ["month", "250", "130.1", "119.9", "hard", "50% (told), 80%", "2026-12-01T00:00:00Z"],
    ]
    assert msgspec.json.decode(run("billing", "budget", "list", "acme", "--json")) == told


def test_a_budget_is_set_and_removed(platform: ScriptedPlatform) -> None:
    """Of a scope and a period."""
    platform.will("PUT", "/v1/tenants/acme/budgets", answer(MONTH))
    platform.will("DELETE", "/v1/tenants/acme/budgets/day:acme:llm.chat", answer({}, status=204))

    assert run("billing", "budget", "set", "acme", "250") == (
        "acme may spend 250 USD: month, hard. 119.876543211 USD are left.\n"
    )
    words = ("--period", "day", "--tz", "Europe/Berlin", "--function", "llm.chat", "--soft", "--thresholds", "80%,100")
    assert msgspec.json.decode(run("billing", "budget", "set", "acme", "5", *words, "--json")) == MONTH
    sent = [msgspec.json.decode(request.body) for request in platform.asked("/v1/tenants/acme/budgets")]
    assert sent[1] == {
        "usd": "5", "prepaid": False, "period": "day", "tz": "Europe/Berlin", "function": "llm.chat", "key": None,
        "mode": "soft", "thresholds": [80, 100],
    }  # fmt: skip
    assert run("billing", "budget", "remove", "acme", "day:acme:llm.chat") == (
        "acme has no budget day:acme:llm.chat any more.\n"
    )


def test_a_prepaid_budget_has_no_amount_of_its_own(platform: ScriptedPlatform) -> None:
    """It is what credit allows, which the platform tells."""
    prepaid = MONTH | {"id": "prepaid", "usd": "500", "prepaid": True}
    platform.will("PUT", "/v1/tenants/acme/budgets", answer(prepaid))
    platform.will("GET", "/v1/tenants/acme/budgets", answer({"budgets": [prepaid]}))
    assert run("billing", "budget", "set", "acme", "--prepaid") == (
        "acme may spend 500 USD: prepaid, hard. 119.876543211 USD are left.\n"
    )
    sent = msgspec.json.decode(platform.requests[0].body)
    assert (sent["usd"], sent["prepaid"]) == (None, True)
    assert cells(run("billing", "budget", "list", "acme"))[1][:5] == ["prepaid", "500", "130.1", "119.9", "prepaid"]


def test_what_is_wrong_is_said(platform: ScriptedPlatform) -> None:
    """Here, or by the platform."""
    assert invoke("billing", "budget", "set", "acme", "5", "--thresholds", "half").exit_code == 2
    platform.will("PUT", "/v1/tenants/acme/budgets", problem("bad_input", "tz: no time zone."))
    done = invoke("billing", "budget", "set", "acme", "5", "--tz", "Mars")
    assert (done.exit_code, done.stderr.startswith("error: tz: no time zone.\n")) == (1, True)
