"""What the ledger has of budgets: by scope and period, calls apart from what passes no admission."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from pilotlight_core.model.messages.usage import CallShare, LeaseState
from pilotlight_core.model.money.budgets import HomeTranches, Tranche
from pilotlight_core.model.price_book import load_prices
from pilotlight_core.model.subjects import USAGE_STREAM
from pilotlight_core.model.units import NS_PER_HOUR
from pilotlight_gateway.duties.budget_sums import ANEW_S, BudgetSums
from pilotlight_gateway.ledger.ledger_store import Ledger
from tests.gateway.ledger.metering import MIDNIGHT, SECOND, delivered, event

NOON = MIDNIGHT + 43_200
DAY, MONTH = int(MIDNIGHT), int(MIDNIGHT) - 21 * 86_400


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    ledger = Ledger(f"sqlite:///{tmp_path / 'ledger.sqlite'}", load_prices())
    yield ledger
    ledger.close()


def shares(*calls: tuple[str, int, str]) -> tuple[CallShare, ...]:
    """(call, ns, key) of one interval."""
    return tuple(CallShare(call, "acme", ns, "ok", 1, key=key) for call, ns, key in calls)


def test_a_budget_is_billed_what_falls_under_it(ledger: Ledger) -> None:
    """By tenant, function, key and period; rounded up."""
    book = ledger.book
    two = shares(("c1", 10 * SECOND, "k1"), ("c2", 20 * SECOND, ""))
    events = [
        event(1, 0, 10 * SECOND),
        event(2, 10 * SECOND, 40 * SECOND, LeaseState.BUSY, shares=two),
        event(3, 40 * SECOND, 50 * SECOND, LeaseState.LOADING, app="zoo", function="llm"),
        event(4, 50 * SECOND, 60 * SECOND, tenant="rival"),
        event(5, 60 * SECOND, 70 * SECOND, LeaseState.FREE, tenant=""),
        event(6, 0, 10 * SECOND, ended_at=MIDNIGHT - 86_400.0, id="node-1.s0.6"),
    ]  # fmt: skip
    ledger.fold(USAGE_STREAM, 7, delivered(events))
    tranches = {
        "day": Tranche(begins=DAY),
        "month": Tranche(begins=MONTH),
        "of a function": Tranche(begins=DAY, function="acme:zoo.llm"),
        "of a key": Tranche(begins=DAY, key="k1"),
        "lifetime": Tranche(begins=0),
    }
    sums = BudgetSums(ledger)
    wanted = [
        HomeTranches(tenant="acme", tranches=tranches),
        HomeTranches(tenant="nobody", tranches={"day": Tranche(begins=DAY)}),
    ]
    seq, billed = sums.read(wanted, USAGE_STREAM, NOON + 60)

    def cost(seconds: int) -> int:
        return -(-seconds * SECOND * book.rate("cpu") // NS_PER_HOUR)

    assert seq == 7
    found = {name: (one.calls, one.other) for name, one in billed["acme"].items()}
    assert found == {
        "day": (cost(30), cost(20)),
        "month": (cost(30), cost(30)),
        "of a function": (0, cost(10)),
        "of a key": (cost(10), 0),
        "lifetime": (cost(30), cost(30)),
    }
    assert (billed["nobody"]["day"].calls, billed["nobody"]["day"].other) == (0, 0)


def test_hours_that_are_over_are_summed_once_a_minute(ledger: Ledger) -> None:
    """The last ones each time; nothing is counted twice as time goes on."""
    sums, day = BudgetSums(ledger), [HomeTranches(tenant="acme", tranches={"day": Tranche(begins=DAY)})]

    def other(at: float) -> int:
        return sums.read(day, USAGE_STREAM, at)[1]["acme"]["day"].other

    ledger.fold(USAGE_STREAM, 1, delivered([event(1, 0, 10 * SECOND)]))
    first = other(NOON + 10)
    ledger.fold(USAGE_STREAM, 2, delivered([event(2, 10 * SECOND, 20 * SECOND)]))
    assert other(NOON + 20) == 2 * first
    assert other(NOON + 4 * 3_600) == 2 * first  # the hour is over by now
    late = event(3, 20 * SECOND, 30 * SECOND)
    ledger.fold(USAGE_STREAM, 3, delivered([late]))
    assert other(NOON + 4 * 3_600 + 1) == 2 * first
    assert other(NOON + 4 * 3_600 + 2 + ANEW_S) == 3 * first
