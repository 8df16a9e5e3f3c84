"""The home of limits decides for all gateways, and the next one repeats no grant of the former one."""

from __future__ import annotations

import msgspec
import pytest

from pilotlight_core.model.limits import LONG_AGO, NEVER, NO_LIMITS, UNLIMITED, EffectiveLimits, Limits, RateLimitStart
from pilotlight_core.model.messages.limiting import (
    HeldPermits,
    Holdings,
    LimitAnswer,
    LimitAsk,
    LimitAskKind,
    LimitEnd,
    LimitVerdict,
)
from pilotlight_core.model.subjects import shard_of
from pilotlight_gateway.budgets.budget_home import BudgetHome
from pilotlight_gateway.limits.limit_policy import policy_of
from pilotlight_gateway.limits.limits_home import LimitHome
from pilotlight_gateway.limits.limits_state import ACCOUNTS_AT_MOST, LimitState
from tests.gateway.budgets.stored_tranches import NOON, Settings, StoredTranches, budget

FUNCTION = "acme:shop.hello"
SHARD = 7


def home_of(
    tenant: Limits, function: Limits = NO_LIMITS, *, at: float = -1e6, begun: RateLimitStart = NEVER
) -> LimitHome:
    """A home of one shard whose buckets are full by now."""
    policy = policy_of(EffectiveLimits(tenant=tenant, function=function, tenant_begun=begun), FUNCTION)
    free = policy_of(UNLIMITED, FUNCTION)
    home = LimitHome(lambda tenant, _: policy if tenant == "acme" else free)
    home.begin(SHARD, 3, at, ())
    return home


def ask(
    home: LimitHome,
    number: int,
    at: float,
    *,
    gateway: str = "g1",
    cost: float = 0.0,
    part: LimitAskKind = LimitAskKind.CALL,
) -> LimitAnswer:
    """Ask for one call of acme."""
    return home.ask(SHARD, gateway, LimitAsk(number, "acme", FUNCTION, cost, part), at)


def holdings(gateway: str, *numbers: int, upto: int = 100, pending: tuple[int, ...] = (), epoch: int = 3) -> Holdings:
    """A report of the running calls of a gateway."""
    held = (HeldPermits("acme", FUNCTION, numbers),)
    return Holdings(gateway=gateway, shard=SHARD, epoch=epoch, upto=upto, held=held, pending=pending)


def test_a_refusal_names_the_limits_and_the_wait() -> None:
    """All limits that refuse are named with the longest wait, and nothing is taken from any."""
    home = home_of(Limits(requests_per_s=1.0, burst=2.0), Limits(requests_per_s=0.5, burst=1.0))

    first = ask(home, 1, 0.0)
    assert (first.verdict, first.epoch) == (LimitVerdict.GRANTED, 3)
    assert first.standing == '"requests";r=1;t=1,"function-requests";r=0;t=2'

    second = ask(home, 2, 0.0)
    assert (second.verdict, second.wait_s, second.violated) == (LimitVerdict.REFUSED, 2.0, ("function-requests",))
    assert ask(home, 3, 2.0).verdict is LimitVerdict.GRANTED
    assert ask(home, 4, 2.0).standing == '"requests";r=1;t=1,"function-requests";r=0;t=2'


def test_cost_is_counted_on_estimate_and_corrected_at_the_end() -> None:
    """Cost beyond the estimate is owed before the next call begins, and cost below it is given back."""
    home = home_of(Limits(cost_per_s=100.0, cost_burst=50.0))

    assert ask(home, 1, 0.0, cost=50.0).charged == 50.0
    assert ask(home, 2, 0.0, cost=10.0).wait_s == 0.1

    home.ended(SHARD, "g1", LimitEnd(1, "acme", FUNCTION, -50.0), 0.0)
    assert ask(home, 3, 0.0, cost=50.0).verdict is LimitVerdict.GRANTED

    home.ended(SHARD, "g1", LimitEnd(3, "acme", FUNCTION, 100.0), 0.0)
    assert ask(home, 4, 0.0, cost=10.0).wait_s == 1.1


