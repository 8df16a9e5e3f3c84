"""The home of limits: decides for every gateway whether a call of a tenant may begin. Instants are seconds.

Exactness. All asks for one tenant are decided here one after the other, against buckets that hold the bound by
construction (`gcra`), so it holds over any number of gateways. After a crash the next home begins only when the former
one can no longer act. It does not know the buckets and begins with empty ones: everything that could have been granted
counts as granted, so both together grant no more than one bucket would. The price is the rest of a burst. A home that
leaves in order hands its buckets over (`limits_state`). A limit that was first set under this home or one that handed
over to it (`RateLimitStart`) was counted by no other home, so its burst is available at once.

A new home asks every gateway for the permits that it holds. Where concurrency is limited it grants nothing until every
live gateway has reported (`on_holdings`) or is gone (`gateway_gone`).
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Final

import msgspec

from pilotlight_core.model.messages.limiting import (
    UNKNOWN_COST,
    HeldPermits,
    Holdings,
    LimitAnswer,
    LimitAsk,
    LimitAskKind,
    LimitEnd,
    LimitVerdict,
)
from pilotlight_gateway.budgets.budget_home import BudgetHome, shortage_of
from pilotlight_gateway.budgets.call_money import CallMoney, money_of
from pilotlight_gateway.budgets.purse import FITS, PurseStanding
from pilotlight_gateway.limits.account import EpochRange, LimitAccount
from pilotlight_gateway.limits.gcra import instant
from pilotlight_gateway.limits.limit_policy import LimitPolicy, LimitScope, PolicyOf
from pilotlight_gateway.limits.limits_state import NOTHING, LimitState, handed_over, taken_over

ScopeAccounts = tuple[LimitAccount, ...]
CHANGED_AT_MOST = 1_000
"""Tenants of one shard; beyond it the limits of all count as changed."""
CALL: Final = LimitAskKind.CALL
START: Final = LimitAskKind.START
SUBMISSION: Final = LimitAskKind.SUBMISSION
TOKENS: Final = LimitAskKind.TOKENS
MONEY: Final = LimitAskKind.MONEY
GRANTED: Final = LimitVerdict.GRANTED
BUDGET = "budget"
"""The limit that a call without money violates."""

SETTLING_S = 0.05
"""Retry-After while the reports of gateways are missing."""


@dataclass(frozen=True, kw_only=True)
class LimitHomeStatistics:
    shards: int
    accounts: int
    permits: int
    settling: int
    granted: int
    refused: int


@dataclass(kw_only=True)
class LimitShard:
    epoch: int
    epochs: EpochRange
    born: int
    """Picoseconds."""
    unreported: set[str]
    """Gateways that have not reported their permits yet."""
    accounts: dict[tuple[str, str], LimitAccount] = field(default_factory=dict)
    changed: dict[str, int] = field(default_factory=dict)
    """Tenant, or "" for all -> picoseconds of the last change of its limits. An account that is made later cannot count
    what returned before, as the rate is not known."""
    permits: dict[str, dict[int, ScopeAccounts]] = field(default_factory=dict)
    """Gateway -> number -> accounts that count it."""


class LimitHome:
    """The limits of the tenants whose home this gateway is."""

    def __init__(self, policies: PolicyOf, budgets: BudgetHome | None = None) -> None:
        self._policies = policies
        self._budgets = budgets
        self._shards: dict[int, LimitShard] = {}
        self._granted = 0
        self._refused = 0

    # -- shards ----------------------------------------------------------------------------------------------------

    def begin(self, shard: int, epoch: int, at: float, gateways: Collection[str], state: LimitState = NOTHING) -> None:
        """Become the home of a shard; `gateways` are all that live, including this one.

        `state` comes from the former home; NOTHING after a crash.
        """
        if self._budgets is not None:
            self._budgets.begin(shard, state.budgets)
        born, epochs, accounts = taken_over(state, epoch, instant(at))
        self._shards[shard] = LimitShard(
            epoch=epoch, epochs=epochs, born=born, unreported=set(gateways), accounts=accounts
        )

    def end(self, shard: int, at: float) -> LimitState:
        """Stop being its home; returns the state for the next one."""
        budgets = self._budgets.end(shard) if self._budgets is not None else ()
        state = self._shards.pop(shard, None)
        if state is None:
            return NOTHING
        born = max([state.born, *state.changed.values()])
        left = handed_over(state.accounts, born, state.epochs.first, instant(at))
        return msgspec.structs.replace(left, budgets=budgets)

    def epoch(self, shard: int) -> int:
        state = self._shards.get(shard)
        return state.epoch if state is not None else 0

    def unreported(self) -> dict[int, int]:
        """Shard -> epoch, where reports are missing."""
        return {shard: state.epoch for shard, state in self._shards.items() if state.unreported}

    # -- calls ---------------------------------------------------------------------------------------------------

    def ask(self, shard: int, gateway: str, ask: LimitAsk, at: float) -> LimitAnswer:
        """Decide whether a call may begin, and count it in all scopes or in none."""
        state = self._shards.get(shard)
        if state is None:
            return LimitAnswer(ask.number, LimitVerdict.NOT_HOME)
        part = ask.part
        if part is MONEY:
            return self._ask_money(shard, state.epoch, gateway, ask)
        policy = self._policies(ask.tenant, ask.function)
        if not policy.scopes:
            return LimitAnswer(ask.number, LimitVerdict.GRANTED, state.epoch)
        holds = policy.holds and (part is CALL or part is START)
        if holds and state.unreported:
            return LimitAnswer(ask.number, LimitVerdict.SETTLING, state.epoch, SETTLING_S)
        now = instant(at)
        cost = _amount(ask.cost, part, policy)
        accounts = _accounts(state, ask.tenant, policy, now)
        wait, violated = _waits(policy, accounts, cost, now, part)
        if violated:
            self._refused += 1
            standing = _standing(policy, accounts, now)
            return LimitAnswer(ask.number, LimitVerdict.REFUSED, state.epoch, wait, violated, standing)
        self._granted += 1
        number = ask.number
        key = gateway, number
        for index, account in enumerate(accounts):
            account.take(policy.scopes[index], key, cost, now, part)
        if holds:
            permits = state.permits.get(gateway)
            if permits is None:
                permits = state.permits[gateway] = {}
            permits[number] = accounts
        standing = _standing(policy, accounts, now)
        return LimitAnswer(number, GRANTED, state.epoch, 0.0, (), standing, cost, holds)

    def _ask_money(self, shard: int, epoch: int, gateway: str, ask: LimitAsk) -> LimitAnswer:
        wrong = self.reserve(shard, gateway, money_of(ask))
        return wrong or LimitAnswer(ask.number, GRANTED, epoch, holds=self._budgets is not None)

    def reserve(self, shard: int, gateway: str, money: CallMoney) -> LimitAnswer | None:
        """Reserve the money of a call of this process, as `ask` does; None: it is let in."""
        state = self._shards.get(shard)
        if state is None:
            return LimitAnswer(money.number, LimitVerdict.NOT_HOME)
        if self._budgets is None:
            return None
        if state.unreported:
            return LimitAnswer(money.number, LimitVerdict.SETTLING, state.epoch, SETTLING_S)
        found = self._budgets.reserve(money.tenant, gateway, money)
        if found is FITS:
            self._granted += 1
            return None
        if isinstance(found, PurseStanding):
            self._refused += 1
            wait_s = found.wait_s if found.wait_s is not None else 0.0
            return LimitAnswer(
                money.number, LimitVerdict.REFUSED, state.epoch, wait_s, (BUDGET,), shortage=shortage_of(found)
            )
        return LimitAnswer(money.number, LimitVerdict.SETTLING, state.epoch, SETTLING_S)

    def settle(self, shard: int, gateway: str, money: CallMoney, spent: int | None) -> None:
        """A call of this process with money has ended, and cost `spent`; None: nobody knows."""
        if self._budgets is not None and shard in self._shards:
            self._budgets.settle(money.tenant, gateway, money.number, spent)

    def ended(self, shard: int, gateway: str, end: LimitEnd, at: float) -> None:
        """A call of another gateway has ended: free its permit, or settle its money."""
        if self._budgets is not None and shard in self._shards:
            spent = end.spent if end.spent != UNKNOWN_COST else None
            if self._budgets.settle(end.tenant, gateway, end.number, spent):
                return  # an ask has a number of its own
        self.release(shard, gateway, end, at)

    def release(self, shard: int, gateway: str, end: LimitEnd, at: float) -> None:
        """Free the permit of a call and count the correction of its cost."""
        if (state := self._shards.get(shard)) is None:
            return
        now = instant(at)
        held = state.permits.get(gateway)
        if held is not None and (accounts := held.pop(end.number, None)) is not None:
            key = gateway, end.number
            for account in accounts:
                account.permits.leave(key, at)
        if end.correction or end.tokens:
            policy = self._policies(end.tenant, end.function)
            for account in _accounts(state, end.tenant, policy, now):
                account.correct(end.correction, now, end.tokens)

    def limits_changed(self, shard: int, tenant: str | None, at: float) -> None:
        """The limits of a tenant, or of any (None), have changed: until now the old ones hold."""
        if (state := self._shards.get(shard)) is not None:
            now = instant(at)
            if len(state.changed) >= CHANGED_AT_MOST:
                state.changed.clear()
                tenant = None
            state.changed[tenant or ""] = now
            for (owner, function), account in state.accounts.items():
                if tenant in (None, owner):
                    scopes = self._policies(owner, function).scopes
                    for scope in (scope for scope in scopes if scope.function == function):
                        account.follow(scope, now)

    # -- permits ---------------------------------------------------------------------------------------------------

    def on_holdings(self, holdings: Holdings, at: float) -> None:
        state = self._shards.get(holdings.shard)
        if state is None or state.epoch != holdings.epoch:
            return
        known = state.permits.setdefault(holdings.gateway, {})
        reported = {number for held in holdings.held for number in held.numbers}.union(holdings.pending)
        for number in [number for number in known if number <= holdings.upto and number not in reported]:
            _drop(known.pop(number), (holdings.gateway, number))
        if self._budgets is not None:
            self._budgets.release(holdings.shard, holdings.gateway, holdings.upto, reported)
        for held in holdings.held:
            if held.worst:
                self._adopt_money(holdings.gateway, held)
            else:
                self._adopt(state, holdings.gateway, held, at)
        state.unreported.discard(holdings.gateway)

    def _adopt_money(self, gateway: str, held: HeldPermits) -> None:
        if self._budgets is not None:
            for number, worst, likely in zip(held.numbers, held.worst, held.likely, strict=True):
                money = LimitAsk(number, held.tenant, held.function, 0.0, MONEY, worst, likely, held.key)
                self._budgets.take_over(held.tenant, (gateway, number), money)

    def _adopt(self, state: LimitShard, gateway: str, held: HeldPermits, at: float) -> None:
        policy, known = self._policies(held.tenant, held.function), state.permits[gateway]
        if not policy.holds:
            return
        accounts = _accounts(state, held.tenant, policy, instant(at))
        for number in held.numbers:
            if number not in known:
                known[number] = accounts
                for account, scope in zip(accounts, policy.scopes, strict=True):
                    if scope.concurrency:
                        account.permits.enter((gateway, number), at)

    def gateway_gone(self, gateway: str) -> None:
        """A gateway's lease is gone, and its calls with it."""
        if self._budgets is not None:
            self._budgets.gateway_gone(gateway)
        for state in self._shards.values():
            state.unreported.discard(gateway)
            for number, accounts in state.permits.pop(gateway, {}).items():
                _drop(accounts, (gateway, number))

    # -- upkeep ----------------------------------------------------------------------------------------------------

    def sweep(self, shard: int, at: float) -> None:
        """Forget the accounts that decide as new ones would."""
        if (state := self._shards.get(shard)) is not None:
            now = instant(at)
            for key in [key for key, account in state.accounts.items() if account.idle(now)]:
                del state.accounts[key]

    def statistics(self) -> LimitHomeStatistics:
        return LimitHomeStatistics(
            shards=len(self._shards),
            accounts=sum(len(state.accounts) for state in self._shards.values()),
            permits=sum(len(held) for state in self._shards.values() for held in state.permits.values()),
            settling=len(self.unreported()),
            granted=self._granted,
            refused=self._refused,
        )

    def check_integrity(self) -> None:
        """Raise AssertionError if an account counts a call that does not run."""
        for number, state in self._shards.items():
            running = {(gateway, held) for gateway, permits in state.permits.items() for held in permits}
            for key, account in state.accounts.items():
                if strangers := account.permits.keys() - running:
                    raise AssertionError(f"shard {number}: {key} counts {strangers}, which do not run")


