"""The budgets of a tenant at its home: all of them or none, and no more than the durable record allows."""

from __future__ import annotations

import random

import pytest

from pilotlight_core.model.money.budgets import BilledBudgets, BilledSpending, BudgetMode, BudgetPeriod
from pilotlight_core.model.subjects import shard_of
from pilotlight_gateway.budgets.budget_home import BudgetHome, MoneyAsk, shortage_of
from pilotlight_gateway.budgets.purse import SETTLED_AFTER_S, PurseStanding, PurseVerdict
from tests.gateway.budgets.stored_tranches import FUNCTION, NOON, Settings, StoredTranches, budget

FITS, WAITS = PurseVerdict.FITS, PurseVerdict.WAITS
SHARD = shard_of("acme")


class Wall:
    """Unix seconds that a test moves."""

    def __init__(self) -> None:
        self.at = NOON

    def __call__(self) -> float:
        return self.at


def asked(worst: int, likely: int | None = None, *, function: str = FUNCTION, key: str = "k1") -> MoneyAsk:
    """For one call."""
    return MoneyAsk(function, key, worst, worst if likely is None else likely)


def ask(home: BudgetHome, number: int, money: MoneyAsk, gateway: str = "g1") -> object:
    """Ask until it is decided, as a gateway does."""
    for _ in range(3):
        found = home.ask("acme", (gateway, number), money)
        if found is not WAITS:
            return found
    return WAITS


def home_over(store: StoredTranches, settings: Settings, wall: Wall) -> BudgetHome:
    """A home whose records are kept."""
    home = BudgetHome(settings, wall)
    store.serve(home)
    return home


def test_a_call_passes_all_budgets_or_takes_nothing() -> None:
    """The one that refuses is named, with what is left."""
    settings = Settings(
        budget(1_000),
        budget(100, period=BudgetPeriod.DAY, function=FUNCTION),
        budget(300, period=BudgetPeriod.DAY, key="k2"),
    )
    home = home_over(StoredTranches(), settings, Wall())

    assert [ask(home, number, asked(60)) for number in range(1)] == [FITS]
    refused = ask(home, 2, asked(60))
    assert isinstance(refused, PurseStanding)
    assert (refused.budget.id, refused.left, refused.reserved) == (f"day:{FUNCTION}", 40, 60)
    assert shortage_of(refused).budget == f"day:{FUNCTION}"
    assert ask(home, 3, asked(300, function="acme:zoo.other", key="k2")) is FITS
    assert [purse.reserved for purse in home.purses("acme").values()] == [360, 60, 300]
    home.ended("acme", ("g1", 3), 5)
    home.ended("acme", ("g1", 3), 5)
    assert [purse.used for purse in home.purses("acme").values()] == [65, 60, 5]


def test_soft_budgets_reserve_what_nearly_all_calls_take() -> None:
    """So more of them run at a time."""
    home = home_over(StoredTranches(), Settings(budget(100, mode=BudgetMode.SOFT)), Wall())
    assert [ask(home, number, asked(90, 10)) is FITS for number in range(11)] == [True] * 10 + [False]


def test_a_next_home_never_begins_with_a_full_purse() -> None:
    """It counts what the one before had taken; what that one takes still is refused to it."""
    store, settings, wall = StoredTranches(), Settings(budget(1_000)), Wall()
    first = home_over(store, settings, wall)
    assert [ask(first, number, asked(100)) is FITS for number in range(11)] == [True] * 10 + [False]

    second = home_over(store, settings, wall)
    refused = ask(second, 1, asked(100), "g2")
    assert isinstance(refused, PurseStanding)
    assert refused.wait_s is not None
    second.take_over("acme", ("g1", 3), asked(100))
    assert second.purses("acme")["month"].used == 1_000

    wall.at += SETTLED_AFTER_S
    second.on_billed(BilledBudgets(tenant="acme", upto=wall.at, budgets={"month": BilledSpending(
        begins=second.purses("acme")["month"].span.begins, calls=0)}))  # fmt: skip
    assert [ask(second, number, asked(100), "g2") is FITS for number in range(2, 12)] == [True] * 9 + [False]
    first.ended("acme", ("g1", 4), 5)
    store.keep(first)  # paused for long: it is not the one that writes any more
    assert first.needs_reading("acme")


