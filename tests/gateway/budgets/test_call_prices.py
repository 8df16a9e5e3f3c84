"""What calls may cost, what they did cost, and what those like them cost."""

from __future__ import annotations

from fractions import Fraction
from math import ceil
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from pilotlight_core.model.messages.call_messages import Spent
from pilotlight_core.model.messages.limiting import LimitAsk, LimitAskKind
from pilotlight_core.model.pipelines.pipeline import CallHook, Pipeline
from pilotlight_core.model.price_book import DatedRate, load_prices
from pilotlight_core.model.spec import FunctionSpec, VersionRecord
from pilotlight_core.model.units import GpuAsk, cost_of
from pilotlight_gateway.budgets.call_prices import FLEET_KEPT_S, CallPrices, dearest_rate
from tests.builders.specs import function_spec, method, version_record
from tests.example_counts import examples

BOOK = load_prices()


def spec(**more: Any) -> FunctionSpec:
    """A function."""
    return function_spec("chat", method(attribute="chat"), **more)


def test_the_worst_case_is_the_time_limit_in_the_dearest_slice_with_retries() -> None:
    """A deadline makes it less, since all tries have to be over by then."""
    prices = CallPrices(BOOK)
    version = version_record(spec(gpu=(GpuAsk("L4"), GpuAsk("H100", 2)), timeout=36.0, retries=2, memory=2**20))
    hour = 2 * BOOK.rate("h100")
    assert 0 <= prices.rate(version) - hour - BOOK.rate("memory_gib") / 1024 - BOOK.rate("cpu_core") / 10 < 2
    assert prices.longest_s(version, 1e9) == 3 * 36.0
    assert abs(prices.worst_of(version, 108.0) - hour * 3 * 36 // 3600) <= hour // 10_000
    assert prices.longest_s(version, 3.6) == 3.6


def test_it_follows_the_fleet_and_the_prices() -> None:
    """A CPU slot costs what the largest of the fleet does, any GPU what the dearest does."""
    cpu = spec(cpu=1.0)
    core = BOOK.rate("cpu")
    base = dearest_rate(cpu, BOOK, ()) - core
    assert dearest_rate(cpu, BOOK, [("16xcpu", 250_000), ("2xcpu", 500_000)]) == 4 * core + base
    anything = spec(gpu=(GpuAsk("ANY"),))
    assert dearest_rate(anything, BOOK, [("l4", 10**6), ("16xcpu", 10**6)]) < dearest_rate(anything, BOOK, ())
    assert dearest_rate(spec(gpu=(GpuAsk("CPU"), GpuAsk("L4"))), BOOK, ()) >= BOOK.rate("l4")


def test_what_a_call_cost_is_what_the_ledger_bills_rounded_up() -> None:
    """With cores and memory of the host, to the nano-dollar."""
    spent = Spent(ns=1_234_567_891, ppm=142_858, price="h100", core_ppm=1_500_000, gib_ppm=2_000_000)
    exact = sum(
        (
            cost_of(spent.ns, spent.ppm, BOOK.rate("h100", ppm=spent.ppm)),
            cost_of(spent.ns, spent.core_ppm, BOOK.rate("cpu_core")),
            cost_of(spent.ns, spent.gib_ppm, BOOK.rate("memory_gib")),
        ),
        Fraction(0),
    )
    cost = CallPrices(BOOK).cost([spent])
    assert 0 <= cost - exact * 10**9 < 1


def test_what_nearly_all_calls_cost_is_learnt() -> None:
    """Until some are known the worst case is taken."""
    prices = CallPrices(BOOK)
    for _ in range(19):
        prices.learn("v1", 10)
    assert prices.likely("v1", 500) == 500
    for number in range(200):
        prices.learn("v1", 400 if number % 200 == 7 else 10)
    assert prices.likely("v1", 500) in (10, 400)
    prices.learn("v1", 450)
    assert prices.likely("v1", 500) >= 10
    assert prices.likely("v1", 5) == 5


def test_what_is_rounded_up_of_one_call_is_less_for_the_next() -> None:
    """So a thousand cheap calls cost what the ledger bills, to the nano-dollar; of each payer by itself."""
    prices, spent = CallPrices(BOOK), Spent(ns=999, ppm=1_000, price="cpu")
    exact = 1_000 * cost_of(spent.ns, spent.ppm, BOOK.rate("cpu")) * 10**9
    for payer in (("acme", "zoo.chat", "k1"), ("acme", "zoo.chat", "k2")):
        assert 0 <= sum(prices.cost([spent], payer) for _ in range(1_000)) - exact < 1


@examples(100)
@given(st.lists(st.tuples(
    st.lists(st.builds(
        Spent, ns=st.integers(0, 10**10), ppm=st.sampled_from([10**6, 142_858, 1]),
        price=st.sampled_from(["cpu", "l4"]), core_ppm=st.sampled_from([0, 1_500_001]),
    ), max_size=2),
    st.sampled_from([1, 799_200_001, 10**9]), st.sampled_from([10**9, 999_999_999, 0]), st.booleans(),
), max_size=12))  # fmt: skip
def test_however_calls_pay_they_cost_together_what_the_ledger_bills(
    calls: list[tuple[list[Spent], int, int, bool]],
) -> None:
    """Rounded up once, at whatever prices and discounts: after each of them, and of each payer."""
    book = load_prices()
    prices, payers = CallPrices(book), {name: (name, "zoo.chat", "k") for name in ("acme", "rival")}
    counted, exact = dict.fromkeys(payers, 0), dict.fromkeys(payers, Fraction(0))
    for spent, rate, part, is_rival in calls:
        tenant = "rival" if is_rival else "acme"
        book.put("l4", [DatedRate(nano_usd_per_hour=rate)])
        book.put("tenant.acme", [DatedRate(nano_usd_per_hour=part)])
        book.refresh(1.0)
        for one in spent:
            for price, ppm in ((one.price, one.ppm), ("cpu_core", one.core_ppm)):
                exact[tenant] += cost_of(one.ns, ppm, book.rate(price, ppm=ppm), book.discount(tenant)) * 10**9
        counted[tenant] += prices.cost(spent, payers[tenant], tenant)
        assert counted == {name: ceil(cost) for name, cost in exact.items()}


def test_of_prices_that_change_while_a_call_may_run_the_dearest_is_reserved() -> None:
    """Of what is known to come until its limit: rates, leasts, units and the end of its own tenant's discount."""
    book, now = load_prices(), [100.0]
    whole, half = 10**9, 5 * 10**8
    prices = CallPrices(book, wall=lambda: now[0])
    version = version_record(spec(gpu=(GpuAsk("L4"),), timeout=60.0, memory=2**20, max_units={"images": 10**6}))

    def put(price: str, *rates: tuple[float, int], minimum_ms: int = 0) -> None:
        each = [DatedRate(starts_at=at, nano_usd_per_hour=rate, minimum_ms=minimum_ms * (at > 0)) for at, rate in rates]
        book.put(price, each)
        book.refresh(now[0])

    put("tenant.acme", (0.0, half), (150.0, whole), (400.0, half))
    put("tenant.rival", (130.0, half))
    listed = prices.worst_of(version, 60.0, "other")
    assert prices.worst_of(version, 60.0, "acme") == listed
    assert abs(prices.worst_of(version, 40.0, "acme") - listed * 40 / 60 / 2) <= 1
    assert prices.worst_of(version, 40.0, "acme", within_s=60.0) == prices.worst_of(version, 40.0)
    assert prices.worst_of(version, 60.0, "rival") == listed  # until then it pays the whole price
    now[0] = 200.0
    book.refresh(now[0])
    assert prices.worst_of(version, 60.0, "acme") == listed
    now[0] = 500.0
    book.refresh(now[0])
    assert abs(prices.worst_of(version, 60.0, "acme") - listed / 2) <= 1

    rate = book.rate("l4")
    put("l4", (0.0, rate), (530.0, 3 * rate), (540.0, rate))
    assert listed * 2 < prices.worst_of(version, 60.0) < 3 * listed
    assert prices.worst_of(version, 20.0) == prices.worst_of(version_record(version.spec, id="ver_9"), 20.0)
    assert abs(prices.worst_of(version, 20.0) - listed / 3) <= 1
    put("l4", (0.0, rate), (530.0, rate), minimum_ms=10_000)
    assert prices.worst_of(version, 1.0, within_s=60.0) > 9 * prices.worst_of(version, 1.0)
    put("images", (530.0, whole))
    assert prices.worst_of(version, 1.0, within_s=60.0) > whole > prices.worst_of(version, 1.0)


def test_what_is_kept_of_prices_holds_until_they_or_the_fleet_change() -> None:
    """A price that is set, a discount and a date that has come count for the next call; a fleet within some seconds."""
    book, now = load_prices(), [100.0]
    fleet = [("4xcpu", 500_000)]
    prices = CallPrices(book, lambda: fleet, clock=lambda: now[0], wall=lambda: now[0])
    version = version_record(spec(cpu=1.0, memory=2**20, timeout=3_600.0))
    host, rate = prices.rate(version) - 2 * book.rate("cpu"), book.rate("cpu")

    def hourly(tenant: str = "") -> int:
        return prices.worst_of(version, 3_600.0, tenant)

    def put(price: str, *rates: DatedRate) -> None:
        book.put(price, list(rates))
        book.refresh(now[0])

    assert hourly() == hourly("acme") == host + 2 * rate
    put("cpu", DatedRate(nano_usd_per_hour=2 * rate))
    assert hourly() == hourly("acme") == host + 4 * rate == prices.rate(version)
    put("tenant.acme", DatedRate(nano_usd_per_hour=5 * 10**8))
    assert (hourly(), abs(2 * hourly("acme") - hourly()) <= 1) == (host + 4 * rate, True)
    put("cpu", DatedRate(nano_usd_per_hour=rate), DatedRate(starts_at=200.0, nano_usd_per_hour=3 * rate))
    assert hourly() == host + 6 * rate
    assert prices.worst_of(version, 36.0, within_s=36.0) * 100 - hourly() // 3 < hourly() // 3  # it is not dear yet
    now[0] = 210.0
    book.refresh(now[0])
    assert hourly() == host + 6 * rate == prices.rate(version)
    fleet[0] = ("8xcpu", 500_000)
    now[0] += FLEET_KEPT_S
    assert hourly() == host + 12 * rate


def test_a_live_call_asks_for_all_its_starts() -> None:
    """Not for longer than they can take; whatever was asked for before, and when prices are to change."""
    book, now = load_prices(), [100.0]
    prices = CallPrices(book, wall=lambda: now[0])
    version = version_record(spec(gpu=(GpuAsk("L4"),), timeout=36.0, retries=2))
    payer = "acme", "own:zoo.chat", "k1"

    def asked(within_s: float) -> tuple[int, int, float]:
        money = prices.money_of_call(version, payer, within_s)
        seconds = prices.longest_s(version, within_s)
        again = prices.money_of(version, payer, seconds, within_s=within_s)
        assert (money.tenant, money.function, money.key) == payer
        assert (money.worst, money.likely, money.seconds) == (again.worst, again.likely, again.seconds)
        return money.worst, money.likely, money.seconds

    worst = asked(1e6)
    assert worst[2] == 3 * 36.0
    assert asked(12.0)[0] * 9 - worst[0] in range(9)
    assert asked(1e6) == worst
    for _ in range(20):
        prices.learn(version.id, 7)
    assert asked(12.0)[1] == 7
    book.put(
        "l4", [DatedRate(starts_at=0.0, nano_usd_per_hour=10**9), DatedRate(starts_at=110.0, nano_usd_per_hour=10**12)]
    )
    assert asked(4.0)[0] < asked(12.0)[0]
    now[0] = 111.0
    book.refresh(111.0)
    assert asked(4.0)[0] * 3 - asked(12.0)[0] in range(3)


def test_an_ask_has_the_worst_and_the_likely() -> None:
    """Of the payer's time that it may take."""
    prices, version = CallPrices(BOOK), version_record(spec(gpu=(GpuAsk("L4"),)))
    for _ in range(20):
        prices.learn(version.id, 7)
    money = prices.money_of(version, ("acme", "own:zoo.chat", "k1"), 36.0)
    money.number = 3
    worst = prices.worst_of(version, 36.0, "acme")
    assert money.ask() == LimitAsk(3, "acme", "own:zoo.chat", 0.0, LimitAskKind.MONEY, worst, 7, "k1", 36.0)


def test_what_a_call_may_count_at_most_is_reserved() -> None:
    """At the price of the moment and with the discount; of units without a price, and in a further step, nothing."""
    book = load_prices()
    prices = CallPrices(book)
    plain = version_record(spec(timeout=4.0))
    naming = version_record(spec(timeout=4.0, max_units={"prompt_tokens": 3_000_000, "images": 7}), id="ver_2")
    time = prices.worst_of(plain, 4.0)
    assert prices.worst_of(naming, 4.0) == time

    book.put("prompt_tokens", [DatedRate(nano_usd_per_hour=150_000_000)])
    book.put("tenant.acme", [DatedRate(nano_usd_per_hour=500_000_000)])
    book.refresh(0.0)

    assert prices.worst_of(plain, 4.0) == time
    assert prices.worst_of(naming, 4.0) == time + 450_000_000
    assert abs(prices.worst_of(naming, 4.0, "acme") - (time + 450_000_000) / 2) <= 1
    assert prices.worst_of(naming, 4.0, with_units=False) == time


def test_discounts_leasts_and_units_are_reckoned_with() -> None:
    """What is reserved covers what is billed: each start that ends at once is billed the least."""
    book = load_prices()
    book.put("l4", [DatedRate(nano_usd_per_hour=book.rate("l4"), minimum_ms=5_000)])
    book.put("tenant.acme", [DatedRate(nano_usd_per_hour=750_000_000)])
    book.put("prompt_tokens", [DatedRate(nano_usd_per_hour=10**9)])
    book.refresh(0.0)
    prices, version = CallPrices(book), version_record(spec(gpu=(GpuAsk("L4"),), timeout=4.0, retries=2))
    each = (1_000_000_000, 6_000_000_000)
    spent = Spent(ns=sum(each), ppm=10**6, price="l4", starts=each)

    cost = prices.cost([spent], ("acme", "a.f", "k"), "acme", {"prompt_tokens": 1_000_000})

    time = cost_of(5_000_000_000 + 6_000_000_000, 10**6, book.rate("l4")) * Fraction(3, 4)
    assert 0 <= cost - (time + Fraction(3, 4)) * 10**9 < 1
    worst = prices.worst_of(version, 12.0, "acme")
    assert worst >= cost_of((12 + 2 * 5) * 10**9, 10**6, book.rate("l4"), 250_000_000) * 10**9
    assert abs(prices.worst_of(version, 12.0) * 3 / 4 - worst) <= 1


def test_the_worst_case_of_a_class_has_its_hooks_in_it() -> None:
    """Each may have as long as the method, with what it is promised of its host."""
    prices, gpu = CallPrices(BOOK), (GpuAsk("H100"),)
    hook = CallHook(attribute="read", cpu=2.0, memory=2**30, version="v")
    plain = version_record(spec(gpu=gpu))
    both = version_record(spec(gpu=gpu, pipeline=Pipeline(preprocess=hook, takes={"": ""})), id="ver_2")
    more = BOOK.rate("cpu") + 2 * BOOK.rate("cpu_core") + BOOK.rate("memory_gib")
    assert abs(prices.rate(both) - prices.rate(plain) - more) <= 2


def test_what_was_reserved_covers_what_costs_no_more() -> None:
    """In all of its time, and in any part of it."""
    prices = CallPrices(BOOK)

    def version(kind: str, **more: Any) -> VersionRecord:
        return version_record(spec(gpu=(GpuAsk(kind),), **more), id=f"ver_{kind}_{len(more)}")

    large, small = version("H100"), version("L4")
    assert prices.covers(large, small, 60.0, "acme")
    assert prices.covers(large, large, 60.0, "acme")
    assert not prices.covers(small, large, 60.0, "acme")
    assert not prices.covers(version("H100", timeout=1.0), version("L4", timeout=3_600.0), 3_600.0, "acme")
    assert not prices.covers(version("L4", timeout=3_600.0), version("H100", timeout=1.0), 3_600.0, "acme")