def _amount(cost: float, part: LimitAskKind, policy: LimitPolicy) -> float:
    """The cost or the tokens that are taken for a call: never more than a burst, or it could not begin at all."""
    if part is SUBMISSION:
        return 0.0
    most = policy.most_tokens if part is TOKENS else policy.most_cost
    return cost if cost < most else most


def _accounts(state: LimitShard, tenant: str, policy: LimitPolicy, now: int) -> ScopeAccounts:
    return tuple([_account(state, tenant, scope, now) for scope in policy.scopes])


def _account(state: LimitShard, tenant: str, scope: LimitScope, now: int) -> LimitAccount:
    account = state.accounts.get((tenant, scope.function))
    if account is None:
        since = max(state.born, state.changed.get(tenant, state.born), state.changed.get("", state.born))
        account = state.accounts[tenant, scope.function] = LimitAccount(since, state.epochs)
    account.follow(scope, now)
    return account


def _waits(
    policy: LimitPolicy, accounts: ScopeAccounts, cost: float, now: int, part: LimitAskKind
) -> tuple[float, tuple[str, ...]]:
    """The longest wait in seconds, and all limits that delay the call."""
    longest = 0.0
    violated: tuple[str, ...] = ()
    for index, account in enumerate(accounts):
        wait, names = account.wait(policy.scopes[index], cost, now, part)
        if names:
            longest, violated = max(longest, wait), (*violated, *names)
    return longest, violated


def _standing(policy: LimitPolicy, accounts: ScopeAccounts, now: int) -> str:
    if len(accounts) == 1:
        return accounts[0].standing(policy.scopes[0], now)
    return ",".join(account.standing(scope, now) for account, scope in zip(accounts, policy.scopes, strict=True))


def _drop(accounts: ScopeAccounts, key: tuple[str, int]) -> None:
    for account in accounts:
        account.permits.drop(key)
