"""Usage and cost."""

from __future__ import annotations

import random
import re
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pilotlight_gateway.dashboard.page_parts.answered_parts import AnsweredPart
from pilotlight_gateway.dashboard.page_parts.block_markup import blocks_markup
from pilotlight_gateway.dashboard.page_parts.blocks import Block, TimeChart
from pilotlight_gateway.dashboard.page_parts.shown_values import money_text
from pilotlight_gateway.dashboard.pages.own.spending_page import MOST_ROWS, days_of, spending_blocks
from tests.gateway.dashboard.pages.own_scenes import (
    CREDITS,
    FORECAST,
    HOSTILE,
    NOT_ALLOWED,
    NOT_THERE,
    budget,
    usage_line,
    usage_report,
)
from tests.gateway.dashboard.pages.scenes import answer_of, table_of
from tests.gateway.dashboard.site import Site
from tests.gateway.ledger.metering import MIDNIGHT, SECOND, busy, delivered

DAYS = ("2026-11-01", "2026-11-28")
BUDGETS = AnsweredPart(value={"budgets": [budget()], "currency": "USD"})


def drawn(by_day: Any, by_function: Any, budgets: AnsweredPart = BUDGETS) -> list[Block]:
    return spending_blocks(
        DAYS, by_day, by_function, AnsweredPart(value=FORECAST), budgets, AnsweredPart(value=CREDITS)
    )


def test_it_says_what_was_spent_and_what_will_be() -> None:
    """With what is left."""
    report = usage_report(usage_line(), usage_line(day="2026-11-28"))
    blocks = drawn(report, report)
    text, tone = answer_of(blocks)
    assert text.startswith("43.90 USD for 431 calls from 2026-11-01 until 2026-11-28. ")
    assert text.endswith("2026-11 will have cost 46.30 USD, of which 46.10 USD are spent.")
    assert tone == ""
    assert table_of(blocks, "budgets")[0][3:7] == ("49.90 USD", "50.30 USD", "50.90 USD", "52 % are reached")
    assert table_of(blocks, "grants")[0][1:3] == ("54.10 USD", "54.70 USD")
    (chart,) = [block for block in blocks if isinstance(block, TimeChart)]
    assert chart.values == ((45.7, 45.7),)
    used_up = AnsweredPart(value={"budgets": [budget(is_exhausted=True), budget(reached=[])], "currency": "USD"})
    assert answer_of(drawn(report, report, used_up))[1] == "bad"
    assert [row[6] for row in table_of(drawn(report, report, used_up), "budgets")] == [
        "used up: calls are refused", "open",
    ]  # fmt: skip


@given(st.lists(st.decimals(0, 1000, places=9), max_size=400))
def test_a_total_is_of_all_lines_whether_they_are_shown_or_not(costs: list[Decimal]) -> None:
    """It is the route's own, which sums what more than a page has."""
    lines = [usage_line(function=f"f{n}", cost=f"{cost:f}") for n, cost in enumerate(costs)]
    report = usage_report(*lines, cost=f"{sum(costs, Decimal(0)):f}")
    rows = table_of(drawn(report, report), "by-function")
    assert len(rows) == (min(len(lines), MOST_ROWS) + 1 if lines else 0)
    if rows:
        assert rows[-1][-1] == money_text(f"{sum(costs, Decimal(0)):f}", "USD")
        assert [row[-1] for row in rows[:-1]] == [money_text(line["cost"], "USD") for line in lines[:MOST_ROWS]]


