"""Which shards this gateway is the home of, and who is the home of the others.

One lease per gateway, and one record per shard that names a lease: so 64 shards cost no renewals, and a gateway that
dies loses all of them at once. A record is written by compare-and-set, its revision is the home's epoch, and agents
refuse what an older epoch granted. `shard_plan` decides; here is what it takes to see, to write, and to tell.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Protocol

import msgspec
import structlog

from pilotlight_core.bus import Bus, BusError, WrongRevision
from pilotlight_core.bus.kv import KvEntry
from pilotlight_core.bus.lease import read_holder
from pilotlight_core.model.subjects import LEASE_BUCKET, SHARD_BUCKET, SHARDS
from pilotlight_gateway.cluster.identity_guard import IdentityGuard, NameTaken
from pilotlight_gateway.cluster.shard_plan import (
    BeginShard,
    GatewayMember,
    LeaveShard,
    MoveShard,
    OwnedShard,
    ShardRecord,
    ShardStep,
    TakeShard,
    steps,
)

LOOK_EVERY_S = 0.25
MOVE_AFTER_S = 2.0
"""How long the gateways and a shard's home must have been the same before it is handed over: a restart moves nothing,
and what a gateway hands over as it leaves is not handed back to it."""
MOVES_AT_ONCE = 8
WRITES_AT_ONCE = 16
WRITE_S = 2.0
LEAVE_S = 3.0
"""For handing everything over at the end."""
COMPLAIN_EVERY_S = 10.0
"""Between two tracebacks of the same."""
PREFIX = "gateway."
EPOCHS_KNOWN = 10_000
STATE_BYTES = 384 * 1024
"""Of what a lodger hands over; beyond it nothing is, as after a death: origins enqueue anew."""

NOBODY = GatewayMember("", "", 0)
"""Whose shards may be taken."""

log = structlog.get_logger(__name__)


class ShardParticipant(Protocol):
    """What lives in a shard, and moves with it. None of it waits."""

    def begin(self, shard: int, epoch: int, state: bytes) -> None:
        """Act as the home of a shard from now on; `state` is what its former home handed over, b"" after a death."""

    def end(self, shard: int) -> bytes:
        """Act as its home no more; what the next one should know."""


class CallerParticipant(ShardParticipant, Protocol):
    """The lodger that also has callers: it hears of other homes, and of gateways that are gone."""

    def homes_changed(self, shards: frozenset[int]) -> None:
        """Other gateways are their homes now."""

    def gateway_gone(self, instance: str) -> None:
        """A gateway is gone, and its callers with it."""


class ShardOwner(msgspec.Struct, frozen=True):
    """The home of a shard."""

    gateway: str
    """The process, as subjects name it."""
    epoch: int


class Shards:
    """This gateway among all: `mine` and `owner` answer at once, from memory."""

    def __init__(self, bus: Bus, host: CallerParticipant, *, region: str, name: str, instance: str) -> None:
        self._bus = bus
        self._host = host
        self.lodgers: dict[str, ShardParticipant] = {"calls": host}
        """By the name under which their part is handed over; to be complete before it runs."""
        namesakes = IdentityGuard(bus, region=region, name=name)
        self._identity = bus.lease(f"{PREFIX}{name}", name, data=instance.encode(), may_succeed=namesakes.is_gone)
        self._kv = bus.kv(SHARD_BUCKET)
        self._leases = bus.mirror(LEASE_BUCKET, PREFIX)
        self._records = bus.mirror(SHARD_BUCKET)
        self._name = name
        self._instance = instance
        self._acting: dict[int, int] = {}
        self._kept: dict[int, tuple[int, dict[str, bytes]]] = {}
        """What was taken out of a shard whose move may have failed: the record's revision, and the state."""
        self._owned: dict[int, OwnedShard] = {}
        self._since = [float("-inf")] * SHARDS
        """When each shard got its present home."""
        self._owners: list[ShardOwner | None] = [None] * SHARDS
        self._members: tuple[GatewayMember, ...] = ()
        self._members_since = float("-inf")
        self._instances: dict[int, str] = {}
        """Which process has, or had, a lease of an epoch: a call keeps the one under which it came."""
        self.newest = 0
        """The highest epoch that any gateway has had, as far as was seen."""
        self._complained: dict[tuple[str, str], float] = {}
        """(what, lodger) -> when it was told with its traceback."""
        self.move_after_s = MOVE_AFTER_S
        """As `MOVE_AFTER_S`, for where less happens."""
        self._leaving = False
        self._bell = asyncio.Event()
        self.settled = asyncio.Event()
        """Set once every shard has had a living home."""
        self.superseded: asyncio.Future[NameTaken] = asyncio.get_running_loop().create_future()
        """Done when another process has our name: this one is the home of nothing any more, and should end."""

    @property
    def epoch(self) -> int:
        """Of this gateway's own lease: the calls that it takes carry it; 0 before there is one."""
        return self._identity.epoch

    def mine(self, shard: int, at: float) -> int | None:
        """The epoch under which this gateway may act as the shard's home at `at`; None if it may not."""
        return self._acting.get(shard) if self._identity.valid(at) else None

    def owner(self, shard: int) -> ShardOwner | None:
        """Who is the shard's home, as last heard; None while nobody is."""
        return self._owners[shard]

    def home_under(self, epoch: int) -> tuple[int, str] | None:
        """The shard whose home acts under `epoch`, and that home's process; None: nobody does now."""
        owners = ((shard, self._owners[shard]) for shard in range(SHARDS))
        return next(((shard, one.gateway) for shard, one in owners if one is not None and one.epoch == epoch), None)

    def process_of(self, epoch: int) -> str | None:
        """The living gateway whose calls carry `epoch`; None if it is gone."""
        instance = self._instances.get(epoch)
        return instance if any(member.instance == instance for member in self._members) else None

    def others(self) -> list[str]:
        """The other gateways that live."""
        return [member.instance for member in self._members if member.instance != self._instance]

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Take part until the block ends; then hand over what is ours.

        Raises:
            NameTaken: another living gateway has our name.
        """
        async with self._leases, self._records:
            self._leases.on_change.append(self._gateway_changed)
            self._records.on_change.append(self._record_changed)
            for key, entry in self._records.items():
                self._record_changed(key, entry)
            await self._identity.acquire()
            async with asyncio.TaskGroup() as group:
                task = group.create_task(self._run())
                try:
                    yield
                finally:
                    task.cancel()
            await self._leave()
            await self._identity.release()

    # -- what is seen --------------------------------------------------------------------------------------------

    def _gateway_changed(self, _key: str, _entry: KvEntry | None) -> None:
        self._bell.set()

    def _record_changed(self, key: str, entry: KvEntry | None) -> None:
        if entry is None:
            # The platform deletes none. Where somebody else did, the shard's home goes on: it alone acts by that
            # record, and whoever writes next finds that it is gone (`_read`), and takes the shard anew.
            return
        with contextlib.suppress(ValueError, msgspec.DecodeError):
            shard = int(key)
            known = self._owned.get(shard)
            if 0 <= shard < SHARDS and (known is None or known.revision < entry.revision):
                record = msgspec.msgpack.decode(entry.value, type=ShardRecord)
                self._owned[shard] = OwnedShard(record=record, revision=entry.revision)
                self._kept.pop(shard, None)  # what was kept is in this record, or too old for it
                self._since[shard] = time.monotonic()
                self._bell.set()

    def _look(self, at: float) -> None:
        """Take over what the mirrors know, and tell what has changed."""
        members = tuple(sorted(self._living(), key=lambda member: member.name))
        if members != self._members:
            gone = {m.instance for m in self._members} - {m.instance for m in members}
            self._members, self._members_since = members, at
            self.newest = max([self.newest, *(member.epoch for member in members)])
            self._instances |= {member.epoch: member.instance for member in members}
            while len(self._instances) > EPOCHS_KNOWN:
                del self._instances[min(self._instances)]
            log.info("gateways", names=[member.name for member in members])
            for instance in gone - {self._instance}:
                self._host.gateway_gone(instance)
        owners = [self._owner_now(shard) for shard in range(SHARDS)]
        changed = frozenset(s for s in range(SHARDS) if owners[s] is not None and owners[s] != self._owners[s])
        self._owners = owners
        if all(owner is not None for owner in owners):
            self.settled.set()
        if changed:
            self._host.homes_changed(changed)

    def _living(self) -> list[GatewayMember]:
        me, found = self._me(), []
        for key, entry in self._leases.items():
            name = key.removeprefix(PREFIX)
            if me is not None and name == self._name:
                continue  # what the mirror has of our own lease may still be a former process's
            try:
                holder = read_holder(entry.value, entry.revision)
            except msgspec.DecodeError:
                continue  # nobody that we could speak to
            instance = holder.data.decode(errors="replace")
            if instance != self._instance:
                found.append(GatewayMember(name, instance, holder.epoch))
        return [*found, me] if me is not None else found

    def _me(self) -> GatewayMember | None:
        # Our own lease knows better than a copy of what we wrote.
        valid = self._identity.valid(time.monotonic())
        return GatewayMember(self._name, self._instance, self._identity.epoch) if valid else None

    def _owner_now(self, shard: int) -> ShardOwner | None:
        owned = self._owned.get(shard)
        if owned is None or owned.record.home not in self._members:
            return None
        return ShardOwner(owned.record.home.instance, owned.revision)

    # -- what is done --------------------------------------------------------------------------------------------

    async def _run(self) -> None:
        while True:
            if self._identity.lost.is_set():
                for shard in list(self._acting):
                    self._stop_acting(shard)
                try:
                    await self._identity.acquire()
                except NameTaken as error:
                    # We were silent for so long that somebody was started in our place.
                    log.error("another gateway has this one's name", error=str(error))
                    self.superseded.set_result(error)
                    return
            try:
                await self._turn(time.monotonic())
            except Exception:
                log.exception("looking after the shards failed; it is tried again")
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(LOOK_EVERY_S):
                    await self._bell.wait()
            self._bell.clear()

    async def _turn(self, at: float) -> None:
        self._look(at)
        me = self._me()
        if me is None:
            return
        planned = steps(self._owned, self._members, me, self._acting, leaving=self._leaving)
        moves = [step for step in planned if isinstance(step, MoveShard) and self._calm(step.shard, at)]
        todo = [step for step in planned if not isinstance(step, MoveShard)]
        await self._perform(me, [*todo, *moves[: SHARDS if self._leaving else MOVES_AT_ONCE]])
        self._look(time.monotonic())

    def _calm(self, shard: int, at: float) -> bool:
        return self._leaving or at - max(self._members_since, self._since[shard]) >= self.move_after_s

    async def _perform(self, me: GatewayMember, todo: list[ShardStep]) -> None:
        room = asyncio.Semaphore(WRITES_AT_ONCE)

        async def bounded(step: TakeShard | MoveShard) -> None:
            async with room:
                await (self._take(me, step) if isinstance(step, TakeShard) else self._move(step))

        async with asyncio.TaskGroup() as group:
            for step in todo:
                match step:
                    case TakeShard() | MoveShard():
                        group.create_task(bounded(step))
                    case BeginShard(shard, owned):
                        self._act(shard, owned.revision, self._state_of(shard, owned))
                    case LeaveShard(shard):
                        self._stop_acting(shard)

    async def _take(self, me: GatewayMember, step: TakeShard) -> None:
        if (owned := self._owned.get(step.shard)) is not None and await self._lives(owned.record.home):
            return
        await self._write(step.shard, ShardRecord(home=me), step.revision)

    async def _move(self, step: MoveShard) -> None:
        # Where an earlier move was cut off, or what we were handed was not begun with, it goes on to the heir.
        acting = step.shard in self._acting
        state = self._stop_acting(step.shard) if acting else self._state_of(step.shard, step.owned)
        state = {name: part for name, part in state.items() if len(part) <= STATE_BYTES}
        self._kept[step.shard] = (step.owned.revision, state)
        await self._write(step.shard, ShardRecord(home=step.heir, state=state), step.owned.revision)
        # If that failed, the record still names us: the next turn begins with what was kept.

    async def _write(self, shard: int, record: ShardRecord, revision: int) -> None:
        value = msgspec.msgpack.encode(record)
        with contextlib.suppress(BusError):
            try:
                written = await self._kv.update(str(shard), value, revision, timeout=WRITE_S)
            except WrongRevision:
                await self._read(shard)
                return
            self._record_changed(str(shard), KvEntry(value, written))
            if record.home == self._me():
                self._act(shard, written, record.state)

    async def _read(self, shard: int) -> None:
        """The mirror is behind, or the record is nobody's: cannot be read, or was deleted. Then it is taken over."""
        found = await self._kv.read(str(shard))
        if found is None:
            self._owned.pop(shard, None)
            return
        self._record_changed(str(shard), KvEntry(found.data, found.seq))
        if found.gone or (shard in self._owned and self._owned[shard].revision < found.seq) or shard not in self._owned:
            self._owned[shard] = OwnedShard(record=ShardRecord(home=NOBODY), revision=found.seq)

    def _state_of(self, shard: int, owned: OwnedShard) -> dict[str, bytes]:
        """What to begin with. A record's state is what its shard was when the record was written: used once."""
        revision, state = self._kept.pop(shard, (0, {}))
        return state if revision == owned.revision else owned.record.state

    async def _lives(self, home: GatewayMember) -> bool:
        """Ask the server itself before somebody is taken for dead."""
        try:
            entry = await self._leases.fetch(f"{PREFIX}{home.name}")
        except BusError:
            return True
        if entry is None:
            return False
        try:
            holder = read_holder(entry.value, entry.revision)
        except msgspec.DecodeError:
            return False  # whatever stands there, it is not what that home wrote
        return (holder.data.decode(errors="replace"), holder.epoch) == (home.instance, home.epoch)

    def _act(self, shard: int, epoch: int, state: dict[str, bytes]) -> None:
        self._acting[shard] = epoch
        for name, lodger in self.lodgers.items():
            try:
                lodger.begin(shard, epoch, state.get(name, b""))
            except Exception:  # noqa: BLE001 - a lodger may be wrong in any way, and ends no gateway
                self._complain("what was handed over cannot be used", shard, name)
                lodger.begin(shard, epoch, b"")

    def _stop_acting(self, shard: int) -> dict[str, bytes]:
        self._acting.pop(shard, None)
        state = {}
        for name, lodger in self.lodgers.items():
            try:
                state[name] = lodger.end(shard)
            except Exception:  # noqa: BLE001 - a lodger may be wrong in any way, and ends no gateway
                self._complain("nothing is handed over", shard, name)
        return state

    def _complain(self, what: str, shard: int, lodger: str) -> None:
        # What goes wrong with one shard goes wrong with 64 at once: one traceback tells it, and while 64 were written
        # nothing else would be done, not even our lease renewed.
        now = time.monotonic()
        first = now - self._complained.get((what, lodger), float("-inf")) >= COMPLAIN_EVERY_S
        if first:
            self._complained[what, lodger] = now
        log.error(what, shard=shard, lodger=lodger, exc_info=first)

    async def _leave(self) -> None:
        self._leaving = True
        with contextlib.suppress(TimeoutError, BusError):
            async with asyncio.timeout(LEAVE_S):
                if self._identity.valid(time.monotonic()) and self.others():
                    await self._turn(time.monotonic())
        for shard in list(self._acting):
            self._stop_acting(shard)