def test_a_job_takes_a_request_when_it_is_stored_and_cost_when_it_starts() -> None:
    """Neither part needs what the other one takes."""
    home = home_of(Limits(requests_per_s=1.0, burst=1.0, cost_per_s=100.0, cost_burst=50.0, concurrency=1))

    stored = ask(home, 1, 0.0, cost=50.0, part=LimitAskKind.SUBMISSION)
    assert (stored.verdict, stored.charged, stored.holds) == (LimitVerdict.GRANTED, 0.0, False)
    assert ask(home, 2, 0.0, part=LimitAskKind.SUBMISSION).violated == ("requests",)
    begun = ask(home, 3, 0.0, cost=50.0, part=LimitAskKind.START)
    assert (begun.verdict, begun.charged, begun.holds) == (LimitVerdict.GRANTED, 50.0, True)
    assert ask(home, 4, 0.0, cost=10.0, part=LimitAskKind.START).violated == ("cost", "concurrency")
    assert ask(home, 5, 0.0, cost=10.0).violated == ("requests", "cost", "concurrency")
    assert ask(home, 6, 1.0, part=LimitAskKind.SUBMISSION).verdict is LimitVerdict.GRANTED

    home.ended(SHARD, "g1", LimitEnd(3, "acme", FUNCTION, -50.0), 1.0)
    assert ask(home, 7, 1.0, cost=50.0, part=LimitAskKind.START).verdict is LimitVerdict.GRANTED
    home.check_integrity()


def test_a_call_dearer_than_the_burst_is_counted_as_the_burst() -> None:
    """It runs when the bucket is full, and owes the rest when its cost is known."""
    home = home_of(Limits(cost_per_s=100.0, cost_burst=50.0))

    assert ask(home, 1, 0.0, cost=500.0).charged == 50.0


def test_no_more_run_at_once_than_allowed() -> None:
    """This holds over all gateways; the wait follows the time of earlier calls."""
    home = home_of(Limits(concurrency=2))
    assert [ask(home, n, 0.0, gateway=f"g{n}").verdict for n in (1, 2, 3)] == [0, 0, LimitVerdict.REFUSED]

    home.ended(SHARD, "g1", LimitEnd(1, "acme", FUNCTION), 4.0)
    home.ended(SHARD, "g1", LimitEnd(1, "acme", FUNCTION), 4.0)
    assert ask(home, 4, 4.0).verdict is LimitVerdict.GRANTED

    refused = ask(home, 5, 4.0)
    assert refused.violated == ("concurrency",)
    assert refused.wait_s == pytest.approx(4.0 / 3)
    assert refused.standing == '"concurrency";r=0'


def test_permits_of_a_lost_gateway_come_back() -> None:
    """Permits of other gateways stay."""
    home = home_of(Limits(concurrency=2))
    ask(home, 1, 0.0, gateway="g1")
    ask(home, 1, 0.0, gateway="g2")

    home.gateway_gone("g1")

    home.check_integrity()
    assert [ask(home, n, 0.0, gateway="g2").verdict for n in (2, 3)] == [LimitVerdict.GRANTED, LimitVerdict.REFUSED]


def test_a_new_home_grants_no_permit_before_all_gateways_have_reported() -> None:
    """Every live gateway has reported or is gone, and what was reported counts."""
    home = home_of(Limits(concurrency=2))
    home.begin(SHARD, 4, 0.0, ("g1", "g2", "g3"))
    assert ask(home, 1, 0.0).verdict is LimitVerdict.SETTLING
    assert home.unreported() == {SHARD: 4}

    home.on_holdings(holdings("g1", 10, epoch=3), 0.0)
    home.on_holdings(holdings("g1", 11, epoch=4), 0.0)
    home.on_holdings(holdings("g2", epoch=4), 0.0)
    assert ask(home, 2, 0.0).verdict is LimitVerdict.SETTLING

    home.gateway_gone("g3")
    assert [ask(home, n, 0.0, gateway="g2").verdict for n in (3, 4)] == [LimitVerdict.GRANTED, LimitVerdict.REFUSED]