def test_calls_that_a_former_home_let_in_are_adopted_before_and_after_it_is_read() -> None:
    """Each once."""
    store, settings, wall = StoredTranches(), Settings(budget(1_000)), Wall()
    first = home_over(store, settings, wall)
    for number in range(4):
        ask(first, number, asked(100))
    taken, second = store.taken(), BudgetHome(settings, wall)
    for _ in range(2):
        second.take_over("acme", ("g1", 0), asked(100))
    store.keep(second)
    for number in (0, 1, 1):
        second.take_over("acme", ("g1", number), asked(100))
    assert second.purses("acme")["month"].reserved == 200
    second.release(SHARD, "g1", 10, {1})
    assert second.purses("acme")["month"].reserved == 100
    second.gateway_gone("g1")
    assert (second.purses("acme")["month"].reserved, second.purses("acme")["month"].used) == (0, taken)


@pytest.mark.parametrize("lost", ["before", "after"])
def test_a_write_whose_answer_is_lost_costs_nothing(lost: str) -> None:
    """It is read again: whichever of the two is there is its own."""
    store, settings, wall = StoredTranches(), Settings(budget(1_000)), Wall()
    home = home_over(store, settings, wall)
    ask(home, 1, asked(100))
    answers = iter([lost])
    store.loses = lambda: next(answers, "")
    home.ended("acme", ("g1", 1), 30)
    store.keep(home)
    store.keep(home)
    assert home.purses("acme")["month"].used == 30
    assert store.records["acme"][0].tranches["month"].noted == 30


def test_budgets_change_while_calls_run() -> None:
    """Set anew it keeps what is spent; removed it holds nothing back; the shard may go."""
    store, settings, wall = StoredTranches(), Settings(budget(100)), Wall()
    home = home_over(store, settings, wall)
    assert ask(home, 1, asked(100)) is FITS
    settings.set(budget(250))
    assert ask(home, 2, asked(150)) is FITS
    assert isinstance(ask(home, 3, asked(1)), PurseStanding)
    settings.records.clear()
    assert ask(home, 4, asked(10**9)) is FITS
    store.keep(home)
    assert store.records["acme"][0].tranches == {}
    home.begin(SHARD)
    assert home.purses("acme") == {}


def test_homes_that_die_at_any_instant_spend_no_more_than_there_is() -> None:
    """A thousand seeds of asks, ends, deaths, lost answers and reports: what really ran never costs more."""
    for seed in range(1_000):
        _check_seed(random.Random(seed))


def _check_seed(rng: random.Random) -> None:
    amount, worst = rng.randint(300, 3_000), 100
    store, settings, wall = StoredTranches(), Settings(budget(amount)), Wall()
    store.loses = lambda: rng.choice(["", "", "", "before", "after"])
    home = home_over(store, settings, wall)
    spent = number = 0
    running: dict[int, int] = {}
    for _ in range(rng.randint(10, 60)):
        wall.at += rng.random()
        match rng.choice(["ask", "ask", "ask", "end", "lost", "keep", "die"]):
            case "ask":
                number += 1
                if ask(home, number, asked(worst)) is FITS:
                    running[number] = rng.choice([1, worst])
            case "end" if running:
                ended, cost = running.popitem()
                spent += cost
                home.ended("acme", ("g1", ended), cost)
            case "lost" if running:
                ended, cost = running.popitem()
                spent += cost
                home.ended("acme", ("g1", ended), None)
            case "keep":
                store.keep(home)
            case "die":
                home = home_over(store, settings, wall)
                for one in running:
                    home.take_over("acme", ("g1", one), asked(worst))
        assert spent + worst * len(running) <= amount
    # Once the ledger has all of it, nothing is held back that was not spent.
    spent += sum(running.values())
    for one, cost in running.items():
        home.ended("acme", ("g1", one), cost)
    store.loses = lambda: ""
    store.keep(home)
    store.keep(home)
    wall.at += SETTLED_AFTER_S + 60
    purse = home.purses("acme")["month"] if home.purses("acme") else None
    if purse is not None:
        billed = BilledSpending(begins=purse.span.begins, calls=spent)
        home.on_billed(BilledBudgets(tenant="acme", upto=wall.at, budgets={"month": billed}))
        assert purse.used == spent
