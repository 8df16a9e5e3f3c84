"""The page of the seeded month."""

from __future__ import annotations

import re
from html.parser import HTMLParser

from pilotlight_core.model.api.billing_api import MonthForecast, ThresholdLine
from pilotlight_core.model.units import shown_money
from pilotlight_gateway.ledger.ledger_store import Ledger
from pilotlight_gateway.ledger.usage_queries import usage_report, usage_sums
from pilotlight_gateway.reports.usage_page import GROUPS, as_page
from tests.gateway.reports.seeded_month import FIRST, MADE, UNTIL

FORECAST = MonthForecast(
    month="2026-12", so_far="20", expected="61.5", low="55.25", high="70", error=0.1, method="same weekdays", days=38
)


def page(ledger: Ledger, tenant: str | None, forecast: MonthForecast | None = FORECAST) -> str:
    rows = usage_sums(ledger, tenant, FIRST, UNTIL, GROUPS)
    return as_page(rows, tenant=tenant, first=FIRST, until=UNTIL, at=MADE, forecast=forecast, currency="USD")


class Cells(HTMLParser):
    """The table's rows."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.rows: list[list[str]] = []
        self.tags: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        if tag == "tr":
            self.rows.append([])
        elif tag in ("td", "th"):
            self.rows[-1].append("")

    def handle_data(self, data: str) -> None:
        if self.rows and self.rows[-1] and "table" in self.tags:
            self.rows[-1][-1] += data


def test_it_stands_alone(month: Ledger) -> None:
    """No script, and nothing from a network."""
    text = page(month, "acme")
    assert not re.search(r"<script|https?://|src=|@import|url[(]", text)
    assert Cells(text).tags.count("svg") == 3


def test_it_says_what_the_report_says(month: Ledger) -> None:
    """By function, with the total; rounded for people."""
    rows = Cells(page(month, "acme")).rows
    total = usage_report(month, "acme", FIRST, UNTIL, ()).total
    assert [row[0] for row in rows][:3] == ["function", "search.embed", "shop.rank"]
    assert rows[3][0] == "total"
    assert (rows[3][1], rows[3][5][:5]) == (f"{total.calls:,}", shown_money(total.cost)[:5])
    assert "61.50" in page(month, "acme")
    assert "55.25 to 70.00" in page(month, "acme")


def test_the_operator_sees_tenants_and_what_is_unused(month: Ledger) -> None:
    """In one page."""
    rows = Cells(page(month, None)).rows
    assert [row[0] for row in rows[1:]] == ["acme", "birch", "cedar", "total", "not sold"]
    assert "not sold, at the same prices" in page(month, None)


def test_nothing_is_a_page_too(month: Ledger) -> None:
    """Without a forecast, and of a long time."""
    text = as_page((), tenant="nobody", first="2020-01-01", until=UNTIL, at=MADE, forecast=None, currency="USD")
    assert "Usage of nobody" in text
    assert "expected" not in text


def test_budgets_that_were_reached_are_a_table() -> None:
    """The last ones; of all tenants, whose they are."""
    reached = [
        ThresholdLine(at=f"2026-11-20T14:{number:02}:09Z", tenant="acme", budget="<month>", percent=50, usd="250")
        for number in range(32)
    ]
    texts = [
        as_page(
            (), tenant=tenant, first=FIRST, until=UNTIL, at=MADE, forecast=None, currency="USD", thresholds=reached
        )
        for tenant in ("acme", None)
    ]  # fmt: skip
    rows = Cells(texts[0]).rows
    assert ["2026-11-20 14:30 UTC", "<month>", "50 %", "250.00"] in rows
    assert "The last 30 of 32." in texts[0]
    assert "&lt;month&gt; of acme" in texts[1]


def test_names_are_text() -> None:
    """Of whatever is in the ledger."""
    row = {
        "day": FIRST, "tenant": "<u>", "app": "<i>", "function": "<i>", "state": "<u>", "price": "<s>", "ppm": 1,
        "rate": 10**9, "discount": 0, "ns": 10**15, "calls": 1,
    }  # fmt: skip
    for tenant in ("<u>", None):
        text = as_page([row], tenant=tenant, first=FIRST, until=UNTIL, at=MADE, forecast=None, currency="USD")
        assert not re.search("<[isu]>", text.lower())