def test_a_home_that_leaves_in_order_hands_over_what_is_left() -> None:
    """The next one continues on its own clock, also for tenants that never asked."""
    home = home_of(Limits(requests_per_s=1.0, burst=5.0), Limits(cost_per_s=1.0, cost_burst=100.0), at=0.0)
    for number in (1, 2, 3):
        assert ask(home, number, 7.0, cost=2.0).verdict is LimitVerdict.GRANTED
    state = msgspec.msgpack.decode(msgspec.msgpack.encode(home.end(SHARD, 8.0)), type=LimitState)

    home.begin(SHARD, 4, 5000.0, (), state)
    assert [ask(home, number, 5000.0).verdict for number in (1, 2, 3, 4)] == [0, 0, 0, LimitVerdict.REFUSED]
    assert ask(home, 5, 5001.0).standing == '"requests";r=0;t=1,"function-cost";r=3;t=1'

    home.begin(SHARD, 5, 100.0, (), LimitState(state.age, ()))
    assert ask(home, 1, 100.0).standing.startswith('"requests";r=4')


def test_too_many_accounts_are_not_handed_over() -> None:
    """As after a crash, everything counts as spent."""
    policy = policy_of(EffectiveLimits(tenant=Limits(requests_per_s=1.0), function=NO_LIMITS), FUNCTION)
    home = LimitHome(lambda *_: policy)
    home.begin(SHARD, 1, -1e6, ())
    for number in range(ACCOUNTS_AT_MOST + 1):
        home.ask(SHARD, "g1", LimitAsk(number, f"t{number}", FUNCTION), 0.0)

    assert home.end(SHARD, 0.0) == LimitState()


def test_rates_need_no_reports_and_begin_with_nothing() -> None:
    """A new home's bucket is empty when it begins, and fills from then on."""
    home = home_of(Limits(requests_per_s=2.0, burst=5.0))
    home.begin(SHARD, 4, 100.0, ("g1", "g2"))

    assert ask(home, 1, 100.0).wait_s == 0.5
    assert ask(home, 2, 100.5).verdict is LimitVerdict.GRANTED
    assert ask(home, 3, 100.5).wait_s == 0.5


def test_a_report_repairs_lost_messages() -> None:
    """A permit without its call is freed; those of pending or later asks stay."""
    home = home_of(Limits(concurrency=4))
    for number in (1, 2, 3, 9):
        ask(home, number, 0.0)

    home.on_holdings(holdings("g1", 1, upto=5, pending=(2,)), 1.0)

    home.check_integrity()
    assert home.statistics().permits == 3
    assert [ask(home, n, 1.0).verdict for n in (10, 11)] == [LimitVerdict.GRANTED, LimitVerdict.REFUSED]


def test_a_shard_without_its_home_gets_no_decision() -> None:
    """Before the home began and after it ended, ends and reports are ignored."""
    home = home_of(Limits(concurrency=1))
    home.end(SHARD, 0.0)
    home.ended(SHARD, "g1", LimitEnd(1, "acme", FUNCTION), 0.0)
    home.on_holdings(holdings("g1", 1), 0.0)

    assert ask(home, 1, 0.0).verdict is LimitVerdict.NOT_HOME
    assert home.epoch(SHARD) == 0


def test_a_tenant_without_limits_is_granted() -> None:
    """The home may know a change before the gateway that asks."""
    home = home_of(Limits(concurrency=1))

    answer = home.ask(SHARD, "g1", LimitAsk(1, "free", FUNCTION), 0.0)

    assert (answer.verdict, answer.standing) == (LimitVerdict.GRANTED, "")


