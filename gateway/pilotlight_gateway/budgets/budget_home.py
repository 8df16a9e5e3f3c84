"""The budgets of the tenants whose home of limits this gateway is: it decides on all asks for them, one after another.

A tenant is known once its durable record was read; until then, and until a next tranche is taken, its calls wait.
`tranche_keeper` reads and writes the records.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable

from pilotlight_core.model.messages.limiting import BudgetShortage, LimitAsk
from pilotlight_core.model.money.budgets import (
    NEVER_ENDS,
    BilledBudgets,
    Budget,
    BudgetsRecord,
    HandedBudgets,
    HomeTranches,
    ReachedThreshold,
    Tranche,
    with_reached,
)
from pilotlight_core.model.subjects import shard_of
from pilotlight_gateway.budgets.call_money import CallMoney, money_of
from pilotlight_gateway.budgets.purse import (
    EXHAUSTED,
    FITS,
    LONG_SINCE,
    WAITS,
    Purse,
    PurseStanding,
    PurseVerdict,
    ReservationKey,
)

HANDED_AT_MOST = 1_000
"""Budgets of one shard: 200 KiB, 1 MiB with the longest names. Beyond them the next home counts all that was taken as
spent, as after a death."""
PAYERS_AT_MOST = 1_000
"""Functions and keys of one tenant whose purses are known; beyond them they are looked for anew."""


class TenantPurses:
    """The budgets of one tenant."""

    def __init__(self, tenant: str) -> None:
        self.tenant = tenant
        self.record: BudgetsRecord | None = None
        """What is set, as the purses follow it."""
        self.changes_at = 0.0
        """When the first of their periods ends."""
        self.began_at = 0.0
        """When the last of them began."""
        self.purses: dict[str, Purse] = {}
        self._payers: dict[tuple[str, str], tuple[Purse, ...]] = {}
        """By function and key that a call has had: the purses that it falls under."""
        self.permits: dict[str, dict[int, CallMoney]] = {}
        """By gateway and number: the calls that run."""
        self.revision: int | None = None
        """Of the durable record; None: it was not read yet."""
        self.is_claimed = False
        """Whether this home has written it since: then no former one can any more."""
        self.stored: dict[str, Tranche] = {}
        """What it says."""
        self.begun_with: dict[str, Tranche] = {}
        """The same, or where it was handed over what was used of it."""
        self.reached: tuple[ReachedThreshold, ...] = ()
        """The thresholds that were reached, as it says."""
        self.writing: HomeTranches | None = None
        """What is being written."""
        self.attempted: dict[str, Tranche] | None = None
        """What it may say: whether that was written is not known."""
        self.adopted: dict[ReservationKey, CallMoney] = {}
        """Calls that run, to be taken over once it is read."""
        self.is_urgent = False
        """A call waits for a tranche."""

    def purses_of(self, function: str, key: str) -> tuple[Purse, ...]:
        """Those that a call falls under."""
        payer = function, key
        found = self._payers.get(payer)
        if found is None:
            if len(self._payers) >= PAYERS_AT_MOST:
                self._payers.clear()
            found = tuple([purse for purse in self.purses.values() if falls_under(purse.budget, function, key)])
            self._payers[payer] = found
        return found

    def purses_changed(self) -> None:
        """There are others, or they are of other budgets: until now the former ones held."""
        self._payers.clear()

    def permits_of(self, gateway: str) -> list[ReservationKey]:
        """The calls of a gateway that run."""
        adopted = [permit for permit in self.adopted if permit[0] == gateway]
        return [*((gateway, number) for number in self.permits.get(gateway, {})), *adopted]


class BudgetHome:
    """Decides for all gateways whether there is money for a call. `wall`: unix seconds."""

    def __init__(
        self,
        budgets_of: Callable[[str], BudgetsRecord | None],
        wall: Callable[[], float],
        billed_of: Callable[[str], BilledBudgets | None] = lambda _: None,
    ) -> None:
        self._budgets_of = budgets_of
        self._wall = wall
        self.billed_of = billed_of
        """What the ledger has of a tenant's budgets, as it was last heard."""
        self._tenants: dict[str, TenantPurses] = {}
        self._handed: dict[str, HandedBudgets] = {}
        """Of tenants whose record was not read since."""
        self.wake: Callable[[], None] = lambda: None
        """Called when a record is to be read or written at once."""

    # -- tenants ---------------------------------------------------------------------------------------------------

    def begin(self, shard: int, handed: Iterable[HandedBudgets] = ()) -> None:
        """Be the home of a shard: what was known of its tenants is void; `handed`: by a home that ended in order."""
        for known in (self._tenants, self._handed):
            for tenant in [tenant for tenant in known if shard_of(tenant) == shard]:
                del known[tenant]
        self._handed.update((one.tenant, one) for one in handed)

    def end(self, shard: int) -> tuple[HandedBudgets, ...]:
        """Be the home of a shard no more; returns what the next one has to know of its tenants."""
        at, found, count = self._wall(), list[HandedBudgets](), 0
        for tenant, known in self._tenants.items():
            is_known = known.is_claimed and known.revision is not None and known.writing is None and known.purses
            if shard_of(tenant) == shard and is_known and count + len(known.purses) <= HANDED_AT_MOST:
                count += len(known.purses)
                tranches = {name: purse.handed_over(at) for name, purse in known.purses.items()}
                found.append(HandedBudgets(tenant, known.revision or 0, tranches))
        self.begin(shard)
        return tuple(found)

    def follow(self, tenant: str) -> None:
        """Follow the budgets of a tenant, though nobody calls."""
        self._known(tenant)

    def due(self) -> list[str]:
        """The tenants whose records are to be read or written now, those first for whom a call waits."""
        return sorted(self._tenants, key=lambda tenant: not self._tenants[tenant].is_urgent)

    def urgent(self) -> list[str]:
        return [tenant for tenant, known in self._tenants.items() if known.is_urgent]

    # -- calls -----------------------------------------------------------------------------------------------------

    def ask(self, tenant: str, permit: ReservationKey, ask: LimitAsk) -> PurseVerdict | PurseStanding:
        """Reserve the money that another gateway asks for, under its permit; as `reserve`."""
        return self.reserve(tenant, permit[0], money_of(ask, permit[1]))

    def reserve(self, tenant: str, gateway: str, money: CallMoney) -> PurseVerdict | PurseStanding:
        """Reserve a call's money in all budgets that it falls under, or in none; a standing: it is refused."""
        known = self._tenants.get(tenant) or self._known(tenant)
        if not known.is_claimed:
            return self._hurry(known)
        at = self._wall()
        if self._budgets_of(tenant) is not known.record or not known.began_at <= at < known.changes_at:
            self._follow(known, at)
        purses = known.purses_of(money.function, money.key)
        waits = False
        for purse in purses:
            amount = money.worst if purse.is_hard else _amount(purse, money)
            verdict = purse.judge(amount)
            if verdict is EXHAUSTED:
                return purse.standing(amount, at)
            waits = waits or verdict is WAITS
        if waits:
            return self._wait(known, purses, (gateway, money.number), money, at)
        running = known.permits.get(gateway)
        if running is None:
            running = known.permits[gateway] = {}
        if money.number not in running:
            running[money.number] = money
            money.since, money.purses = at, purses
            for purse in purses:
                purse.reserve(money, money.worst if purse.is_hard else _amount(purse, money))
        return FITS

    def _wait(
        self, known: TenantPurses, purses: tuple[Purse, ...], permit: ReservationKey, money: CallMoney, at: float
    ) -> PurseVerdict:
        """Have more taken where too little is, unless the ledger has to be heard before."""
        is_urgent = False
        for purse in purses:
            amount = _amount(purse, money)
            if purse.judge(amount) is WAITS and not purse.is_waiting_for_ledger:
                purse.wait_for(permit, amount, at)
                is_urgent = True
        return self._hurry(known) if is_urgent else WAITS

    def ended(self, tenant: str, permit: ReservationKey, spent: int | None) -> bool:
        """A call has ended, and cost `spent`; None: nobody knows. Whether it had money."""
        gateway, number = permit
        return self.settle(tenant, gateway, number, spent)

    def settle(self, tenant: str, gateway: str, number: int, spent: int | None) -> bool:
        """The same, of the permit of a gateway with this number."""
        known = self._tenants.get(tenant)
        if known is None:
            return False
        running = known.permits.get(gateway)
        money = running.pop(number, None) if running is not None else None
        if money is None:  # what it cost is within what was taken
            return bool(known.adopted) and known.adopted.pop((gateway, number), None) is not None
        at = self._wall()
        for purse in money.purses:
            purse.settle(money, spent, at)
        return True

    # -- what runs -------------------------------------------------------------------------------------------------

    def take_over(self, tenant: str, permit: ReservationKey, ask: LimitAsk) -> None:
        """A call runs that a former home let in."""
        known, (gateway, number) = self._known(tenant), permit
        if number in known.permits.get(gateway, {}):
            return
        if known.revision is None:
            known.adopted[permit] = money_of(ask, number)
        else:
            self._adopt(known, gateway, money_of(ask, number))

    def release(self, shard: int, gateway: str, upto: int, reported: Collection[int]) -> None:
        """A gateway has told all that runs there: what it did not name has ended, at a price that nobody knows."""
        for tenant, known in self._tenants.items():
            if shard_of(tenant) == shard:
                for permit in known.permits_of(gateway):
                    if permit[1] <= upto and permit[1] not in reported:
                        self.ended(tenant, permit, None)

    def gateway_gone(self, gateway: str) -> None:
        """A gateway is gone, and its calls with it."""
        for tenant, known in self._tenants.items():
            for permit in known.permits_of(gateway):
                self.ended(tenant, permit, None)
            known.permits.pop(gateway, None)

    def _adopt(self, known: TenantPurses, gateway: str, money: CallMoney) -> None:
        money.since, money.seconds = LONG_SINCE, 1.0  # it may have cost all of it
        money.purses = purses = known.purses_of(money.function, money.key)
        for purse in purses:
            purse.take_over(money, _amount(purse, money))
        known.permits.setdefault(gateway, {})[money.number] = money

    # -- records ---------------------------------------------------------------------------------------------------

    def needs_reading(self, tenant: str) -> bool:
        known = self._tenants.get(tenant)
        return known is not None and known.revision is None

    def loaded(self, tenant: str, record: HomeTranches | None, revision: int) -> None:
        """The durable record was read: at first, and where somebody else may have written it."""
        known = self._tenants.get(tenant)
        if known is None:
            return
        at, found = self._wall(), dict(record.tranches) if record is not None else {}
        is_own = known.attempted is not None and found in (known.stored, known.attempted)
        known.revision, known.stored, known.attempted, known.is_claimed = revision, found, None, False
        known.reached = record.reached if record is not None else ()
        handed = self._handed.pop(tenant, None)
        known.begun_with = found if handed is None or handed.revision != revision else found | handed.tranches
        for name, purse in known.purses.items():
            purse.load(known.begun_with.get(name), at, is_own=is_own)
        self._follow(known, at)
        known.begun_with = found
        for (gateway, _), money in known.adopted.items():
            self._adopt(known, gateway, money)
        known.adopted.clear()

    def on_billed(self, billed: BilledBudgets) -> None:
        """The ledger has told what it has of a tenant's budgets."""
        known = self._tenants.get(billed.tenant)
        if known is None or known.revision is None:
            return
        at = self._wall()
        for name, purse in known.purses.items():
            if (spending := billed.budgets.get(name)) is not None:
                purse.on_billed(spending, billed.upto, at)

    def unwritten(self, tenant: str) -> tuple[HomeTranches, int] | None:
        """What to write over which revision; None: nothing has changed, or it has to be read before."""
        known = self._tenants.get(tenant)
        if known is None or known.revision is None:
            return None
        at = self._wall()
        self._follow(known, at)
        known.is_urgent = False
        tranches = {name: purse.next_tranche(at) for name, purse in known.purses.items()}
        if tranches == known.stored and (known.is_claimed or not tranches):
            if not tranches:
                del self._tenants[tenant]  # its budgets are removed
            return None
        reached = with_reached(known.reached, tranches)
        known.writing = HomeTranches(tenant=tenant, tranches=tranches, reached=reached)
        return known.writing, known.revision

    def written(self, record: HomeTranches, revision: int) -> None:
        """The record has what `unwritten` wanted."""
        known = self._tenants.get(record.tenant)
        if known is None or known.writing is not record:  # it was written before this gateway became the home again
            return
        known.writing = None
        known.revision, known.stored, known.is_claimed = revision, record.tranches, True
        known.begun_with = known.stored
        known.reached = record.reached
        for name, tranche in record.tranches.items():
            if (purse := known.purses.get(name)) is not None:
                purse.written(tranche)

    def forget(self, record: HomeTranches, *, is_refused: bool = False) -> None:
        """Whether this was written is not known, or somebody else has written: the record has to be read again."""
        known = self._tenants.get(record.tenant)
        if known is not None and known.writing is record:
            known.writing, known.revision, known.is_claimed = None, None, False
            known.attempted = {} if is_refused else record.tranches

    # -- inside ----------------------------------------------------------------------------------------------------

    def purses(self, tenant: str) -> dict[str, Purse]:
        known = self._tenants.get(tenant)
        return known.purses if known is not None else {}

    def _known(self, tenant: str) -> TenantPurses:
        known = self._tenants.get(tenant)
        if known is None:
            known = self._tenants[tenant] = TenantPurses(tenant)
            self._hurry(known)
        return known

    def _hurry(self, known: TenantPurses) -> PurseVerdict:
        if not known.is_urgent:
            known.is_urgent = True
            self.wake()
        return WAITS

    def _follow(self, known: TenantPurses, at: float) -> None:
        """Take over what is set now, and let periods end."""
        record = self._budgets_of(known.tenant)
        if record is known.record and known.began_at <= at < known.changes_at:
            return
        known.record = record
        budgets = {one.id: one for one in record.budgets} if record is not None else {}
        for gone in known.purses.keys() - budgets.keys():
            del known.purses[gone]
        for name, budget in budgets.items():
            if (purse := known.purses.get(name)) is not None:
                purse.follow(budget, at)
            else:
                purse = known.purses[name] = Purse(budget, at)
                purse.load(known.begun_with.get(name), at)
                _adopt_running(known, purse)
        known.purses_changed()
        known.changes_at = min((purse.span.ends for purse in known.purses.values()), default=NEVER_ENDS)
        known.began_at = max((purse.span.begins for purse in known.purses.values()), default=0.0)
        if (billed := self.billed_of(known.tenant)) is not None:
            self.on_billed(billed)


def falls_under(budget: Budget, function: str, key: str) -> bool:
    """Whether a call counts under a budget."""
    return budget.function in ("", function) and budget.key in ("", key)


def _adopt_running(known: TenantPurses, purse: Purse) -> None:
    """What runs counts under a budget that is new."""
    for running in known.permits.values():
        for money in running.values():
            if falls_under(purse.budget, money.function, money.key):
                purse.reserve(money, _amount(purse, money))
                money.purses = (*money.purses, purse)


def _amount(purse: Purse, money: CallMoney) -> int:
    return money.worst if purse.is_hard else min(money.worst, money.likely)


def shortage_of(standing: PurseStanding) -> BudgetShortage:
    """What a refused call is told, as gateways tell each other."""
    budget, span = standing.budget, standing.span
    return BudgetShortage(
        budget=budget.id,
        amount=budget.amount,
        spent=standing.spent,
        reserved=standing.reserved,
        left=standing.left,
        asked=standing.asked,
        function=budget.function,
        key=budget.key,
        period=budget.period.value,
        resets_at=0.0 if span.ends == NEVER_ENDS else span.ends,
    )
