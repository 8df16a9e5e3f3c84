"""Limits for HTTP and jobs: asyncio around `LimitDriver`."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from contextlib import AsyncExitStack
from types import TracebackType

from mypy_extensions import mypyc_attr

from pilotlight_core.bus import Bus
from pilotlight_core.model import subjects
from pilotlight_core.model.messages.limiting import LimitAnswer, LimitAsk, LimitAskKind
from pilotlight_core.model.money.budgets import BudgetsRecord
from pilotlight_gateway.budgets.budget_home import BudgetHome
from pilotlight_gateway.budgets.call_money import CallMoney, TellEnd
from pilotlight_gateway.cluster.driver_port import BusDriverPort
from pilotlight_gateway.cluster.shard_ownership import ShardOwnership
from pilotlight_gateway.limits.lease_watch import LeaseWatch
from pilotlight_gateway.limits.limit_admission import (
    Admission,
    admission_of,
    refuse_money,
    unreachable,
)
from pilotlight_gateway.limits.limit_driver import LimitDriver
from pilotlight_gateway.limits.limit_policy import LimitPolicy, PolicyOf
from pilotlight_gateway.limits.limits_home import LimitHomeStatistics


@mypyc_attr(allow_interpreted_subclasses=True)
class HomeLimiter:
    """The real `Limiter`, over the bus. As a context manager it asks and answers until the block ends."""

    def __init__(
        self,
        bus: Bus,
        ownership: ShardOwnership,
        policies: PolicyOf,
        *,
        region: str,
        gateway: str,
        clock: Callable[[], float] = time.monotonic,
        budgets: BudgetHome | None = None,
        budgeted: dict[str, BudgetsRecord] | None = None,
    ) -> None:
        """`budgeted`: by tenant what is set now; `record_changed` keeps it."""
        self._loop = bus.loop
        self._ownership = ownership
        self.policy = policies
        self._port = BusDriverPort(bus, clock)
        self._renewals = LeaseWatch(bus, clock)
        self.driver = LimitDriver(
            self._port, ownership, policies, self._renewals.of, region=region, gateway=gateway, budgets=budgets
        )
        self._settle: TellEnd = self.driver.settle
        self._budgeted: dict[str, BudgetsRecord] = {} if budgeted is None else budgeted
        self._running = AsyncExitStack()

    async def __aenter__(self) -> None:
        begun = AsyncExitStack()
        failed: BaseException | None = None
        try:
            await begun.enter_async_context(self._port.driving(self.driver))
            self.driver.refresh()
            begun.callback(self.driver.flush)
            await begun.enter_async_context(self._renewals.followed())
        except BaseException as error:  # noqa: BLE001 - it is raised again, once what has begun is undone
            failed = error
        if failed is not None:
            await begun.aclose()
            try:
                raise failed
            finally:
                failed = None
        self._running = begun.pop_all()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._running.__aexit__(kind, error, trace)

    def record_changed(self, key: str, record: object) -> None:
        """A record of the registry has changed; call it after the policies know."""
        kind, _, name = key.partition(".")
        if kind == "budget":
            if isinstance(record, BudgetsRecord):
                self._budgeted[name] = record
            else:
                self._budgeted.pop(name, None)
        elif kind in ("limits", "tenant"):
            self.driver.limits_changed(subjects.shard_of(name), name)
        elif kind == "tier":
            for shard in range(subjects.SHARDS):
                self.driver.limits_changed(shard, None)

    def budgeted(self) -> list[str]:
        """The tenants with budgets whose home this gateway is now."""
        return [name for name in self._budgeted if self.is_home(name)]

    def is_home(self, tenant: str) -> bool:
        """Whether this gateway is the home of a tenant's limits now."""
        return self._ownership.mine(subjects.shard_of(tenant), time.monotonic()) is not None

    def statistics(self) -> LimitHomeStatistics:
        return self.driver.home.statistics()

    def epoch(self, tenant: str) -> int:
        owner = self._ownership.owner(subjects.shard_of(tenant))
        return owner.epoch if owner is not None else 0

    def admit_now(
        self, tenant: str, function: str, policy: LimitPolicy, cost: float, part: LimitAskKind = LimitAskKind.CALL
    ) -> Admission | None:
        asked = LimitAsk(self.driver.new_number(), tenant, function, cost, part)
        answer = self.driver.ask_here(asked)
        return admission_of(asked, policy, answer, self._ended) if answer is not None else None

    def reserve_now(self, money: CallMoney, policy: LimitPolicy) -> bool:
        answer = self.driver.reserve_here(money)
        if answer is None:
            money.admit(money.number, self._settle)
            return True
        return refuse_money(money, policy, answer)

    async def reserve(self, money: CallMoney, policy: LimitPolicy) -> None:
        if self.reserve_now(money, policy):
            return
        answer = await self._ask(money.ask())
        if answer is None:
            money.error = unreachable(self.driver.wait(money.tenant))
        elif not refuse_money(money, policy, answer):
            money.admit(answer.number, self._settle)

    async def admit(
        self, tenant: str, function: str, policy: LimitPolicy, cost: float, part: LimitAskKind = LimitAskKind.CALL
    ) -> Admission:
        if (admission := self.admit_now(tenant, function, policy, cost, part)) is not None:
            return admission
        asked = LimitAsk(0, tenant, function, cost, part)
        answer = await self._ask(asked)
        if answer is None:
            return Admission(tenant, function, policy, error=unreachable(self.driver.wait(tenant)))
        return admission_of(asked, policy, answer, self._ended)

    async def _ask(self, asked: LimitAsk) -> LimitAnswer | None:
        future: asyncio.Future[LimitAnswer | None] = self._loop.create_future()

        def decided(answer: LimitAnswer | None) -> None:
            if not future.done():
                future.set_result(answer)
            elif answer is not None:  # our task is cancelled, and has not run since
                self.driver.drop(asked, answer)

        ask = self.driver.ask(asked, decided)
        try:
            return await future
        except asyncio.CancelledError:
            self.driver.forget(ask)
            if future.done() and not future.cancelled() and (answer := future.result()) is not None:
                self.driver.drop(asked, answer)
            raise

    def _ended(self, admission: Admission, amount: float | None) -> None:
        if (end := admission.end_with(amount)) is not None:
            self.driver.ended(end)