def test_a_limit_that_was_never_counted_elsewhere_begins_with_its_burst() -> None:
    """It was set under this home or one that handed over to it; an older limit may have been spent."""
    limits = Limits(requests_per_s=1.0, burst=5.0)
    for begun, here, there in ((3, 4, 4), (2, 0, 0), (4, 0, 4), (LONG_AGO, 0, 0), (0, 0, 0)):
        home = home_of(limits, at=0.0, begun=RateLimitStart(requests=begun))
        assert ask(home, 1, 0.0).standing.startswith(f'"requests";r={here}')
        state = msgspec.msgpack.decode(msgspec.msgpack.encode(home.end(SHARD, 0.0)), type=LimitState)
        home.begin(SHARD, 9, 50.0, (), msgspec.structs.replace(state, accounts=()))
        assert ask(home, 2, 50.0).standing.startswith(f'"requests";r={there}')
        home.begin(SHARD, 10, 60.0, ())
        assert ask(home, 3, 60.0).verdict is LimitVerdict.REFUSED


def test_what_was_taken_is_handed_over_too() -> None:
    """What a smaller burst would cut off counts again when the larger one returns."""
    small, large = (Limits(requests_per_s=1.0, burst=burst) for burst in (2.0, 50.0))
    now = {"limits": large}
    marked = RateLimitStart(requests=3)
    home = LimitHome(
        lambda *_: policy_of(EffectiveLimits(tenant=now["limits"], function=NO_LIMITS, tenant_begun=marked), FUNCTION)
    )
    home.begin(SHARD, 3, 0.0, ())
    assert [ask(home, number, 0.0).verdict for number in range(51)].count(LimitVerdict.GRANTED) == 50

    now["limits"] = small
    home.limits_changed(SHARD, "acme", 0.0)
    home.begin(SHARD, 4, 0.0, (), home.end(SHARD, 0.0))
    now["limits"] = large
    home.limits_changed(SHARD, None, 0.0)
    home.limits_changed(SHARD + 1, None, 0.0)

    assert ask(home, 99, 0.0).verdict is LimitVerdict.REFUSED


def test_idle_accounts_are_forgotten_only_when_nothing_is_lost() -> None:
    """An account is kept while it would decide other than a new one, or its past is unknown."""
    limits = Limits(requests_per_s=1.0, burst=5.0, concurrency=5)
    for begun, left in ((3, 0), (LONG_AGO, 1)):
        home = home_of(limits, begun=RateLimitStart(requests=begun))
        ask(home, 1, 0.0)
        home.ended(SHARD, "g1", LimitEnd(1, "acme", FUNCTION), 0.1)

        home.sweep(SHARD, 0.9)
        assert home.statistics().accounts == 1
        home.sweep(SHARD, 1.0)
        assert home.statistics().accounts == left
        home.sweep(SHARD + 1, 1.0)


def test_who_is_the_home_no_more_keeps_no_budgets() -> None:
    """It would write over what the next one has taken."""
    settings = Settings(budget(1_000))
    budgets = BudgetHome(settings, lambda: NOON)
    StoredTranches().serve(budgets)
    home = LimitHome(lambda _, __: policy_of(UNLIMITED, FUNCTION, settings.records["acme"].budgets), budgets)
    home.begin(shard_of("acme"), 3, 0.0, ())
    asked = LimitAsk(1, "acme", FUNCTION, 0.0, LimitAskKind.MONEY, 600, 600, "k1")
    while (found := home.ask(shard_of("acme"), "g1", asked, 0.0).verdict) is LimitVerdict.SETTLING:
        pass  # the record is read, and a tranche taken
    assert found is LimitVerdict.GRANTED
    second = home.ask(shard_of("acme"), "g1", LimitAsk(2, *asked_of(asked)), 0.0)
    assert second.shortage is not None
    assert (second.verdict, second.shortage.left, second.shortage.asked) == (LimitVerdict.REFUSED, 400, 600)
    home.ended(shard_of("acme"), "g1", LimitEnd(1, "acme", FUNCTION, spent=5), 0.0)
    assert budgets.purses("acme")["month"].certain == 5
    home.end(shard_of("acme"), 0.0)
    assert budgets.due() == []


def asked_of(ask: LimitAsk) -> tuple[str, str, float, LimitAskKind, int, int, str]:
    """All of an ask but its number."""
    return ask.tenant, ask.function, ask.cost, ask.part, ask.worst, ask.likely, ask.key