@pytest.mark.parametrize("ranges", [20, pytest.param(1_000, marks=pytest.mark.long)])
async def test_sums_of_any_days_are_those_of_the_ledger(site: Site, ranges: int) -> None:
    """Whatever days are asked for, and however many lines there are: the page's total is the route's, which adds up
    what was metered, by day as by function.
    """
    rng = random.Random(ranges)
    used = [(rng.randrange(60), f"f{rng.randrange(300)}", rng.randrange(1, 5 * SECOND)) for _ in range(900)]
    for day in range(60):
        at = MIDNIGHT + day * 86_400
        events = [
            busy(number, 0, (f"call_{number}", ns, "ok"), function=name, ended_at=at + 3_600)
            for number, (of, name, ns) in enumerate(used)
            if of == day
        ]
        site.world.ledger.fold("USAGE", 1 + day, delivered(events, at=at + 7_200))
    begins, widest = datetime.fromtimestamp(MIDNIGHT, UTC).date(), 0
    async with site.logged_in(site.world.key) as browser, site.world.client() as client:
        for _ in range(ranges):
            first, last = sorted(rng.sample(range(61), 2))
            days = f"from={begins + timedelta(first)}&to={begins + timedelta(last)}"
            by_day = (await client.get(f"/v1/usage?{days}&group=day")).json()
            by_function = (await client.get(f"/v1/usage?{days}&group=app,function")).json()
            seen = [ns for day, _, ns in used if first <= day < last]
            for report in (by_day, by_function):
                assert (report["total"]["calls"], report["total"]["ns"]) == (len(seen), sum(seen))
                summed = sum(Decimal(one["cost"]) for one in report["lines"])
                rounded = len(report["lines"]) * Decimal("5e-13")  # each line is, and the total is not of them
                assert abs(summed - Decimal(report["total"]["cost"])) <= rounded
            assert by_day["total"]["cost"] == by_function["total"]["cost"]
            page, total = (await browser.get(f"/ui/usage?{days}")).text, by_day["total"]
            assert money_text(total["cost"], "USD") in page.partition('id="answer"')[2][:200]
            rows = re.findall(r'data-key="total">.*?</tr>', page, re.DOTALL)
            assert len(rows) == 2
            assert all(f"{len(seen):,}" in row and money_text(total["cost"], "USD") in row for row in rows)
            widest = max(widest, len(by_function["lines"]))
            if len(by_function["lines"]) > MOST_ROWS:
                assert f"{len(by_function['lines']) - MOST_ROWS} more lines are in the total" in page
    assert widest > MOST_ROWS


def test_parts_that_may_not_be_seen_say_so() -> None:
    """And take nothing else away."""
    report = usage_report()
    blocks = spending_blocks(DAYS, report, report, NOT_THERE, NOT_ALLOWED, NOT_ALLOWED)
    said = [getattr(block, "text", "") for block in blocks]
    assert "The forecast: not there. It is not kept." in said
    assert "Budgets: not allowed. It needs admin." in said
    nothing = {"balance_usd": "0", "owed_usd": "0", "grants": [], "history": [], "currency": "USD"}
    told = AnsweredPart(value=FORECAST | {"low": None, "high": None, "error": None})
    bare = spending_blocks(DAYS, report, report, told, BUDGETS, AnsweredPart(value=nothing))
    assert "No credit was given: what is used is billed." in [getattr(block, "text", "") for block in bare]
    assert "not known" in blocks_markup(bare, "")


def test_a_page_stays_small() -> None:
    """With hostile names in as many lines as it has."""
    report = usage_report(*[usage_line(app=HOSTILE, function=f"{HOSTILE}{n}") for n in range(MOST_ROWS * 2)])
    days = usage_report(*[usage_line(day=f"2026-{1 + n // 28:02}-{1 + n % 28:02}") for n in range(60)])
    page = blocks_markup(drawn(days, report), "")
    assert "<img" not in page
    assert len(page) < 140_000


def test_days_are_thirty_by_default() -> None:
    """Today is in them; what is no day is left to the API, or to the default."""
    at = 1_795_763_110.0
    assert days_of({}, at) == ("2026-10-29", "2026-11-28")
    assert days_of({"from": "2026-11-01", "to": "2026-11-02"}, at) == ("2026-11-01", "2026-11-02")
    assert days_of({"from": HOSTILE, "to": HOSTILE}, at) == ("2026-10-29", "2026-11-28")
    assert days_of({"to": "2026-99-99"}, at) == ("2026-99-99", "2026-99-99")


async def test_the_page_asks_for_its_days(site: Site) -> None:
    """Wrong ones are refused in the API's words."""
    async with site.logged_in(site.world.key) as browser:
        answer = await browser.get("/ui/usage?from=2026-11-01&to=2026-11-02")
        assert answer.status_code == 200
        assert ("GET", "/v1/usage?from=2026-11-01&to=2026-11-02&group=app%2Cfunction") in site.api.asked
        assert (await browser.get("/ui/usage?from=2026-11-02&to=2026-11-01")).status_code == 422
        assert (await browser.get("/ui/usage?to=2026-99-99")).status_code == 422
