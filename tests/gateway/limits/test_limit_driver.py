"""Gateways that count a tenant's calls together, over ports in memory where tests decide which messages are lost."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from pilotlight_core.bus import NO_RESPONDERS
from pilotlight_core.model import subjects
from pilotlight_core.model.limits import LONG_AGO, NO_LIMITS, EffectiveLimits, Limits, RateLimitStart
from pilotlight_core.model.messages.limiting import (
    Holdings,
    LimitAnswer,
    LimitAnswers,
    LimitAsk,
    LimitAskKind,
    LimitEnd,
    LimitVerdict,
)
from pilotlight_core.model.messages.message import Message
from pilotlight_gateway.budgets.budget_home import BudgetHome
from pilotlight_gateway.budgets.purse import PurseVerdict
from pilotlight_gateway.cluster.shard_ownership import MemoryShardOwnership, ShardOwner
from pilotlight_gateway.limits.limit_driver import REFRESH_S, REPORT_EVERY, RETRY_S, LimitDriver, PendingAsk
from pilotlight_gateway.limits.limit_policy import policy_of
from pilotlight_gateway.limits.silent_homes import PATIENCE_S
from tests.gateway.budgets.stored_tranches import NOON, Settings, StoredTranches, budget
from tests.gateway.driver_port import MemoryDriverPort

REGION = "local"
FUNCTION = "acme:shop.hello"
SHARD = subjects.shard_of("acme")
GRANTED, REFUSED = LimitVerdict.GRANTED, LimitVerdict.REFUSED


class Gateway:
    """One driver, its port, and the answers to its callers."""

    def __init__(self, name: str, limits: Limits, budgets: BudgetHome | None = None) -> None:
        self.name = name
        self.port = MemoryDriverPort()
        self.ownership = MemoryShardOwnership(gateway=name)
        effective = EffectiveLimits(tenant=limits, function=NO_LIMITS, tenant_begun=RateLimitStart(requests=LONG_AGO))
        policy = policy_of(effective, FUNCTION)
        self.driver = LimitDriver(
            self.port,
            self.ownership,
            lambda *_: policy,
            lambda _: None,
            region=REGION,
            gateway=name,
            budgets=budgets,
        )
        self.heard: list[LimitAnswer | None] = []

    def ask(self) -> PendingAsk:
        """A call comes here."""
        return self.driver.ask(LimitAsk(0, "acme", FUNCTION), self.heard.append)

    def end(self, answer: LimitAnswer | None) -> None:
        """A call that was let in has ended."""
        assert answer is not None
        self.driver.ended(LimitEnd(answer.number, "acme", FUNCTION))

    @property
    def verdicts(self) -> list[LimitVerdict | None]:
        return [answer.verdict if answer is not None else None for answer in self.heard]


class Fleet:
    """Live gateways that reach each other."""

    def __init__(self, *names: str, home: str = "g1", budgets: BudgetHome | None = None, **limits: Any) -> None:
        """`budgets` are kept by the home."""
        self.gateways = {name: Gateway(name, Limits(**limits), budgets if name == home else None) for name in names}
        self.announce(ShardOwner(home, 5))
        self.settle()
        self.later(1000.0)

    def __getitem__(self, name: str) -> Gateway:
        return self.gateways[name]

    def announce(self, home: ShardOwner) -> None:
        """Set the live gateways and the home for all drivers, and refresh them."""
        for gateway in self.gateways.values():
            gateway.ownership.home, gateway.ownership.alive = home, set(self.gateways)
            gateway.driver.refresh()

    def later(self, seconds: float) -> None:
        """So much later."""
        for gateway in self.gateways.values():
            gateway.port.at += seconds
        self.settle()

    def settle(self, lost: Callable[[Message], bool] = lambda _: False) -> None:
        """Turns and messages, until nothing is under way; those that `lost` picks never arrive."""
        for gateway in self.gateways.values():
            gateway.driver.take_turn()
        while letters := list(self._posted()):
            for sender, subject, message, reply in letters:
                if not lost(message):
                    self._deliver(sender, subject, message, reply)
            for gateway in self.gateways.values():
                gateway.driver.take_turn()

    def _posted(self) -> Iterator[tuple[Gateway, str, Message, str]]:
        for gateway in self.gateways.values():
            for (subject, message), reply in zip(gateway.port.sent, gateway.port.replies, strict=True):
                yield gateway, subject, message, reply
            gateway.port.sent, gateway.port.replies = [], []

    def _deliver(self, sender: Gateway, subject: str, message: Message, reply: str) -> None:
        handlers = [gateway.driver.handlers().get(subject) for gateway in self.gateways.values()]
        listening = [handler for handler in handlers if handler is not None]
        for handler in listening:
            handler(subject, message, "")
        if reply and not listening:
            sender.driver.handlers()[reply](reply, NO_RESPONDERS, subject)


def test_the_home_answers_its_own_calls_at_once() -> None:
    """They need no message, and count together with the calls of other gateways."""
    fleet = Fleet("g1", "g2", concurrency=2)
    answer = fleet["g1"].driver.ask_here(LimitAsk(0, "acme", FUNCTION))
    assert answer is not None
    assert answer.verdict is GRANTED
    assert fleet["g2"].driver.ask_here(LimitAsk(0, "acme", FUNCTION)) is None

    for _ in range(2):
        fleet["g2"].ask()
    fleet.settle()

    assert fleet["g2"].verdicts == [GRANTED, REFUSED]
    fleet["g1"].driver.home.check_integrity()


def test_a_permit_comes_back_wherever_its_call_ended() -> None:
    """It comes back once, however often the end is reported."""
    fleet = Fleet("g1", "g2", concurrency=1)
    fleet["g2"].ask()
    fleet.settle()
    for _ in range(2):
        fleet["g2"].end(fleet["g2"].heard[0])
    fleet.settle()
    fleet["g1"].ask()
    fleet.settle()
    fleet["g2"].ask()
    fleet.settle()

    assert fleet["g1"].verdicts == [GRANTED]
    assert fleet["g2"].verdicts == [GRANTED, REFUSED]


def test_a_home_that_does_not_answer_lets_nothing_in() -> None:
    """Its callers get an answer after PATIENCE_S: the call was not counted."""
    fleet = Fleet("g1", "g2", concurrency=1)
    fleet["g2"].ask()
    fleet.settle(lost=lambda message: isinstance(message, LimitAnswers))
    assert fleet["g2"].heard == []

    fleet.later(PATIENCE_S)

    assert fleet["g2"].heard == [None]
    assert fleet["g2"].driver.wait("acme") > 0.0


def test_without_a_listener_the_ask_is_repeated_and_the_next_home_answers() -> None:
    """This takes much less than PATIENCE_S."""
    fleet = Fleet("g1", "g2", "g3", concurrency=1)
    del fleet.gateways["g1"]
    fleet["g2"].ask()
    fleet.settle()
    assert fleet["g2"].heard == []

    fleet.announce(ShardOwner("g3", 6))
    fleet.settle()
    fleet.later(RETRY_S)

    assert fleet["g2"].verdicts == [GRANTED]


def test_a_new_home_has_all_reports_before_it_grants_a_permit() -> None:
    """Lost reports are repeated; meanwhile no call gets a decision."""
    fleet = Fleet("g1", "g2", "g3", concurrency=1)
    fleet["g2"].ask()
    fleet.settle()
    del fleet.gateways["g1"]

    fleet.announce(ShardOwner("g3", 6))
    fleet["g3"].ask()
    fleet.settle(lost=lambda message: isinstance(message, Holdings))
    assert fleet["g3"].heard == []
    assert fleet["g3"].driver.home.unreported() == dict.fromkeys(range(subjects.SHARDS), 6)

    fleet.later(REFRESH_S)
    fleet["g3"].ask()

    assert fleet["g3"].driver.home.unreported() == {}
    assert fleet["g3"].verdicts[-1] is REFUSED
    assert GRANTED not in fleet["g3"].verdicts


def test_an_answer_of_a_home_whose_successor_has_a_report_is_void() -> None:
    """The successor does not count that call, so it is asked again."""
    fleet = Fleet("g1", "g2", "g3", concurrency=1)
    held: list[LimitAnswers] = []

    def keep(message: Message) -> bool:
        if isinstance(message, LimitAnswers):
            held.append(message)
        return isinstance(message, LimitAnswers)

    fleet["g2"].ask()
    fleet.settle(lost=keep)
    fleet.announce(ShardOwner("g3", 6))
    fleet.settle(lost=keep)
    answers = subjects.allowed(REGION, "g2")
    fleet["g2"].driver.handlers()[answers](answers, held[0], "")
    assert fleet["g2"].heard == []

    fleet.later(RETRY_S)

    (answer,) = fleet["g2"].heard
    assert answer is not None
    assert (answer.verdict, answer.epoch) == (GRANTED, 6)


def test_a_permit_without_a_caller_comes_back_with_the_next_report() -> None:
    """The caller left before the answer."""
    fleet = Fleet("g1", "g2", concurrency=1)
    ask = fleet["g2"].ask()
    fleet["g2"].driver.take_turn()
    fleet["g2"].driver.forget(ask)
    fleet.settle()
    assert fleet["g1"].driver.home.statistics().permits == 1

    for _ in range(REPORT_EVERY):
        fleet.later(REFRESH_S)

    assert fleet["g2"].heard == []
    assert fleet["g1"].driver.home.statistics().permits == 0


def test_a_home_continues_from_the_state_that_it_gets() -> None:
    """It grants no second burst, and has no unknown homes before it."""
    fleet = Fleet("g1", "g2", requests_per_s=1.0, burst=2.0)
    for _ in range(2):
        fleet["g2"].ask()
    fleet.settle()
    assert fleet["g2"].verdicts == [GRANTED, GRANTED]

    heir = ShardOwner("g2", 6)
    fleet["g1"].ownership.home = heir
    state = fleet["g1"].driver.end(SHARD)
    fleet["g2"].ownership.home = heir
    fleet["g2"].driver.begin(SHARD, 6, state)
    fleet.settle()
    fleet["g2"].ask()
    fleet.settle()

    assert fleet["g2"].verdicts == [GRANTED, GRANTED, REFUSED]


def test_the_permits_of_a_lost_gateway_come_back() -> None:
    """They come back when its lease is gone."""
    fleet = Fleet("g1", "g2", concurrency=1)
    fleet["g2"].ask()
    fleet.settle()
    del fleet.gateways["g2"]

    fleet.announce(ShardOwner("g1", 5))
    fleet["g1"].ask()

    assert fleet["g1"].verdicts == [GRANTED]


def test_the_next_turn_is_asked_for_when_something_is_due() -> None:
    """At once for messages to send, else for the next refresh or an earlier retry."""
    fleet = Fleet("g1", "g2", concurrency=1)
    gateway = fleet["g2"]
    gateway.port.woken()
    gateway.driver.take_turn()
    assert gateway.port.woken() == gateway.port.at + REFRESH_S

    gateway.port.connected = False
    gateway.ask()
    gateway.driver.take_turn()
    assert gateway.port.woken() < gateway.port.at
    gateway.driver.take_turn()

    assert gateway.port.woken() == gateway.port.at + RETRY_S


@pytest.mark.parametrize("leaves", ["before the answer", "with the answer", "after a lost answer"])
def test_the_money_of_a_caller_that_has_left_is_there_at_once(leaves: str) -> None:
    """Its call has not run, so nothing is presumed to be spent."""
    budgets = BudgetHome(Settings(budget(1_000)), lambda: NOON)
    StoredTranches().serve(budgets)
    fleet = Fleet("g1", "g2", budgets=budgets)
    asking = fleet["g2"].driver
    while (
        budgets.ask("acme", ("g1", 0), LimitAsk(0, "acme", FUNCTION, 0.0, LimitAskKind.MONEY, 600, 600, "k1"))
        is not PurseVerdict.FITS
    ):
        pass  # a tranche is taken
    budgets.ended("acme", ("g1", 0), 0)
    asked = LimitAsk(0, "acme", FUNCTION, 0.0, LimitAskKind.MONEY, 600, 600, "k1")
    heard: list[LimitAnswer | None] = []
    ask = asking.ask(asked, heard.append)
    if leaves == "before the answer":
        asking.forget(ask)
        fleet.settle()
        assert heard == []
    elif leaves == "with the answer":
        fleet.settle()
        assert heard[0] is not None
        assert budgets.purses("acme")["month"].reserved == 600
        asking.drop(asked, heard[0])
        fleet.settle()
    else:
        fleet.settle(lambda message: isinstance(message, LimitAnswers))
        assert budgets.purses("acme")["month"].reserved == 600
        fleet.later(PATIENCE_S)
        assert heard == [None]
    assert budgets.purses("acme")["month"].used == 0
