"""The budgets of a tenant at its home: all of them or none, and no more than the durable record allows."""

from __future__ import annotations

import random

import pytest

from pilotlight_core.model.messages.limiting import LimitAsk, LimitAskKind
from pilotlight_core.model.money.budgets import BilledBudgets, BilledSpending, BudgetMode, BudgetPeriod
from pilotlight_core.model.subjects import shard_of
from pilotlight_gateway.budgets.budget_home import PAYERS_AT_MOST, BudgetHome, shortage_of
from pilotlight_gateway.budgets.budget_settings import reached_lines
from pilotlight_gateway.budgets.purse import LARGEST_KEPT_S, SETTLED_AFTER_S, UNHEARD_S, PurseStanding, PurseVerdict
from tests.gateway.budgets.stored_tranches import FUNCTION, NOON, Settings, StoredTranches, budget

FITS, WAITS = PurseVerdict.FITS, PurseVerdict.WAITS
SHARD = shard_of("acme")


class Wall:
    """Unix seconds that a test moves."""

    def __init__(self) -> None:
        self.at = NOON

    def __call__(self) -> float:
        return self.at


def asked(worst: int, likely: int | None = None, *, function: str = FUNCTION, key: str = "k1") -> LimitAsk:
    """For one call."""
    return LimitAsk(0, "acme", function, 0.0, LimitAskKind.MONEY, worst, worst if likely is None else likely, key)


def ask(home: BudgetHome, number: int, money: LimitAsk, gateway: str = "g1") -> object:
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


def test_a_home_that_leaves_in_order_holds_nothing_back() -> None:
    """The next one knows what is used, unless somebody has written in between: then all that was taken is."""
    for is_written in (False, True):
        store, settings, wall = StoredTranches(), Settings(budget(10_000)), Wall()
        first = home_over(store, settings, wall)
        for number in range(3):
            ask(first, number, asked(100))
        first.ended("acme", ("g1", 0), 30)
        handed = first.end(SHARD)
        assert first.purses("acme") == {}
        if is_written:
            record, revision = store.records["acme"]
            store.records["acme"] = record, revision + 1

        second = BudgetHome(settings, wall)
        second.begin(SHARD, handed)
        store.serve(second)
        for number in (1, 2):
            second.take_over("acme", ("g1", number), asked(100))
        assert ask(second, 1, asked(100), "g2") is FITS
        purse = second.purses("acme")["month"]
        assert (purse.reserved, purse.presumed > 0) == (300, is_written)
        if not is_written:
            assert purse.used == 330
        second.begin(SHARD)
        third = home_over(store, settings, wall)
        ask(third, 2, asked(100), "g2")
        assert third.purses("acme")["month"].used >= 330


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


def test_whoever_has_asked_before_falls_under_what_is_set_then() -> None:
    """Its purses are known from its first call on, and yet a budget of its key comes and goes."""
    store, settings, wall = StoredTranches(), Settings(budget(1_000)), Wall()
    home = home_over(store, settings, wall)
    assert ask(home, 1, asked(100)) is FITS
    settings.set(budget(1_000), budget(150, key="k1"))
    assert isinstance(ask(home, 2, asked(51)), PurseStanding)  # with what runs
    assert ask(home, 3, asked(51, key="k2")) is FITS
    assert ask(home, 4, asked(50)) is FITS
    assert [purse.reserved for purse in home.purses("acme").values()] == [201, 150]
    settings.set(budget(1_000))
    assert ask(home, 5, asked(151)) is FITS
    settings.set(budget(1_000, mode=BudgetMode.SOFT))
    assert ask(home, 6, asked(900, 1)) is FITS
    settings.set(budget(1_000))
    assert isinstance(ask(home, 7, asked(900, 1)), PurseStanding)


def test_whoever_has_asked_before_begins_anew_with_the_period() -> None:
    """What runs goes on in it."""
    store, settings, wall = StoredTranches(), Settings(budget(100, period=BudgetPeriod.DAY)), Wall()
    home = home_over(store, settings, wall)
    assert ask(home, 1, asked(60)) is FITS
    assert ask(home, 2, asked(40)) is FITS
    home.ended("acme", ("g1", 1), 60)
    assert isinstance(ask(home, 3, asked(1)), PurseStanding)
    wall.at = home.purses("acme")["day"].span.ends
    assert ask(home, 4, asked(60)) is FITS
    assert isinstance(ask(home, 5, asked(1)), PurseStanding)
    home.ended("acme", ("g1", 4), 10)
    assert ask(home, 6, asked(50)) is FITS


def test_the_purses_of_so_many_payers_are_known_at_most() -> None:
    """Those beyond are looked for anew, and fall under the same."""
    home = home_over(StoredTranches(), Settings(budget(10**6), budget(3, key="k7")), Wall())
    for number in range(PAYERS_AT_MOST + 9):
        assert ask(home, number, asked(1, key=f"k{number}")) is FITS
    assert ask(home, 5_000, asked(1, key="k7")) is FITS
    assert home.purses("acme")["month:key:k7"].reserved == 2


