"""A discount, a least and the price of a unit through the whole platform: all that tells of a cost tells the same."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest

from pilotlight_core.model.units import cost_of, money
from tests.system.support.ledger import check_nothing_is_in_quarantine, ended, rows
from tests.system.support.platform import Platform
from tests.system.support.platform import platform as run_platform
from tests.system.support.sample_apps import APPS
from tests.waiting import wait_until

PRICES = """
[prices.cpu]
nano_usd_per_hour = 47_160_001
minimum_ms = 1_000

[prices."tenant.default"]
nano_usd_per_hour = 733_333_333

[prices.prompt_tokens]
nano_usd_per_hour = 150_000_007

[prices.completion_tokens]
nano_usd_per_hour = 600_000_000
"""
OFF = "0.266666667"
RECEIPT = "SELECT price, ppm, rate, discount, ns FROM receipt_line WHERE call = ?"


@pytest.fixture(scope="module")
def platform(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Platform]:
    """One with prices of its own, which the duties know by now."""
    folder = tmp_path_factory.mktemp("sold")
    (folder / "prices.toml").write_text(PRICES)
    env = {"PILOTLIGHT_PRICE_FILE": str(folder / "prices.toml")}
    with run_platform(folder, "--cpu-slots", "2", "--blanks", "0", env=env) as running:
        running.deploy(APPS / "sold" / "app.py")

        def is_priced() -> bool:
            call = running.answer("sold.waits", seconds=0.0)["id"]
            wait_until(lambda: call in ended(running, "waits"), "it is folded")
            return {discount for _, _, _, discount, _ in rows(running, RECEIPT, call)} == {266_666_667}

        wait_until(is_priced, "the fold has read the prices")
        yield running


def receipt_of(platform: Platform, call: str) -> dict[str, Any]:
    """What the ledger has billed for a call that has ended."""
    wait_until(lambda: call in ended(platform, "completes"), "it is folded")
    found: dict[str, Any] = platform.http.get(f"/v1/calls/{call}/receipt").raise_for_status().json()
    return found


def run_as_job(platform: Platform, prompt: str) -> dict[str, Any]:
    """The status of a job that has ended."""
    job = platform.http.post(
        "/v1/functions/sold.completes/calls", json={"input": {"prompt": prompt}}, headers={"prefer": "respond-async"}
    ).json()["id"]

    def done() -> dict[str, Any] | None:
        found: dict[str, Any] = platform.http.get(f"/v1/calls/{job}").json()
        return found if found["state"] == "succeeded" else None

    return wait_until(done, "the job ends")


def test_all_that_tells_of_a_cost_tells_the_same(platform: Platform) -> None:
    """Answer, job, receipt, ledger, usage and invoice, to the last place of each."""
    short = platform.answer("sold.completes", prompt="one two")
    long = platform.answer("sold.completes", prompt="one two three four five six")
    job = run_as_job(platform, "one two three four five")
    told = {short["id"]: short["usage"], long["id"]: long["usage"], job["run"]: job["usage"]}
    exact = Fraction(0)
    for (call, usage), sold in zip(told.items(), (2, 4, 4), strict=True):
        receipt = receipt_of(platform, call)
        kept = rows(platform, RECEIPT, call)
        assert usage["discount"] == OFF
        lines = {line["price"]: line for line in receipt["lines"]}
        parts = {part["price"]: part for part in usage["parts"]}
        assert parts.keys() == lines.keys() > {"minimum", "memory_gib", "prompt_tokens"}
        assert {price: part["cost"] for price, part in parts.items()} == {
            price: line["cost"] for price, line in lines.items()
        }
        assert {price: money(cost_of(ns, ppm, rate, off)) for price, ppm, rate, off, ns in kept} == {
            price: line["cost"] for price, line in lines.items()
        }
        whole = sum((cost_of(ns, ppm, rate, off) for _, ppm, rate, off, ns in kept), Fraction(0))
        assert receipt["cost"] == money(whole)
        assert abs(Decimal(usage["cost"]) - Decimal(receipt["cost"])) < Decimal("1e-9")
        assert (parts["prompt_tokens"]["amount"], lines["prompt_tokens"]["ns"]) == (sold, sold)
        assert parts["minimum"]["amount"] + usage["ns"] == 10**9
        assert usage["units"]["completion_tokens"] == 1
        exact += whole
    assert long["usage"]["units"]["prompt_tokens"] == 6

    def busy() -> list[dict[str, Any]]:
        found = platform.http.get("/v1/usage", params={"group": "app,function,state"}).json()["lines"]
        return [one for one in found if (one["function"], one["state"]) == ("completes", "busy")]

    (line,) = busy()
    assert (line["calls"], line["cost"]) == (3, money(exact))


def test_the_invoice_is_what_usage_says(platform: Platform) -> None:
    """Of all that the tenant had in the month, once its containers have ended."""
    today = datetime.now(UTC).date()
    month, first = f"{today:%Y-%m}", today.replace(day=1).isoformat()

    def agreed() -> Any:
        """The invoice, once it is of the same amount as usage and lines before and after it: then all is folded."""
        before, invoice, after = (
            platform.http.get(path).raise_for_status().json()
            for path in (f"/v1/usage?from={first}", f"/v1/billing/invoices/{month}", f"/v1/usage?from={first}")
        )
        lines = rows(platform, "SELECT ppm, rate, discount, ns FROM usage_day WHERE tenant = 'default'")
        spent = money(sum((cost_of(ns, ppm, rate, off) for ppm, rate, off, ns in lines), Fraction(0)))
        return {before["total"]["cost"], invoice["total"], after["total"]["cost"], spent} == {spent} and invoice

    wait_until(lambda: not platform.containers("sold"), "its containers have ended")
    invoice = wait_until(agreed, "invoice, usage and the lines of the ledger are one amount")
    assert {line["price"] for line in invoice["lines"]} >= {"minimum", "prompt_tokens", "memory_gib"}
    assert "completion_tokens" not in {line["price"] for line in invoice["lines"]}
    assert Decimal(invoice["discount"]) > 0
    platform.cli("ledger", "verify", "--from", first, "--state-dir", str(platform.state))
    check_nothing_is_in_quarantine(platform)


@pytest.mark.parametrize("price", ["tenant.default", "h100.spot.eu.1of7", "images"])
def test_operators_set_prices_of_all_kinds(platform: Platform, price: str) -> None:
    """Ahead, and take them back; what a price file says goes on."""
    told = platform.cli("price", "set", price, "0.5", "--from", "2100-01-01").stdout
    assert "then 0.5 from 2100-01-01T00:00:00Z" in told
    (listed,) = [one for one in platform.http.get("/v1/prices").json()["prices"] if one["price"] == price]
    assert [one["usd_per_hour"] for one in listed["to_come"]] == ["0.5"]
    platform.cli("price", "drop", price)
    assert platform.http.get("/v1/prices").is_success


def test_a_hard_budget_holds_what_a_call_may_count(platform: Platform) -> None:
    """A thousand million tokens do not fit into ten dollars, however few a call counts then."""
    platform.cli("billing", "budget", "set", "default", "10", "--period", "lifetime")
    try:
        refused = wait_until(
            lambda: (answer := platform.call("sold.writes")).status_code == 402 and answer.json(), "it is known"
        )
        # 150.000007 dollars by the list, of which the tenant pays 0.733333333.
        assert 110 <= float(refused["budget"]["asked_usd"]) < 110.01
        wait_until(lambda: platform.call("sold.waits", seconds=0.0).status_code == 200, "others are let in")
        platform.cli("billing", "budget", "set", "default", "120", "--period", "lifetime")
        wait_until(lambda: platform.call("sold.writes").status_code == 200, "it fits")
        wait_until(lambda: platform.call("sold.writes").status_code == 200, "what was reserved is free again")
    finally:
        platform.cli("billing", "budget", "remove", "default", "lifetime")
