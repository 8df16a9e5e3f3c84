"""Limits as one gateway holds them: its calls ask the home of their tenant's limits, which may be this very process.

A home that does not answer within `PATIENCE_S` lets nothing in: a call that nobody has counted does not run.
"""

from __future__ import annotations

import asyncio
import time
from collections import defaultdict
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import msgspec
import structlog

from pilotlight_core.bus import NO_RESPONDERS, Bus, Handler
from pilotlight_core.model import subjects
from pilotlight_core.model.messages.limiting import (
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
from pilotlight_gateway.limits.lease_renewals import LeaseWatch
from pilotlight_gateway.limits.limit_admission import Admission, admission_of, unreachable
from pilotlight_gateway.limits.limit_policy import LimitPolicy, PolicyOf
from pilotlight_gateway.limits.limits_home import LimitHome, LimitHomeStatistics
from pilotlight_gateway.limits.limits_outbox import LimitOutbox
from pilotlight_gateway.limits.limits_state import NOTHING, LimitState
from pilotlight_gateway.limits.shard_ownership import ShardOwnership
from pilotlight_gateway.limits.silent_homes import PATIENCE_S, HomeAvailability

AGAIN_S = 0.05
"""Between two asks of one call."""
LOOK_S = 0.25
TELL_EVERY = 8
"""Looks between two tellings of what runs: what was lost on the way is mended within 2 s."""

log = structlog.get_logger(__name__)


class _Pending:
    """A call that waits for its home's answer."""

    __slots__ = ("answer", "home", "shard")

    def __init__(self, home: str, shard: int, loop: asyncio.AbstractEventLoop) -> None:
        self.home = home
        self.shard = shard
        self.answer: asyncio.Future[LimitAnswer | None] = loop.create_future()


class HomeLimiter:
    """The real `Limiter`: asks homes over the bus, and is the home of the shards that are ours."""

    def __init__(
        self,
        bus: Bus,
        ownership: ShardOwnership,
        policies: PolicyOf,
        *,
        region: str,
        gateway: str,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._bus = bus
        self._ownership = ownership
        self._region = region
        self._gateway = gateway
        self._clock = clock
        self.policy = policies
        self._home = LimitHome(policies)
        self._mail = LimitOutbox(bus, region, gateway, self._unheard)
        self._renewals = LeaseWatch(bus, clock)
        self._silence = HomeAvailability(self._renewals.of)
        self._number = 0
        self._pending: dict[int, _Pending] = {}
        self._held: dict[int, dict[int, tuple[str, str]]] = {}
        """shard -> number -> (tenant, function)"""
        self._told: dict[int, int] = {}
        """shard -> the epoch of the last home that was told what runs here: answers of an older one are void."""
        self._alive: set[str] = set()
        self._looks = 0
        self._due = False

    # -- its life ------------------------------------------------------------------------------------------------

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Ask and answer until the block ends."""
        region, gateway = self._region, self._gateway
        handlers: dict[str, Handler] = {
            subjects.limits(region, gateway): self._on_mail,
            subjects.allowed(region, gateway): self._on_answers,
            subjects.holdings_wanted(region): self._on_wanted,
        }
        async with self._bus.listening(handlers, reconnected=self._reconnected):
            self.look()
            async with self._renewals.followed(), asyncio.TaskGroup() as group:
                task = group.create_task(self._run())
                try:
                    yield
                finally:
                    task.cancel()
            self._mail.flush()

    async def _run(self) -> None:
        while True:
            await asyncio.sleep(LOOK_S)
            self.look()

    async def _reconnected(self) -> None:
        self._tell_all()

    def look(self) -> None:
        """Begin and end to be the home of shards, and do what has to be done again and again. May be called anytime."""
        self._due = False
        at = self._clock()
        alive = {self._gateway, *self._ownership.others()}
        for gone in self._alive - alive:
            self._home.gateway_gone(gone)
            self._unheard(gone)
        self._alive = alive
        self._silence.only(alive)
        for shard in range(subjects.SHARDS):
            self._look_at(shard, at)
        if wanted := self._home.unheard():
            self._ask_what_runs(wanted)
        self._looks += 1
        self._home.sweep(self._looks % subjects.SHARDS, at)
        if self._looks % TELL_EVERY == 0:
            self._tell_all()

    def begin(self, shard: int, epoch: int, state: bytes) -> None:
        """The shard is ours, with what its former home handed over. Whoever does not say so loses that: see `look`."""
        self._alive |= {self._gateway, *self._ownership.others()}
        levels = msgspec.msgpack.decode(state, type=LimitState) if state else NOTHING
        self._home.begin(shard, epoch, self._clock(), self._alive, levels)
        if not self._due:  # one look for all shards that begin now: it asks what runs
            self._due = True
            self._bus.loop.call_soon(self.look)

    def end(self, shard: int) -> bytes:
        """It is not any more; what the next home should know. Only when `mine` says so already."""
        return msgspec.msgpack.encode(self._home.end(shard, self._clock()))

    def record_changed(self, key: str, _record: object) -> None:
        """A record of the registry is another one; to be called once the policies say so."""
        kind, _, name = key.partition(".")
        if kind in ("limits", "tenant"):
            self._home.limits_changed(subjects.shard_of(name), name, self._clock())
        elif kind == "tier":
            for shard in range(subjects.SHARDS):
                self._home.limits_changed(shard, None, self._clock())

    def _look_at(self, shard: int, at: float) -> None:
        acting, epoch = self._home.epoch(shard), self._ownership.mine(shard, at)
        if epoch is not None and epoch != acting:
            self._home.begin(shard, epoch, at, self._alive)
            self._silence.answered(shard, at)
        elif epoch is None and acting:
            owner = self._ownership.owner(shard)
            # A lease that lapsed may come back, and nobody has acted in between if the epoch is the same.
            if owner is not None and owner.epoch != acting:
                self._home.end(shard, at)

    def statistics(self) -> LimitHomeStatistics:
        """How the home is."""
        return self._home.statistics()

    # -- calls ---------------------------------------------------------------------------------------------------

    def epoch(self, tenant: str) -> int:
        """Of the home of a tenant's limits, as last heard; see `Limiter`."""
        owner = self._ownership.owner(subjects.shard_of(tenant))
        return owner.epoch if owner is not None else 0

    async def admit(
        self, tenant: str, function: str, policy: LimitPolicy, cost: float, part: LimitAskKind = LimitAskKind.CALL
    ) -> Admission:
        """Count a call, or say why it may not begin; see `Limiter`."""
        shard, asked = subjects.shard_of(tenant), LimitAsk(0, tenant, function, cost, part)
        answer = self._ask_here(shard, asked)
        if answer is None or answer.verdict is LimitVerdict.SETTLING:
            answer = await self._ask(shard, asked)
            if answer is None:
                owner = self._ownership.owner(shard)
                wait = self._silence.wait(shard, owner.gateway if owner is not None else "", self._clock())
                return Admission(tenant, function, policy, error=unreachable(wait))
            self._silence.answered(shard, self._clock())
        # The home may have heard of a limit that was not set yet when the call came.
        if answer.holds:
            self._held.setdefault(shard, {})[answer.number] = tenant, function
        return admission_of(tenant, function, policy, answer, self._ended)

    def _ask_here(self, shard: int, asked: LimitAsk) -> LimitAnswer | None:
        """Our own answer; None if we are not the home."""
        at = self._clock()
        epoch = self._ownership.mine(shard, at)
        if epoch is None:
            return None
        if self._home.epoch(shard) != epoch:
            self.look()
        self._number += 1
        return self._home.ask(shard, self._gateway, msgspec.structs.replace(asked, number=self._number), at)

    async def _ask(self, shard: int, asked: LimitAsk) -> LimitAnswer | None:
        """The home's answer, wherever that is; None if there is none in time."""
        until = self._clock() + PATIENCE_S
        while (left := until - self._clock()) > 0:
            answer = self._ask_here(shard, asked)
            if answer is None:
                answer = await self._ask_there(shard, asked, left)
            if answer is not None and answer.verdict in (LimitVerdict.GRANTED, LimitVerdict.REFUSED):
                return answer
            await asyncio.sleep(AGAIN_S)
        return None

    async def _ask_there(self, shard: int, asked: LimitAsk, patience: float) -> LimitAnswer | None:
        owner = self._ownership.owner(shard)
        if owner is None or owner.gateway == self._gateway:
            return None
        self._number += 1
        number = self._number
        self._held.setdefault(shard, {})  # from now on its home is told, also of nothing
        pending = self._pending[number] = _Pending(owner.gateway, shard, self._bus.loop)
        late = self._bus.loop.call_later(patience, _resolve, pending, None)
        self._mail.ask(owner.gateway, msgspec.structs.replace(asked, number=number))
        try:
            # An answer that comes too late, or to nobody, is a permit that the next telling gives back. One of a home
            # whose successor was told what runs here is void: that one does not know of it.
            answer = await pending.answer
            return answer if answer is not None and answer.epoch >= self._told.get(shard, 0) else None
        finally:
            late.cancel()
            del self._pending[number]

    def _ended(self, admission: Admission, cost: float | None) -> None:
        answer, shard = admission.answer, subjects.shard_of(admission.tenant)
        if answer is None:
            return
        correction = cost - answer.charged if cost is not None and admission.policy.most_cost else 0.0
        if self._held.get(shard, {}).pop(answer.number, None) is None and not correction:
            return
        end, at = LimitEnd(answer.number, admission.tenant, admission.function, correction), self._clock()
        if self._ownership.mine(shard, at) is not None:
            self._home.ended(shard, self._gateway, end, at)
        elif (owner := self._ownership.owner(shard)) is not None:
            self._mail.end(owner.gateway, end)

    # -- what arrives --------------------------------------------------------------------------------------------

    def _on_mail(self, _subject: str, message: object, _reply: str) -> None:
        at = self._clock()
        if isinstance(message, ToLimitHome | Holdings):
            # Whoever was taken for dead, and is, is so again at the next look: what it told is forgotten then.
            self._alive.add(message.gateway)
        match message:
            case ToLimitHome():
                # What ended made room for what asks.
                for end in message.ends:
                    self._home.ended(subjects.shard_of(end.tenant), message.gateway, end, at)
                if message.asks:
                    answers = tuple(self._answer(message.gateway, ask, at) for ask in message.asks)
                    told = LimitAnswers(gateway=self._gateway, answers=answers)
                    self._mail.send(subjects.allowed(self._region, message.gateway), told)
            case Holdings():
                self._home.heard(message, at)

    def _answer(self, gateway: str, ask: LimitAsk, at: float) -> LimitAnswer:
        shard = subjects.shard_of(ask.tenant)
        epoch = self._ownership.mine(shard, at)
        if epoch is None:
            return LimitAnswer(ask.number, LimitVerdict.NOT_HOME)
        if self._home.epoch(shard) != epoch:
            self.look()
        return self._home.ask(shard, gateway, ask, at)

    def _on_answers(self, _subject: str, message: object, unheard: str) -> None:
        if message is NO_RESPONDERS:
            for home in {pending.home for pending in self._pending.values()}:
                if unheard == subjects.limits(self._region, home):
                    self._silence.nobody_listens(home)
                    self._unheard(home)
        elif isinstance(message, LimitAnswers):
            for answer in message.answers:
                pending = self._pending.get(answer.number)
                if pending is not None:
                    _resolve(pending, answer)

    def _unheard(self, gateway: str) -> None:
        """Nobody listens there, or it could not be sent: those who wait for it ask again."""
        for pending in self._pending.values():
            if pending.home == gateway:
                _resolve(pending, None)

    # -- what runs here ------------------------------------------------------------------------------------------

    def _ask_what_runs(self, shards: dict[int, int]) -> None:
        """A home of ours has begun: hear what runs, here and elsewhere."""
        for shard, epoch in shards.items():
            self._tell(shard, epoch, self._gateway)
        if wanted := self._home.unheard():
            wish = HoldingsWanted(home=self._gateway, shards=wanted)
            self._mail.send(subjects.holdings_wanted(self._region), wish)

    def _on_wanted(self, _subject: str, message: object, _reply: str) -> None:
        if isinstance(message, HoldingsWanted) and message.home != self._gateway:
            for shard, epoch in message.shards.items():
                if epoch >= self._told.get(shard, 0):
                    self._tell(shard, epoch, message.home)

    def _tell_all(self) -> None:
        for shard in self._held:
            if (owner := self._ownership.owner(shard)) is not None:
                self._tell(shard, owner.epoch, owner.gateway)

    def _tell(self, shard: int, epoch: int, home: str) -> None:
        self._told[shard] = max(self._told.get(shard, 0), epoch)
        running: defaultdict[tuple[str, str], list[int]] = defaultdict(list)
        for number, call in self._held.get(shard, {}).items():
            running[call].append(number)
        holdings = Holdings(
            gateway=self._gateway,
            shard=shard,
            epoch=epoch,
            upto=self._number,
            held=tuple(HeldPermits(tenant, name, tuple(numbers)) for (tenant, name), numbers in running.items()),
            pending=tuple(number for number, pending in self._pending.items() if pending.shard == shard),
        )
        if home == self._gateway:
            self._home.heard(holdings, self._clock())
        else:
            self._mail.flush()  # what was asked before must arrive before
            self._mail.send(subjects.limits(self._region, home), holdings)


def _resolve(pending: _Pending, answer: LimitAnswer | None) -> None:
    if not pending.answer.done():
        pending.answer.set_result(answer)
