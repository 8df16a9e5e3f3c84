"""The duty that tells homes what the ledger has of their tenants' budgets, each second."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections import deque

import msgspec
import structlog
from sqlalchemy.exc import SQLAlchemyError

from pilotlight_core.bus import Bus, BusError, KvEntry, Lease
from pilotlight_core.model.money.budgets import BilledBudgets, BilledSpending, HomeTranches
from pilotlight_core.model.subjects import BUDGET_BUCKET, USAGE_STREAM
from pilotlight_gateway.duties.budget_sums import BudgetSums
from pilotlight_gateway.leased import while_leased
from pilotlight_gateway.ledger.ledger_store import Ledger

EVERY_S = 1.0
SOON_S = 0.1
"""Seconds between two looks at least."""
REPEATED_S = 10.0
"""What has not changed is told again so often: with it homes hear how much of the stream is folded."""
SAMPLES = 600
HOME, LEDGER = "home.", "ledger."

log = structlog.get_logger(__name__)
_decoder = msgspec.msgpack.Decoder(HomeTranches)


class BudgetDuty:
    """Reads the ledger's sums while it holds the lease."""

    def __init__(self, bus: Bus, ledger: Ledger, *, holder: str) -> None:
        self._bus = bus
        self._kv = bus.kv(BUDGET_BUCKET)
        self._sums = BudgetSums(ledger)
        self._holder = holder
        self._homes: dict[str, HomeTranches] = {}
        self._news = asyncio.Event()
        """A period has begun or a budget is new: its home waits for what the ledger has of it."""
        self._seen: dict[str, float] = {}
        """When a home was first seen with its present periods, in unix seconds."""
        self._told: dict[str, BilledBudgets] = {}
        self._ends: deque[tuple[float, int]] = deque(maxlen=SAMPLES)
        """(unix second, last message of the stream of usage then)."""
        self._upto = 0.0

    async def run(self) -> None:
        """Run until cancelled."""
        lease = self._bus.lease("duty.budgets", self._holder)
        await while_leased(self._bus, lease, self._report_all, retried=(SQLAlchemyError, BusError))

    async def _report_all(self, lease: Lease) -> None:
        mirror = self._bus.mirror(BUDGET_BUCKET, HOME)
        mirror.on_change.append(self._changed)
        self._homes.clear()
        self._told.clear()
        self._seen.clear()
        async with mirror:
            while lease.valid(time.monotonic()):
                self._news.clear()
                began = time.monotonic()
                if self._homes:
                    await self._report(time.time())
                pause_s = max(0.0, began + EVERY_S - time.monotonic())
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(pause_s):
                        await asyncio.sleep(min(pause_s, SOON_S))
                        await self._news.wait()

    def _changed(self, key: str, entry: KvEntry | None) -> None:
        tenant = key.removeprefix(HOME)
        had = self._homes.pop(tenant, None)
        if entry is not None:
            with contextlib.suppress(msgspec.DecodeError):  # of a later release, whose duties tell it
                self._homes[tenant] = _decoder.decode(entry.value)
        if _periods(self._homes.get(tenant)) - _periods(had):
            self._seen[tenant] = time.time()
            self._news.set()
        if tenant not in self._homes:
            self._seen.pop(tenant, None)

    async def _report(self, at: float) -> None:
        self._ends.append((at, await self._bus.jetstream.last_sequence(USAGE_STREAM)))
        homes = list(self._homes.values())
        seq, billed = await asyncio.to_thread(self._sums.read, homes, USAGE_STREAM, at)
        while self._ends and self._ends[0][1] <= seq:
            self._upto = self._ends.popleft()[0]
        for tenant, budgets in billed.items():
            if budgets and self._is_news(tenant, budgets):
                told = BilledBudgets(tenant=tenant, upto=self._upto, budgets=budgets)
                await self._kv.put(f"{LEDGER}{tenant}", msgspec.msgpack.encode(told))
                self._told[tenant] = told
        for gone in self._told.keys() - billed.keys():
            del self._told[gone]

    def _is_news(self, tenant: str, budgets: dict[str, BilledSpending]) -> bool:
        told = self._told.get(tenant)
        is_awaited = told is not None and told.upto < self._seen.get(tenant, 0.0) <= self._upto
        return told is None or told.budgets != budgets or self._upto - told.upto >= REPEATED_S or is_awaited


def _periods(home: HomeTranches | None) -> set[tuple[str, int]]:
    """The budgets of a home, each with the beginning of its period."""
    return {(name, one.begins) for name, one in home.tranches.items()} if home is not None else set()
