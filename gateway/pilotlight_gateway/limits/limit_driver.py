"""The driver of limits: asks homes of limits for calls of this gateway, and is the home for its own shards.

A call whose home does not answer within `PATIENCE_S` is not let in, since it would run uncounted.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping
from typing import Final

import msgspec

from pilotlight_core.bus import NO_RESPONDERS, Handler
from pilotlight_core.model import subjects
from pilotlight_core.model.messages.limiting import (
    UNKNOWN_COST,
    HeldPermits,
    Holdings,
    HoldingsWanted,
    LimitAnswer,
    LimitAnswers,
    LimitAsk,
    LimitAskKind,
    LimitEnd,
    LimitVerdict,
    ToLimitHome,
)
from pilotlight_core.model.timers import Timers
from pilotlight_gateway.budgets.budget_home import BudgetHome
from pilotlight_gateway.budgets.call_money import CallMoney, money_of
from pilotlight_gateway.cluster.driver_port import NEVER, SOON, DriverPort
from pilotlight_gateway.cluster.router import home_of
from pilotlight_gateway.cluster.shard_ownership import ShardOwnership
from pilotlight_gateway.limits.limit_policy import PolicyOf
from pilotlight_gateway.limits.limits_home import LimitHome
from pilotlight_gateway.limits.limits_outbox import LimitOutbox
from pilotlight_gateway.limits.limits_state import NOTHING, LimitState
from pilotlight_gateway.limits.silent_homes import PATIENCE_S, HomeAvailability

MONEY: Final = LimitAskKind.MONEY
GRANTED: Final = LimitVerdict.GRANTED
REFUSED: Final = LimitVerdict.REFUSED
NOT_HOME: Final = LimitVerdict.NOT_HOME

RETRY_S = 0.05
"""Between two asks for one call."""
REFRESH_S = 0.25
REPORT_EVERY = 8
"""Refreshes between two reports of held permits: lost messages are repaired within 2 s."""


class PendingAsk:
    """A call that waits for its home's answer. `then` gets it; None: no answer in time."""

    __slots__ = ("asked", "expires_at", "home", "name", "number", "shard", "then")

    def __init__(
        self, name: str, shard: int, asked: LimitAsk, expires_at: float, then: Callable[[LimitAnswer | None], None]
    ) -> None:
        self.name = name
        self.shard = shard
        self.asked = asked
        self.expires_at = expires_at
        self.then = then
        self.number = 0
        self.home = ""


