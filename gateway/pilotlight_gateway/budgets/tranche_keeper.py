"""Reads and writes the durable records of budgets, by compare-and-set: a home that was succeeded takes no more."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager

import msgspec
import structlog

from pilotlight_core.bus import Bus, BusError, KvEntry, WrongRevision
from pilotlight_core.model.money.budgets import BilledBudgets, HomeTranches
from pilotlight_core.model.subjects import BUDGET_BUCKET
from pilotlight_gateway.budgets.budget_home import BudgetHome
from pilotlight_gateway.budgets.prepaid_budgets import PrepaidBudgets

EVERY_S = 1.0
LEFT_EVERY_S = 20.0
"""Seconds between two looks at the records of tenants whose budgets were removed while nobody was their home."""
"""Seconds between two looks at all tenants: what is spent is noted so often."""
AT_ONCE = 64
"""Records that are read or written at a time."""
HOME, LEDGER = "home.", "ledger."

log = structlog.get_logger(__name__)
_tranches = msgspec.msgpack.Decoder(HomeTranches)
_billed = msgspec.msgpack.Decoder(BilledBudgets)


class TrancheKeeper:
    """Keeps the records of one home while its block lasts."""

    def __init__(
        self,
        bus: Bus,
        home: BudgetHome,
        tenants: Callable[[], Iterable[str]],
        is_home: Callable[[str], bool] = lambda _: True,
        prepaid: PrepaidBudgets | None = None,
    ) -> None:
        """`tenants`: those with budgets whose home this gateway is now; `is_home`: whether it is a tenant's."""
        self._prepaid = prepaid
        self._is_home = is_home
        self._bus = bus
        self._kv = bus.kv(BUDGET_BUCKET)
        self._home = home
        self._tenants = tenants
        self._ledger = bus.mirror(BUDGET_BUCKET, LEDGER)
        self._due = asyncio.Event()
        home.wake = self._due.set
        home.billed_of = self.billed

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        self._ledger.on_change.append(self._on_billed)
        async with self._ledger:
            keeping = [self._bus.spawn(self._keep())]
            if self._prepaid is not None:
                keeping.append(self._bus.spawn(self._prepaid.keep(self._tenants)))
            try:
                yield
            finally:
                for each in keeping:
                    await self._bus.end(each)

    def billed(self, tenant: str) -> BilledBudgets | None:
        """What the ledger has of a tenant's budgets."""
        entry = self._ledger.get(f"{LEDGER}{tenant}")
        return _read_billed(entry) if entry is not None else None

    async def read(self, tenant: str) -> HomeTranches | None:
        """What a tenant's home has noted, wherever it is.

        Raises:
            BusError.
        """
        entry = await self._kv.get(f"{HOME}{tenant}")
        return _read_tranches(entry) if entry is not None else None

    async def read_all(self) -> list[HomeTranches]:
        """What all homes have noted of all tenants.

        Raises:
            BusError.
        """
        found = map(_read_tranches, (await self._kv.entries(HOME)).values())
        return [record for record in found if record is not None]

    def _on_billed(self, _key: str, entry: KvEntry | None) -> None:
        if entry is not None and (billed := _read_billed(entry)) is not None:
            self._home.on_billed(billed)

    async def follow_left(self) -> None:
        """Follow also the tenants that have a record and no budgets any more: it is to say so."""
        try:
            keys = await self._kv.keys(HOME)
        except BusError as error:
            log.warning("the records of budgets are not listed", error=str(error))
            return
        for tenant in (key.removeprefix(HOME) for key in keys):
            if self._is_home(tenant):
                self._home.follow(tenant)

    async def _keep(self) -> None:
        looked_at = left_at = float("-inf")
        while True:
            self._due.clear()
            at = self._bus.loop.time()
            if at - looked_at >= EVERY_S:
                looked_at = at
                for tenant in self._tenants():
                    self._home.follow(tenant)
                await self._keep_each(self._home.due())
                if at - left_at >= LEFT_EVERY_S:
                    left_at = at
                    await self.follow_left()
            else:
                await self._keep_each(self._home.urgent())
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(max(0.0, looked_at + EVERY_S - self._bus.loop.time())):
                    await self._due.wait()

    async def _keep_each(self, tenants: list[str]) -> None:
        for first in range(0, len(tenants), AT_ONCE):
            await asyncio.gather(*map(self.keep, tenants[first : first + AT_ONCE]))

    async def keep(self, tenant: str) -> None:
        """Read the record of a tenant if it is not known, and write what has changed; not of another home's."""
        if not self._is_home(tenant):
            return
        try:
            if self._home.needs_reading(tenant):
                entry = await self._kv.read(f"{HOME}{tenant}")
                record = _tranches.decode(entry.data) if entry is not None and not entry.gone else None
                self._home.loaded(tenant, record, entry.seq if entry is not None else 0)
            if self._is_home(tenant) and (wanted := self._home.unwritten(tenant)) is not None:
                await self._write(*wanted)
        except (BusError, msgspec.DecodeError) as error:
            log.warning("what is taken of a tenant's budgets is not kept", tenant=tenant, error=str(error))
        except Exception:  # one tenant's trouble is not that of the others
            log.exception("what is taken of a tenant's budgets is not kept", tenant=tenant)

    async def _write(self, record: HomeTranches, revision: int) -> None:
        try:
            new = await self._kv.update(f"{HOME}{record.tenant}", msgspec.msgpack.encode(record), revision)
        except WrongRevision:
            self._home.forget(record, is_refused=True)
        except BusError:
            self._home.forget(record)
            raise
        else:
            self._home.written(record, new)


def _read_billed(entry: KvEntry) -> BilledBudgets | None:
    with contextlib.suppress(msgspec.DecodeError):  # of a later release: what is known holds
        return _billed.decode(entry.value)
    return None


def _read_tranches(entry: KvEntry) -> HomeTranches | None:
    with contextlib.suppress(msgspec.DecodeError):
        return _tranches.decode(entry.value)
    return None
