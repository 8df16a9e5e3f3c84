"""What providers are asked beside the keeper's ticks: for machines, and that they end.

It is bounded, each is asked at most once at a time, and whatever comes of it is in the records, or is asked again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from typing import Any, Protocol

import structlog
from msgspec.structs import replace

from pilotlight_autoscaler.pools.launch_book import Deposed, LaunchBook
from pilotlight_autoscaler.pools.machine_sights import MachineSights
from pilotlight_autoscaler.pools.node_pool import LaunchOrder, LaunchRefused, NoCapacity, PoolError, PoolMachine
from pilotlight_autoscaler.pools.open_pools import OpenPools
from pilotlight_autoscaler.pools.pool_counts import ALL, PoolCounts
from pilotlight_core.bus import BusError
from pilotlight_core.model.api.join_text import JoinText
from pilotlight_core.model.api.pools.pool_terms import PoolProvider
from pilotlight_core.model.records.pools import LaunchRecord, PoolRecord
from pilotlight_core.model.versions.public_keys import public_keys_of

MISSING_S = 180.0
"""So long a provider is not asked again for a machine that it had none of."""
REFUSED_S = 600.0
"""The same of one that it will not launch: someone has to change the pool."""
ASKED_AT_ONCE = 32
"""Requests under way."""
ATTEMPT_S = 120.0
"""No request takes longer."""

log = structlog.get_logger(__name__)


class LeaseView(Protocol):
    """Whether this process leads, and under which epoch."""

    epoch: int

    def valid(self, at: float, /) -> bool: ...


class MachineRequests:
    """`tasks` are those of the keeper, and so are `sights`. `on_ended` hears of pools whose list is to be read anew."""

    def __init__(
        self,
        book: LaunchBook,
        lease: LeaseView,
        pools: OpenPools,
        counts: PoolCounts,
        *,
        region: str,
        on_ended: Callable[[str], None],
        clock: Callable[[], float],
        wall: Callable[[], float],
    ) -> None:
        self.tasks: asyncio.TaskGroup
        self.sights = MachineSights()
        self._book = book
        self._lease = lease
        self._pools = pools
        self.counts = counts
        self._region = region
        self._on_ended = on_ended
        self._clock = clock
        self._wall = wall
        self._orders: dict[str, LaunchOrder] = {}
        """By launch."""
        self._missing: dict[str, dict[tuple[str, str], float]] = {}

    def missing(self, pool: str) -> Mapping[tuple[str, str], float]:
        """By type and zone: until when a pool's provider is not asked again."""
        return self._missing.get(pool, {})

    def forget(self, launch: str) -> None:
        """It is not asked for any more."""
        self._orders.pop(launch, None)

    def start_ending(self, pool: PoolRecord, machine: PoolMachine, at: float) -> None:
        """Ask for the end of a machine."""
        name = machine.launch or machine.provider_id
        self._ask(name, self._terminate(pool, machine, name), at)

    async def start_launch(self, launch: LaunchRecord, pool: PoolRecord, at: float) -> None:
        """Ask for a machine, in each attempt for the same."""
        if len(self.sights.asking) >= ASKED_AT_ONCE:
            return
        if (order := self._orders.get(launch.id)) is None:
            text = ""
            if pool.terms.provider is not PoolProvider.LOCAL:
                expires_at = launch.made_at + pool.terms.give_up_after_s
                secret = await self._book.issue_token(launch, self._region, at, expires_at)
                text = str(JoinText(secret, _trusted(pool)))
            types = launch.types or (launch.type,)
            order = self._orders[launch.id] = LaunchOrder(pool=pool, launch=launch, types=types, join_text=text)
        self._ask(launch.id, self._launch(pool, order), at)

    def _ask(self, name: str, asking: Coroutine[Any, Any, None], at: float) -> None:
        if name in self.sights.asking or len(self.sights.asking) >= ASKED_AT_ONCE:
            asking.close()
            return
        self.sights.asking.add(name)
        self.sights.asked(name, at)
        self.tasks.create_task(self._asking(name, asking))

    async def _asking(self, name: str, asking: Coroutine[Any, Any, None]) -> None:
        try:
            async with asyncio.timeout(ATTEMPT_S):
                await asking
        except (TimeoutError, BusError, Deposed) as error:
            log.warning("a provider is asked again", launch=name, error=repr(error))
        except Exception:  # an answer that nobody has foreseen
            self.counts.failed(ALL, "answer")
            log.exception("a provider is asked again", launch=name)
        finally:
            self.sights.asking.discard(name)

    async def _launch(self, record: PoolRecord, order: LaunchOrder) -> None:
        launch = order.launch
        if not self._lease.valid(self._clock()):
            return
        try:
            machine = await self._pools.pool(record).launch(order)
        except NoCapacity as error:
            self._note_missing(order, self._wall() + MISSING_S)
            self.counts.failed(launch.pool, "no_capacity")
            log.warning("a pool has no capacity", pool=launch.pool, type=launch.type, zone=launch.zone, why=str(error))
            await self._book.forget(launch)
        except LaunchRefused as error:
            self._note_missing(order, self._wall() + REFUSED_S)
            self.counts.failed(launch.pool, "refused")
            log.error("a machine is refused: change its pool", pool=launch.pool, type=launch.type, why=str(error))
            await self._book.forget(launch)
        except (PoolError, ValueError) as error:
            self.counts.failed(launch.pool, "failed")
            log.warning("a launch is tried again", pool=launch.pool, node=launch.node, error=str(error))
        else:
            self.counts.launched(launch.pool)
            await self._book.change(launch, lambda now: as_listed(now, machine, record))

    def _note_missing(self, order: LaunchOrder, ends_at: float) -> None:
        known = self._missing.setdefault(order.pool.name, {})
        known.update({(type_, order.launch.zone): ends_at for type_ in order.types})

    async def _terminate(self, record: PoolRecord, machine: PoolMachine, launch: str) -> None:
        if not self._lease.valid(self._clock()):
            return
        try:
            await self._pools.pool(record).terminate(machine)
        except (PoolError, ValueError) as error:
            self.counts.failed(record.name, "terminate")
            log.warning("a machine is ended again", pool=record.name, launch=launch, error=str(error))
        else:
            self._on_ended(record.name)


def _trusted(pool: PoolRecord) -> tuple[bytes, ...]:
    terms = pool.terms.ec2
    return tuple(public_keys_of(terms.trusted_pem.encode())) if terms is not None and terms.trusted_pem else ()


def as_listed(launch: LaunchRecord, machine: PoolMachine, pool: PoolRecord | None) -> LaunchRecord:
    """The record with what its provider says of the machine, which may be of another type that would do."""
    type_ = machine.type or launch.type
    digest = pool.terms.digest_of(type_) if pool is not None and type_ != launch.type else launch.digest
    return replace(launch, provider_id=machine.provider_id, zone=machine.zone or launch.zone, type=type_, digest=digest)