class LimitDriver:
    """One gateway's part in the limits of all tenants: a `Driver` and a `ShardParticipant`."""

    def __init__(
        self,
        port: DriverPort,
        ownership: ShardOwnership,
        policies: PolicyOf,
        renewed: Callable[[str], float | None],
        *,
        region: str,
        gateway: str,
        budgets: BudgetHome | None = None,
    ) -> None:
        """`renewed` returns when a gateway's lease was last renewed; without `budgets` there are none."""
        self._port = port
        self._ownership = ownership
        self._region = region
        self._gateway = gateway
        self._home = LimitHome(policies, budgets)
        self._outbox = LimitOutbox(port, region, gateway)
        self._availability = HomeAvailability(renewed)
        self._number = 0
        self._asks: dict[str, PendingAsk] = {}
        self._asked: dict[int, PendingAsk] = {}
        """By number, while an answer is awaited."""
        self._timers = Timers[str]()
        """By the name of an ask: its next attempt or its end."""
        self._held: dict[int, dict[int, LimitAsk]] = {}
        """Shard -> number -> what was asked."""
        self._paid: dict[int, dict[int, CallMoney]] = {}
        """Shard -> number -> the money of calls that run."""
        self._reported: dict[int, int] = {}
        """Shard -> epoch of the last home that got a report; answers of older homes are void."""
        self._alive: set[str] = set()
        self._refreshes = 0
        self._refresh_at = SOON

    # -- the driver ----------------------------------------------------------------------------------------------

    def handlers(self) -> Mapping[str, Handler]:
        region, gateway = self._region, self._gateway
        return {
            subjects.limits(region, gateway): self._on_message,
            subjects.allowed(region, gateway): self._on_answers,
            subjects.holdings_wanted(region): self._on_wanted,
        }

    def take_turn(self) -> None:
        at = self._port.clock()
        if at >= self._refresh_at:
            self._refresh_at = at + REFRESH_S
            self.refresh()
        for name in self._timers.due(at):
            self._try(self._asks[name])
        self.flush()
        wake = self._timers.next()
        self._port.wake_at(min(self._refresh_at, NEVER if wake is None else wake))

    def reconnected(self) -> None:
        self._report_all_holdings()

    def flush(self) -> None:
        for home in self._outbox.flush():
            self._retry_asks_to(home)

    # -- shards --------------------------------------------------------------------------------------------------

    def begin(self, shard: int, epoch: int, state: bytes) -> None:
        """Become the home of a shard. `refresh` does so too, but without the state of the former home."""
        self._alive |= {self._gateway, *self._ownership.others()}
        levels = msgspec.msgpack.decode(state, type=LimitState) if state else NOTHING
        self._home.begin(shard, epoch, self._port.clock(), self._alive, levels)
        self._refresh_at = SOON  # one refresh for all shards that begin now: it asks for reports
        self._port.wake_at(SOON)

    def end(self, shard: int) -> bytes:
        """Stop being the home; returns the state for the next one. Only once the shard is no longer owned."""
        return msgspec.msgpack.encode(self._home.end(shard, self._port.clock()))

    def refresh(self) -> None:
        """Follow the ownership of shards and the leases of gateways, sweep, and report. Callable at any time."""
        at = self._port.clock()
        alive = {self._gateway, *self._ownership.others()}
        for gone in self._alive - alive:
            self._home.gateway_gone(gone)
            self._retry_asks_to(gone)
        self._alive = alive
        self._availability.keep(alive)
        for shard in range(subjects.SHARDS):
            self._refresh_shard(shard, at)
        if wanted := self._home.unreported():
            self._ask_what_runs(wanted)
        self._refreshes += 1
        self._home.sweep(self._refreshes % subjects.SHARDS, at)
        if self._refreshes % REPORT_EVERY == 0:
            self._report_all_holdings()

    def _refresh_shard(self, shard: int, at: float) -> None:
        acting, epoch = self._home.epoch(shard), self._ownership.mine(shard, at)
        if epoch is not None and epoch != acting:
            self._home.begin(shard, epoch, at, self._alive)
            self._availability.answered(shard, at)
        elif epoch is None and acting:
            owner = self._ownership.owner(shard)
            # A lapsed lease may hold again; with the same epoch no other home has acted in between.
            if owner is not None and owner.epoch != acting:
                self._home.end(shard, at)

    def limits_changed(self, shard: int, tenant: str | None) -> None:
        self._home.limits_changed(shard, tenant, self._port.clock())

    @property
    def home(self) -> LimitHome:
        return self._home

    # -- calls ---------------------------------------------------------------------------------------------------

    def new_number(self) -> int:
        """The number of an ask that is made now."""
        self._number += 1
        return self._number

    def ask_here(self, asked: LimitAsk) -> LimitAnswer | None:
        """The decision if the home is here and decides at once; else None, and nothing is counted."""
        if not asked.number:
            asked = msgspec.structs.replace(asked, number=self.new_number())
        shard = subjects.shard_of(asked.tenant)
        answer = self._answer(shard, self._gateway, asked, self._port.clock())
        if not _is_decided(answer):
            return None
        self._note_held(shard, asked, answer)
        return answer

    def reserve_here(self, money: CallMoney) -> LimitAnswer | None:
        """Reserve the money of a call if its home is here; None: it is let in, and `settle` is called at its end.

        An answer that is not decided counts nothing: its home has to be asked.
        """
        self._number += 1
        number = money.number = self._number
        shard, at = subjects.shard_of(money.tenant), self._port.clock()
        epoch = self._ownership.mine(shard, at)
        if epoch is None:
            return LimitAnswer(number, NOT_HOME)
        if self._home.epoch(shard) != epoch:
            self.refresh()
        wrong = self._home.reserve(shard, self._gateway, money)
        if wrong is None:
            paid = self._paid.get(shard)
            if paid is None:
                paid = self._paid[shard] = {}
            paid[number] = money
        return wrong

    def settle(self, money: CallMoney, spent: int | None) -> None:
        """A call that was let in with money has ended, and cost `spent`; None: nobody knows."""
        shard = subjects.shard_of(money.tenant)
        paid = self._paid.get(shard)
        if paid is None or paid.pop(money.number, None) is None:
            return
        at = self._port.clock()
        if self._ownership.mine(shard, at) is None:
            home = home_of(self._ownership, self._gateway, shard, at)
            if home is not None and home != self._gateway:  # None: our lease has lapsed, and may hold again
                cost = UNKNOWN_COST if spent is None else spent
                self._outbox.end(home, LimitEnd(money.number, money.tenant, money.function, spent=cost))
                return
        self._home.settle(shard, self._gateway, money, spent)

    def ask(self, asked: LimitAsk, then: Callable[[LimitAnswer | None], None]) -> PendingAsk:
        """Ask the home until it decides. A caller that stops waiting calls `forget`."""
        self._number += 1
        shard, expires_at = subjects.shard_of(asked.tenant), self._port.clock() + PATIENCE_S
        ask = PendingAsk(str(self._number), shard, asked, expires_at, then)
        self._asks[ask.name] = ask
        self._try(ask)
        return ask

    def forget(self, ask: PendingAsk) -> None:
        """Stop asking. A permit in a late answer is given back by the next report, money at once."""
        self._asks.pop(ask.name, None)
        if self._asked.pop(ask.number, None) is not None:
            self._take_back(ask)
        self._timers.clear(ask.name)

    def _take_back(self, ask: PendingAsk) -> None:
        """Have the home spend nothing for an ask whose answer nobody awaits: else it presumes the worst."""
        if ask.asked.part is MONEY:
            self.flush()  # the ask must arrive before
            self._outbox.end(ask.home, _unspent(ask.asked, ask.number))

    def drop(self, asked: LimitAsk, answer: LimitAnswer) -> None:
        """Give back the permit of a call whose caller left before the answer."""
        if asked.part is MONEY:
            self.settle(money_of(asked, answer.number), 0)
        else:
            self._no_longer_held(subjects.shard_of(asked.tenant), answer.number)

    def ended(self, end: LimitEnd) -> None:
        """An admitted call has ended: free its permit."""
        shard = subjects.shard_of(end.tenant)
        if not self._no_longer_held(shard, end.number) and not (end.correction or end.tokens):
            return
        at = self._port.clock()
        if self._ownership.mine(shard, at) is None:
            home = home_of(self._ownership, self._gateway, shard, at)
            if home is not None and home != self._gateway:  # None: our lease has lapsed, and may hold again
                self._outbox.end(home, end)
                return
        self._home.release(shard, self._gateway, end, at)

    def wait(self, tenant: str) -> float:
        shard = subjects.shard_of(tenant)
        owner = self._ownership.owner(shard)
        return self._availability.wait(shard, owner.gateway if owner is not None else "", self._port.clock())

    def _try(self, ask: PendingAsk) -> None:
        at = self._port.clock()
        if self._asked.pop(ask.number, None) is not None:
            self._take_back(ask)
        if at >= ask.expires_at:
            self._finish(ask, None)
            return
        asked = msgspec.structs.replace(ask.asked, number=self.new_number())
        answer = self._answer(ask.shard, self._gateway, asked, at)
        if _is_decided(answer):
            self._finish(ask, answer)
            return
        is_elsewhere = answer.verdict is NOT_HOME
        home = home_of(self._ownership, self._gateway, ask.shard, self._port.clock()) if is_elsewhere else None
        if home is None or home == self._gateway:
            self._retry_at(ask, at + RETRY_S)
            return
        self._number += 1
        ask.number, ask.home = self._number, home
        self._held.setdefault(ask.shard, {})  # from now on its home gets reports, even empty ones
        self._asked[ask.number] = ask
        self._outbox.ask(home, msgspec.structs.replace(ask.asked, number=ask.number))
        self._retry_at(ask, ask.expires_at)

    def _retry_at(self, ask: PendingAsk, at: float) -> None:
        self._timers.set(ask.name, at)
        self._port.wake_at(at)

    def _finish(self, ask: PendingAsk, answer: LimitAnswer | None) -> None:
        self.forget(ask)
        if answer is not None:
            self._note_held(ask.shard, ask.asked, answer)
            self._availability.answered(ask.shard, self._port.clock())
        ask.then(answer)

    def _note_held(self, shard: int, asked: LimitAsk, answer: LimitAnswer) -> None:
        # By the answer, not the policy: the home may know a limit that is newer than the call.
        if answer.holds and asked.part is MONEY:
            self._paid.setdefault(shard, {})[answer.number] = money_of(asked, answer.number)
        elif answer.holds:
            held = self._held.get(shard)
            if held is None:
                held = self._held[shard] = {}
            held[answer.number] = asked

    def _no_longer_held(self, shard: int, number: int) -> bool:
        """Forget a permit; whether there was one."""
        held = self._held.get(shard)
        return held is not None and held.pop(number, None) is not None

    def _answer(self, shard: int, gateway: str, ask: LimitAsk, at: float) -> LimitAnswer:
        """The answer of the home here, if it is here."""
        epoch = self._ownership.mine(shard, at)
        if epoch is None:
            return LimitAnswer(ask.number, NOT_HOME)
        if self._home.epoch(shard) != epoch:
            self.refresh()
        return self._home.ask(shard, gateway, ask, at)

    # -- what arrives --------------------------------------------------------------------------------------------

    def _on_message(self, _subject: str, message: object, _reply: str) -> None:
        at = self._port.clock()
        if isinstance(message, ToLimitHome | Holdings):
            # If its lease is gone after all, the next refresh removes it again with what it reported.
            self._alive.add(message.gateway)
        match message:
            case ToLimitHome():
                # Ends first: they free permits.
                for end in message.ends:
                    self._home.ended(subjects.shard_of(end.tenant), message.gateway, end, at)
                if message.asks:
                    answers = tuple(
                        self._answer(subjects.shard_of(ask.tenant), message.gateway, ask, at) for ask in message.asks
                    )
                    reply = LimitAnswers(gateway=self._gateway, answers=answers)
                    self._outbox.send(subjects.allowed(self._region, message.gateway), reply)
            case Holdings():
                self._home.on_holdings(message, at)

    def _on_answers(self, _subject: str, message: object, subject: str) -> None:
        if message is NO_RESPONDERS:
            for home in {ask.home for ask in self._asked.values()}:
                if subject == subjects.limits(self._region, home):
                    self._availability.process_lost(home)
                    self._retry_asks_to(home)
        elif isinstance(message, LimitAnswers):
            for answer in message.answers:
                if (ask := self._asked.pop(answer.number, None)) is not None:
                    self._on_answer(ask, answer)

    def _on_answer(self, ask: PendingAsk, answer: LimitAnswer) -> None:
        # The answer of a home whose successor already has our report is void: the successor does not count it.
        if _is_decided(answer) and answer.epoch >= self._reported.get(ask.shard, 0):
            self._finish(ask, answer)
        else:
            self._retry_at(ask, self._port.clock() + RETRY_S)

    def _retry_asks_to(self, gateway: str) -> None:
        """No process listens there, or sending failed: repeat the asks that wait for it."""
        for ask in [ask for ask in self._asked.values() if ask.home == gateway]:
            del self._asked[ask.number]
            self._retry_at(ask, self._port.clock() + RETRY_S)

    # -- held permits ----------------------------------------------------------------------------------------------

    def _ask_what_runs(self, shards: dict[int, int]) -> None:
        """Report the held permits to homes that begin here, and ask other gateways to."""
        for shard, epoch in shards.items():
            self._report_holdings(shard, epoch, self._gateway)
        if wanted := self._home.unreported():
            wish = HoldingsWanted(home=self._gateway, shards=wanted)
            self._outbox.send(subjects.holdings_wanted(self._region), wish)

    def _on_wanted(self, _subject: str, message: object, _reply: str) -> None:
        if isinstance(message, HoldingsWanted) and message.home != self._gateway:
            for shard, epoch in message.shards.items():
                if epoch >= self._reported.get(shard, 0):
                    self._report_holdings(shard, epoch, message.home)

    def _report_all_holdings(self) -> None:
        for shard in self._held.keys() | self._paid.keys():
            if (owner := self._ownership.owner(shard)) is not None:
                self._report_holdings(shard, owner.epoch, owner.gateway)

    def _report_holdings(self, shard: int, epoch: int, home: str) -> None:
        self._reported[shard] = max(self._reported.get(shard, 0), epoch)
        holdings = Holdings(
            gateway=self._gateway,
            shard=shard,
            epoch=epoch,
            upto=self._number,
            held=held_permits(self._held.get(shard, {}), self._paid.get(shard, {})),
            pending=tuple(number for number, ask in self._asked.items() if ask.shard == shard),
        )
        if home == self._gateway:
            self._home.on_holdings(holdings, self._port.clock())
        else:
            self.flush()  # asks that were made before must arrive before
            self._outbox.send(subjects.limits(self._region, home), holdings)


