"""What the ledger has of budgets: by scope and period, calls apart from what passes no admission."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

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


def test_functions_of_one_name_are_told_apart_by_their_owners(ledger: Ledger) -> None:
    """A tenant's own, and one that another shares with it, which has its containers and pays for them."""
    paid = [shares(("c1", 10 * SECOND, "k1")), shares(("c2", 30 * SECOND, ""))]
    events = [
        event(1, 0, 5 * SECOND, version="ver_own"),
        event(2, 5 * SECOND, 15 * SECOND, LeaseState.BUSY, version="ver_own", shares=paid[0]),
        event(3, 15 * SECOND, 20 * SECOND, version="ver_zoo", tenant="zoo"),
        event(4, 20 * SECOND, 50 * SECOND, LeaseState.BUSY, version="ver_zoo", tenant="zoo", shares=paid[1]),
        event(5, 50 * SECOND, 60 * SECOND, LeaseState.BUSY, version="ver_new", shares=shares(("c3", 10 * SECOND, ""))),
    ]  # fmt: skip
    ledger.fold(USAGE_STREAM, 1, delivered(events))
    tranches = {
        name: Tranche(begins=DAY, function=function)
        for name, function in (("own", "acme:shop.hello"), ("shared", "zoo:shop.hello"), ("all", ""))
    }
    sums, wanted = BudgetSums(ledger), [HomeTranches(tenant="acme", tranches=tranches)]
    rate = ledger.book.rate("cpu")

    def billed(at: float) -> dict[str, tuple[int, int]]:
        found = sums.read(wanted, USAGE_STREAM, at)[1]["acme"]
        return {name: (one.calls * NS_PER_HOUR // rate // SECOND, one.other) for name, one in found.items()}

    idle = -(-5 * SECOND * rate // NS_PER_HOUR)
    assert billed(NOON + 60) == {"own": (10, idle), "shared": (30, 0), "all": (50, idle)}

    # Whose a version is that nobody had a container of is looked up again.
    ledger.fold(USAGE_STREAM, 2, delivered([event(6, 60 * SECOND, 60 * SECOND + 1, version="ver_new", tenant="zoo")]))
    assert billed(NOON + 61)["shared"] == (30, 0)
    assert billed(NOON + 62 + ANEW_S)["shared"] == (40, 0)


def test_a_look_reads_the_last_hours_once(ledger: Ledger) -> None:
    """However many periods there are; the hours before are read once in all, each in one part."""
    asked: list[str] = []

    def note(_connection: Any, _cursor: Any, statement: str, *_: Any) -> None:
        if "FROM usage_hour" in statement:
            asked.append(statement)

    ledger.fold(USAGE_STREAM, 1, delivered([event(1, 0, 10 * SECOND), event(2, 10 * SECOND, 30 * SECOND, tenant="b")]))
    begins = [0, MONTH, *(DAY + 3_600 * hour for hour in range(-11, 13))]
    budgets = [
        HomeTranches(tenant=tenant, tranches={f"of {at}": Tranche(begins=at) for at in begins}) for tenant in "ab"
    ]
    budgets.append(HomeTranches(tenant="acme", tranches={"day": Tranche(begins=DAY)}))
    sums = BudgetSums(ledger)
    sa.event.listen(ledger._engine, "before_cursor_execute", note)
    first = sums.read(budgets, USAGE_STREAM, NOON + 20)
    assert len(asked) <= 1 + len(begins)
    asked.clear()
    assert sums.read(budgets, USAGE_STREAM, NOON + 21) == first
    assert sums.read(budgets[1:], USAGE_STREAM, NOON + 22)[1]["acme"] == first[1]["acme"]
    assert sums.read(budgets, USAGE_STREAM, NOON + 23) == first
    assert len(asked) == 3
    cost = -(-20 * SECOND * ledger.book.rate("cpu") // NS_PER_HOUR)
    assert {one.other for one in first[1]["b"].values()} == {cost}
    assert {one.other for one in first[1]["a"].values()} == {0}


def test_a_budget_of_a_class_is_billed_its_hooks_too(ledger: Ledger) -> None:
    """Whether a call ran in them, or they loaded."""
    events = [
        event(1, 0, 10 * SECOND, function="Words"),
        event(2, 10 * SECOND, 30 * SECOND, function="Words~pre", version="ver_2"),
        event(3, 30 * SECOND, 40 * SECOND, function="Other~pre", version="ver_3"),
    ]
    ledger.fold(USAGE_STREAM, 3, delivered(events))
    tranches = {"whole": Tranche(begins=DAY), "words": Tranche(begins=DAY, function="acme:shop.Words")}
    _, billed = BudgetSums(ledger).read([HomeTranches(tenant="acme", tranches=tranches)], USAGE_STREAM, NOON + 60)
    whole, words = (billed["acme"][name].other for name in ("whole", "words"))
    assert abs(words - whole * 3 / 4) <= 2
