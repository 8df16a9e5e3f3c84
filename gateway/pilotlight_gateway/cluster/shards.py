"""Takes shards for this gateway, and hands them over, as `shard_plan` decides.

Each gateway has one lease, and each shard one record that names a lease: so 64 shards cost no renewals, and a gateway
that dies loses all of them at once. A record is written by compare-and-set, its revision is the home's epoch, and
agents refuse the grants of an older epoch.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Protocol

import msgspec
import structlog

from pilotlight_core.bus import Bus, BusError, WrongRevision
from pilotlight_core.bus.kv import KvEntry
from pilotlight_core.bus.lease import Lease, read_holder
from pilotlight_core.model.subjects import LEASE_BUCKET, SHARD_BUCKET, SHARDS
from pilotlight_gateway.cluster.identity_guard import IdentityGuard, NameTaken
from pilotlight_gateway.cluster.shard_ownership import ShardOwner
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
from pilotlight_gateway.cluster.shard_table import ShardTable

LOOK_EVERY_S = 0.25
MOVE_AFTER_S = 2.0
"""How long gateways and home must be unchanged before a shard is handed over: a restart moves nothing, and a gateway
that leaves is not handed back what it hands over."""
MOVES_AT_ONCE = 8
WRITES_AT_ONCE = 16
WRITE_S = 2.0
LEAVE_S = 3.0
"""For handing all shards over at the end."""
COMPLAIN_EVERY_S = 10.0
"""Between two tracebacks of the same failure."""
PREFIX = "gateway."
STATE_BYTES = 384 * 1024
"""The largest state that a participant can hand over; a larger one is dropped."""

NOBODY = GatewayMember("", "", 0)
"""The home in records whose shards may be taken."""

log = structlog.get_logger(__name__)


class ShardParticipant(Protocol):
    """Keeps state per shard, which moves with the shard. Its methods do not block."""

    def begin(self, shard: int, epoch: int, state: bytes) -> None:
        """Become the home of a shard; `state` is from its former home, b"" after a death."""

    def end(self, shard: int) -> bytes:
        """Stop being its home; returns the state for the next one."""


class MembershipListener(Protocol):
    """Acts on changes of homes and gateways."""

    def homes_changed(self, shards: frozenset[int]) -> None:
        """Other gateways are the homes of these shards now."""

    def gateway_gone(self, instance: str) -> None:
        """A gateway is gone, with its callers."""


def gateway_lease(bus: Bus, *, region: str, name: str, instance: str) -> Lease:
    """The lease of the gateway `name`, for the process `instance`."""
    namesakes = IdentityGuard(bus, region=region, name=name)
    return bus.lease(f"{PREFIX}{name}", name, data=instance.encode(), may_succeed=namesakes.is_gone)


class Shards:
    """Takes shards and hands them over, and updates the `ShardTable`."""

    def __init__(
        self,
        bus: Bus,
        table: ShardTable,
        lease: Lease,
        *,
        name: str,
        callers: MembershipListener,
        participants: Mapping[str, ShardParticipant],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`participants`: by the name under which their state is handed over."""
        self._table = table
        self._identity = lease
        self._callers = callers
        self._participants = dict(participants)
        self._clock = clock
        self._kv = bus.kv(SHARD_BUCKET)
        self._leases = bus.mirror(LEASE_BUCKET, PREFIX)
        self._records = bus.mirror(SHARD_BUCKET)
        self._name = name
        self._instance = table.instance
        self._kept: dict[int, tuple[int, dict[str, bytes]]] = {}
        """Of shards whose move may have failed: the record's revision, and the state that was taken out."""
        self._owned: dict[int, OwnedShard] = {}
        self._holders: dict[str, tuple[int, GatewayMember | None]] = {}
        """Lease -> its revision, and who holds it; None: nobody can tell."""
        self._changes = 0
        """Of what a plan is made from, besides the gateways."""
        self._seen: object = None
        """What the table was refreshed from."""
        self._settled: object = None
        """What the last plan was made from, if there was nothing to do."""
        self._since = [float("-inf")] * SHARDS
        """The instant at which each shard got its present home."""
        self._members_since = float("-inf")
        self._complained: dict[tuple[str, str], float] = {}
        """(what, participant) -> the last log entry with a traceback."""
        self.move_after_s = MOVE_AFTER_S
        """`MOVE_AFTER_S`, which tests shorten."""
        self._leaving = False
        self._bell = asyncio.Event()
        self.superseded: asyncio.Future[NameTaken] = bus.loop.create_future()
        """Done when another process has our name: this one has lost all shards, and should end."""

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Take shards until the block ends; then hand them over.

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

    def _gateway_changed(self, key: str, entry: KvEntry | None) -> None:
        known = self._holders.pop(key, (0, None))[1]
        if entry is None or self._holder(key, entry) != known:  # else it is renewed, as each is every second
            self._bell.set()

    def _record_changed(self, key: str, entry: KvEntry | None) -> None:
        if entry is None:
            # An operator has deleted it. The shard's home goes on: it alone acts by that record, and the next write
            # finds that it is gone (`_read`), and takes the shard anew.
            return
        with contextlib.suppress(ValueError, msgspec.DecodeError):
            shard = int(key)
            known = self._owned.get(shard)
            if 0 <= shard < SHARDS and (known is None or known.revision < entry.revision):
                record = msgspec.msgpack.decode(entry.value, type=ShardRecord)
                self._owned[shard] = OwnedShard(record=record, revision=entry.revision)
                self._kept.pop(shard, None)  # what was kept is in this record, or too old for it
                self._changes += 1
                self._since[shard] = self._clock()
                self._bell.set()

    def _refresh(self, at: float) -> None:
        """Update the table from the mirrors, and report changes."""
        gone = self._table.see_members(self._living())
        if gone is not None:
            self._members_since = at
            log.info("gateways", names=[member.name for member in self._table.members])
            for instance in gone:
                self._callers.gateway_gone(instance)
        if (seen := (self._changes, self._table.members)) == self._seen:
            return
        self._seen = seen
        if changed := self._table.see_owners([self._owner_now(shard) for shard in range(SHARDS)]):
            self._callers.homes_changed(changed)

    def _living(self) -> list[GatewayMember]:
        me, found = self._me(), []
        for key, entry in self._leases.items():
            name = key.removeprefix(PREFIX)
            if me is not None and name == self._name:
                continue  # what the mirror has of our own lease may still be a former process's
            holder = self._holder(key, entry)
            if holder is not None and holder.instance != self._instance:
                found.append(holder)
        return [*found, me] if me is not None else found

    def _holder(self, key: str, entry: KvEntry) -> GatewayMember | None:
        """Who holds the lease `key`; None: the record is not readable."""
        revision, member = self._holders.get(key, (0, None))
        if revision != entry.revision:
            member = None
            with contextlib.suppress(msgspec.DecodeError):
                member = _member(key, entry)
            self._holders[key] = entry.revision, member
        return member

    def _me(self) -> GatewayMember | None:
        # Our own lease knows better than a copy of what we wrote.
        valid = self._identity.valid(self._clock())
        return GatewayMember(self._name, self._instance, self._identity.epoch) if valid else None

    def _owner_now(self, shard: int) -> ShardOwner | None:
        owned = self._owned.get(shard)
        if owned is None or owned.record.home not in self._table.members:
            return None
        return ShardOwner(owned.record.home.instance, owned.revision)

    # -- what is done --------------------------------------------------------------------------------------------

    async def _run(self) -> None:
        while True:
            if self._identity.lost.is_set():
                for shard in list(self._table.acting):
                    self._stop_acting(shard)
                try:
                    await self._identity.acquire()
                except NameTaken as error:
                    # We were silent for so long that another process took our name.
                    log.error("another gateway has this one's name", error=str(error))
                    self.superseded.set_result(error)
                    return
            try:
                await self._turn(self._clock())
            except Exception:
                log.exception("looking after the shards failed; it is tried again")
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(LOOK_EVERY_S):
                    await self._bell.wait()
            self._bell.clear()

    async def _turn(self, at: float) -> None:
        self._refresh(at)
        me = self._me()
        if me is None:
            return
        seen = (self._changes, self._table.members, me)
        if seen == self._settled:
            return
        planned = steps(self._owned, self._table.members, me, self._table.acting, leaving=self._leaving)
        moves = [step for step in planned if isinstance(step, MoveShard) and self._calm(step.shard, at)]
        todo = [step for step in planned if not isinstance(step, MoveShard)]
        self._settled = None if planned else seen
        await self._perform(me, [*todo, *moves[: SHARDS if self._leaving else MOVES_AT_ONCE]])
        self._refresh(self._clock())

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
        acting = step.shard in self._table.acting
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
        """Read a record that the mirror does not have. One that is unreadable or was deleted may be taken."""
        found = await self._kv.read(str(shard))
        if found is None:
            self._owned.pop(shard, None)
            self._changes += 1
            return
        self._record_changed(str(shard), KvEntry(found.data, found.seq))
        if found.gone or (shard in self._owned and self._owned[shard].revision < found.seq) or shard not in self._owned:
            self._owned[shard] = OwnedShard(record=ShardRecord(home=NOBODY), revision=found.seq)
            self._changes += 1

    def _state_of(self, shard: int, owned: OwnedShard) -> dict[str, bytes]:
        """The state to begin with. A record's state is as old as the record, so it is used once."""
        revision, state = self._kept.pop(shard, (0, {}))
        return state if revision == owned.revision else owned.record.state

    async def _lives(self, home: GatewayMember) -> bool:
        """Whether a home's lease holds, read from the server itself."""
        try:
            entry = await self._leases.fetch(f"{PREFIX}{home.name}")
        except BusError:
            return True
        if entry is None:
            return False
        try:
            return _member(f"{PREFIX}{home.name}", entry) == home
        except msgspec.DecodeError:
            return False  # whatever stands there, it is not what that home wrote

    def _act(self, shard: int, epoch: int, state: dict[str, bytes]) -> None:
        self._table.acting[shard] = epoch
        self._changes += 1
        for name, participant in self._participants.items():
            try:
                participant.begin(shard, epoch, state.get(name, b""))
            except Exception:  # noqa: BLE001 - a participant may be wrong in any way, and ends no gateway
                self._complain("what was handed over cannot be used", shard, name)
                participant.begin(shard, epoch, b"")

    def _stop_acting(self, shard: int) -> dict[str, bytes]:
        self._table.acting.pop(shard, None)
        self._changes += 1
        state = {}
        for name, participant in self._participants.items():
            try:
                state[name] = participant.end(shard)
            except Exception:  # noqa: BLE001 - a participant may be wrong in any way, and ends no gateway
                self._complain("nothing is handed over", shard, name)
        return state

    def _complain(self, what: str, shard: int, participant: str) -> None:
        # What goes wrong with one shard goes wrong with 64 at once: one traceback tells it, and while 64 were written
        # nothing else would be done, not even our lease renewed.
        now = self._clock()
        first = now - self._complained.get((what, participant), float("-inf")) >= COMPLAIN_EVERY_S
        if first:
            self._complained[what, participant] = now
        log.error(what, shard=shard, participant=participant, exc_info=first)

    async def _leave(self) -> None:
        self._leaving = True
        self._changes += 1
        with contextlib.suppress(TimeoutError, BusError):
            async with asyncio.timeout(LEAVE_S):
                if self._identity.valid(self._clock()) and self._table.others():
                    await self._turn(self._clock())
        for shard in list(self._table.acting):
            self._stop_acting(shard)


def _member(key: str, entry: KvEntry) -> GatewayMember:
    """Who holds a gateway's lease; raises DecodeError."""
    holder = read_holder(entry.value, entry.revision)
    return GatewayMember(key.removeprefix(PREFIX), holder.data.decode(errors="replace"), holder.epoch)