def held_permits(held: Mapping[int, LimitAsk], paid: Mapping[int, CallMoney]) -> tuple[HeldPermits, ...]:
    """What runs, by who asked for what: permits, and money."""
    running: defaultdict[tuple[str, str, str], list[int]] = defaultdict(list)
    paying: defaultdict[tuple[str, str, str], list[int]] = defaultdict(list)
    for number, asked in held.items():
        running[asked.tenant, asked.function, asked.key].append(number)
    for number, money in paid.items():
        paying[money.tenant, money.function, money.key].append(number)
    permits = [
        HeldPermits(tenant, function, tuple(numbers), key=key) for (tenant, function, key), numbers in running.items()
    ]
    of_money = [
        HeldPermits(
            tenant,
            function,
            tuple(numbers),
            tuple([paid[number].worst for number in numbers]),
            tuple([paid[number].likely for number in numbers]),
            key,
        )
        for (tenant, function, key), numbers in paying.items()
    ]
    return (*permits, *of_money)


def _unspent(asked: LimitAsk, number: int) -> LimitEnd:
    """The end of a call that has not run."""
    return LimitEnd(number, asked.tenant, asked.function, spent=0)


def _is_decided(answer: LimitAnswer) -> bool:
    return answer.verdict is GRANTED or answer.verdict is REFUSED