def test_a_budget_that_is_set_again_does_not_begin_with_all_of_it() -> None:
    """What the ledger has of its period counts, and so does what runs."""
    store, settings, wall = StoredTranches(), Settings(budget(1_000), budget(5_000, key="k1")), Wall()
    home = home_over(store, settings, wall)
    assert ask(home, 1, asked(400)) is FITS
    assert ask(home, 2, asked(300)) is FITS
    home.ended("acme", ("g1", 1), 400)
    settings.set(budget(5_000, key="k1"))
    store.keep(home)
    store.billed = {"month": 500}
    settings.set(budget(1_000), budget(5_000, key="k1"))
    assert isinstance(ask(home, 3, asked(201)), PurseStanding)
    assert home.purses("acme")["month"].reserved == 300
    assert ask(home, 4, asked(200)) is FITS
    home.ended("acme", ("g1", 2), 100)
    home.ended("acme", ("g1", 4), 0)
    assert home.purses("acme")["month"].reserved == 0


def test_thresholds_that_were_reached_are_kept_when_their_period_is_over() -> None:
    """By the next home too, each once; also of a budget that was removed."""
    store, settings, wall = StoredTranches(), Settings(budget(1_000, period=BudgetPeriod.DAY)), Wall()
    home = home_over(store, settings, wall)
    for day in range(2):
        assert ask(home, day, asked(600)) is FITS
        home.ended("acme", ("g1", day), 600)
        store.keep(home)
        wall.at += 86_400.0
        home = home_over(store, settings, wall)
        store.keep(home)
    settings.set()
    store.keep(home)

    reached = store.records["acme"][0].reached
    assert [(one.budget, one.percent, one.amount) for one in reached] == [("day", 50, 1_000)] * 2
    assert reached[0].begins + 86_400 == reached[1].begins
    assert (lines := reached_lines([store.records["acme"][0]], "2026-01-01", "2027-01-01"))[0].percent == 50
    assert (len(lines), reached_lines([store.records["acme"][0]], "2020-01-01", "2021-01-01")) == (2, ())


def test_a_call_waits_quietly_until_the_ledger_is_heard() -> None:
    """The record is written once, however often it asks."""
    store, settings, wall = StoredTranches(), Settings(budget(1_000)), Wall()
    store.billed = None
    home = home_over(store, settings, wall)
    assert ask(home, 1, asked(100)) is WAITS
    woken: list[bool] = []
    home.wake = lambda: woken.append(True)
    assert [ask(home, number, asked(100)) for number in range(2, 9)] == [WAITS] * 7
    assert (woken, home.urgent()) == ([], [])
    store.serve(home)
    wall.at += UNHEARD_S
    store.keep(home)
    assert ask(home, 10, asked(100)) is FITS


def test_a_clock_that_steps_forward_and_back_leaves_no_other_period() -> None:
    """And what the ledger has of the one that is back counts again."""
    store, settings, wall = StoredTranches(), Settings(budget(1_000)), Wall()
    home = home_over(store, settings, wall)
    assert ask(home, 1, asked(1_000)) is FITS
    home.ended("acme", ("g1", 1), 1_000)
    span = home.purses("acme")["month"].span
    wall.at += 40 * 86_400
    store.keep(home)
    assert home.purses("acme")["month"].span != span
    wall.at -= 40 * 86_400
    store.billed = {"month": 1_000}
    store.keep(home)
    assert home.purses("acme")["month"].span == span
    assert isinstance(ask(home, 2, asked(1)), PurseStanding)


@pytest.mark.parametrize("is_kept", [True, False])
def test_the_answer_to_a_write_of_before_says_nothing_of_a_home_that_began_again(is_kept: bool) -> None:
    """What it has taken over is counted, and its record is read."""
    store, settings, wall = StoredTranches(), Settings(budget(1_000)), Wall()
    home = home_over(store, settings, wall)
    assert ask(home, 1, asked(100)) is FITS
    home.wake = lambda: None
    home.ended("acme", ("g1", 1), 7)
    taken, wanted = store.taken(), home.unwritten("acme")
    assert wanted is not None
    home.begin(SHARD)
    home.take_over("acme", ("g1", 2), asked(100))
    if is_kept:
        home.written(wanted[0], 2)
    else:
        home.forget(wanted[0])
    assert home.needs_reading("acme")
    store.keep(home)
    assert home.purses("acme")["month"].reserved == 100
    assert home.purses("acme")["month"].used == taken


def test_a_large_call_holds_the_tranche_large_for_a_minute_at_most() -> None:
    """Then a death costs a hundredth of the budget again."""
    store, settings, wall = StoredTranches(), Settings(budget(100_000)), Wall()
    home = home_over(store, settings, wall)
    assert ask(home, 1, asked(90_000)) is FITS
    home.ended("acme", ("g1", 1), 5)
    for _ in range(3):
        wall.at += LARGEST_KEPT_S
        store.keep(home)
    assert store.taken() == 1_005


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
        match rng.choice(["ask", "ask", "ask", "end", "lost", "keep", "die", "leave"]):
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
            case "die" | "leave" as how:
                handed = home.end(SHARD) if how == "leave" else ()
                home = BudgetHome(settings, wall)
                home.begin(SHARD, handed)
                store.serve(home)
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
