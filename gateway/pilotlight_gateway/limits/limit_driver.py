"""The driver of limits: asks the home of a tenant's limits for calls of this gateway, and is the home of our shards.

A home that does not answer within `PATIENCE_S` lets nothing in: a call that nobody has counted does not run.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping

import msgspec

from pilotlight_core.bus import NO_RESPONDERS, Handler
from pilotlight_core.model import subjects
from pilotlight_core.model.messages.limiting import (
    HeldPermits,
    Holdings,
    HoldingsWanted,
    LimitAnswer,
    LimitAnswers,
    LimitAsk,
    LimitEnd,
    LimitVerdict,
    ToLimitHome,
)
from pilotlight_core.model.timers import Timers
from pilotlight_gateway.cluster.driver_port import NEVER, SOON, DriverPort
from pilotlight_gateway.cluster.router import home_of
from pilotlight_gateway.cluster.shard_ownership import ShardOwnership
from pilotlight_gateway.limits.limit_policy import PolicyOf
from pilotlight_gateway.limits.limits_home import LimitHome
from pilotlight_gateway.limits.limits_outbox import LimitOutbox
from pilotlight_gateway.limits.limits_state import NOTHING, LimitState
from pilotlight_gateway.limits.silent_homes import PATIENCE_S, HomeAvailability

AGAIN_S = 0.05
"""Between two asks of one call."""
LOOK_S = 0.25
TELL_EVERY = 8
"""Looks between two tellings of what runs: what was lost on the way is mended within 2 s."""


class PendingAsk:
    """A call that waits for its home's answer. `then` hears it: None if there was none in time."""

    __slots__ = ("asked", "home", "name", "number", "shard", "then", "until")

    def __init__(
        self, name: str, shard: int, asked: LimitAsk, until: float, then: Callable[[LimitAnswer | None], None]
    ) -> None:
        self.name = name
        self.shard = shard
        self.asked = asked
        self.until = until
        self.then = then
        self.number = 0
        """Under which it is asked now; 0: it is not."""
        self.home = ""
        """Which gateway is asked."""


class LimitDriver:
    """One gateway's part in the limits of all tenants: a `Driver`, and a participant of shards."""

    def __init__(
        self,
        port: DriverPort,
        ownership: ShardOwnership,
        policies: PolicyOf,
        renewed: Callable[[str], float | None],
        *,
        region: str,
        gateway: str,
        clock: Callable[[], float] | None = None,
    ) -> None:
        """`renewed`: when a gateway's lease was renewed last. `clock`: by which limits count; None: that of `port`."""
        self._port = port
        self._ownership = ownership
        self._region = region
        self._gateway = gateway
        self._clock = clock or port.clock
        self._home = LimitHome(policies)
        self._mail = LimitOutbox(port, region, gateway)
        self._silence = HomeAvailability(renewed)
        self._number = 0
        self._asks: dict[str, PendingAsk] = {}
        self._asked: dict[int, PendingAsk] = {}
        """By number: those that wait for an answer."""
        self._alarms = Timers[str]()
        """By the name of an ask: when it is asked again, or given up."""
        self._held: dict[int, dict[int, tuple[str, str]]] = {}
        """shard -> number -> (tenant, function)"""
        self._told: dict[int, int] = {}
        """shard -> the epoch of the last home that was told what runs here: answers of an older one are void."""
        self._alive: set[str] = set()
        self._looks = 0
        self._look_at = SOON

    # -- the driver ----------------------------------------------------------------------------------------------

    def handlers(self) -> Mapping[str, Handler]:
        """See `Driver`."""
        region, gateway = self._region, self._gateway
        return {
            subjects.limits(region, gateway): self._on_mail,
            subjects.allowed(region, gateway): self._on_answers,
            subjects.holdings_wanted(region): self._on_wanted,
        }

    def take_turn(self) -> None:
        """See `Driver`."""
        at = self._port.clock()
        if at >= self._look_at:
            self._look_at = at + LOOK_S
            self.look()
        for name in self._alarms.due(at):
            self._try(self._asks[name])
        self.flush()
        wake = self._alarms.next()
        self._port.wake_at(min(self._look_at, NEVER if wake is None else wake))

    def reconnected(self) -> None:
        """See `Driver`."""
        self._tell_all()

    def flush(self) -> None:
        """Send what is to be sent."""
        for home in self._mail.flush():
            self._unheard(home)

    # -- shards --------------------------------------------------------------------------------------------------

    def begin(self, shard: int, epoch: int, state: bytes) -> None:
        """The shard is ours, with what its former home handed over. Whoever does not say so loses that: see `look`."""
        self._alive |= {self._gateway, *self._ownership.others()}
        levels = msgspec.msgpack.decode(state, type=LimitState) if state else NOTHING
        self._home.begin(shard, epoch, self._clock(), self._alive, levels)
        self._look_at = SOON  # one look for all shards that begin now: it asks what runs
        self._port.wake_at(SOON)

    def end(self, shard: int) -> bytes:
        """It is not any more; what the next home should know. Only when `mine` says so already."""
        return msgspec.msgpack.encode(self._home.end(shard, self._clock()))

    def look(self) -> None:
        """Begin and end to be the home of shards, and do what has to be done again and again. May be called anytime."""
        at = self._clock()
        alive = {self._gateway, *self._ownership.others()}
        for gone in self._alive - alive:
            self._home.gateway_gone(gone)
            self._unheard(gone)
        self._alive = alive
        self._silence.only(alive)
        for shard in range(subjects.SHARDS):
            self._look_at_shard(shard, at)
        if wanted := self._home.unheard():
            self._ask_what_runs(wanted)
        self._looks += 1
        self._home.sweep(self._looks % subjects.SHARDS, at)
        if self._looks % TELL_EVERY == 0:
            self._tell_all()

    def _look_at_shard(self, shard: int, at: float) -> None:
        acting, epoch = self._home.epoch(shard), self._ownership.mine(shard, at)
        if epoch is not None and epoch != acting:
            self._home.begin(shard, epoch, at, self._alive)
            self._silence.answered(shard, at)
        elif epoch is None and acting:
            owner = self._ownership.owner(shard)
            # A lease that lapsed may come back, and nobody has acted in between if the epoch is the same.
            if owner is not None and owner.epoch != acting:
                self._home.end(shard, at)

    def limits_changed(self, shard: int, tenant: str | None) -> None:
        """The limits of a tenant, or of any, are others now."""
        self._home.limits_changed(shard, tenant, self._clock())

    @property
    def home(self) -> LimitHome:
        """What it is the home of."""
        return self._home

    # -- calls ---------------------------------------------------------------------------------------------------

    def ask_here(self, asked: LimitAsk) -> LimitAnswer | None:
        """The answer, if we are the home and know it at once; else None, and nothing is counted."""
        answer = self._answer_here(asked)
        return self._entered(asked, answer) if answer is not None and _is_decided(answer) else None

    def ask(self, asked: LimitAsk, then: Callable[[LimitAnswer | None], None]) -> PendingAsk:
        """Ask the home, wherever that is, until it decides. Whoever stops waiting says so: `forget`."""
        self._number += 1
        shard, until = subjects.shard_of(asked.tenant), self._port.clock() + PATIENCE_S
        ask = PendingAsk(str(self._number), shard, asked, until, then)
        self._asks[ask.name] = ask
        self._try(ask)
        return ask

    def forget(self, ask: PendingAsk) -> None:
        """Nobody waits for it. An answer that comes to nobody is a permit that the next telling gives back."""
        self._asks.pop(ask.name, None)
        self._asked.pop(ask.number, None)
        self._alarms.clear(ask.name)

    def drop(self, asked: LimitAsk, answer: LimitAnswer) -> None:
        """A call that was let in, and whose caller did not hear of it any more."""
        self._held.get(subjects.shard_of(asked.tenant), {}).pop(answer.number, None)

    def ended(self, tenant: str, function: str, answer: LimitAnswer, correction: float) -> None:
        """A call that was let in has ended; it cost `correction` more than was counted."""
        shard = subjects.shard_of(tenant)
        if self._held.get(shard, {}).pop(answer.number, None) is None and not correction:
            return
        end, at = LimitEnd(answer.number, tenant, function, correction), self._clock()
        home = home_of(self._ownership, self._gateway, shard, at)
        if home is None or home == self._gateway:  # nobody: our lease has lapsed, and may hold again
            self._home.ended(shard, self._gateway, end, at)
        else:
            self._mail.end(home, end)

    def wait(self, tenant: str) -> float:
        """Seconds after which a call may come again that got no answer."""
        shard = subjects.shard_of(tenant)
        owner = self._ownership.owner(shard)
        return self._silence.wait(shard, owner.gateway if owner is not None else "", self._clock())

    def _try(self, ask: PendingAsk) -> None:
        at = self._port.clock()
        self._asked.pop(ask.number, None)
        if at >= ask.until:
            self._over(ask, None)
            return
        answer = self._answer_here(ask.asked)
        if answer is not None and _is_decided(answer):
            self._over(ask, answer)
            return
        home = home_of(self._ownership, self._gateway, ask.shard, self._clock()) if answer is None else None
        if home is None or home == self._gateway:
            self._alarm(ask, at + AGAIN_S)
            return
        self._number += 1
        ask.number, ask.home = self._number, home
        self._held.setdefault(ask.shard, {})  # from now on its home is told, also of nothing
        self._asked[ask.number] = ask
        self._mail.ask(home, msgspec.structs.replace(ask.asked, number=ask.number))
        self._alarm(ask, ask.until)

    def _alarm(self, ask: PendingAsk, at: float) -> None:
        self._alarms.set(ask.name, at)
        self._port.wake_at(at)

    def _over(self, ask: PendingAsk, answer: LimitAnswer | None) -> None:
        self.forget(ask)
        if answer is not None:
            self._entered(ask.asked, answer)
            self._silence.answered(ask.shard, self._clock())
        ask.then(answer)

    def _entered(self, asked: LimitAsk, answer: LimitAnswer) -> LimitAnswer:
        # The home may have heard of a limit that was not set yet when the call came.
        if answer.holds:
            self._held.setdefault(subjects.shard_of(asked.tenant), {})[answer.number] = asked.tenant, asked.function
        return answer

    def _answer_here(self, asked: LimitAsk) -> LimitAnswer | None:
        """Our own answer; None if we are not the home."""
        self._number += 1
        answer = self._answer(self._gateway, msgspec.structs.replace(asked, number=self._number), self._clock())
        return answer if answer.verdict is not LimitVerdict.NOT_HOME else None

    def _answer(self, gateway: str, ask: LimitAsk, at: float) -> LimitAnswer:
        shard = subjects.shard_of(ask.tenant)
        epoch = self._ownership.mine(shard, at)
        if epoch is None:
            return LimitAnswer(ask.number, LimitVerdict.NOT_HOME)
        if self._home.epoch(shard) != epoch:
            self.look()
        return self._home.ask(shard, gateway, ask, at)

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

    def _on_answers(self, _subject: str, message: object, unheard: str) -> None:
        if message is NO_RESPONDERS:
            for home in {ask.home for ask in self._asked.values()}:
                if unheard == subjects.limits(self._region, home):
                    self._silence.nobody_listens(home)
                    self._unheard(home)
        elif isinstance(message, LimitAnswers):
            for answer in message.answers:
                if (ask := self._asked.pop(answer.number, None)) is not None:
                    self._heard(ask, answer)

    def _heard(self, ask: PendingAsk, answer: LimitAnswer) -> None:
        # That of a home whose successor was told what runs here is void: that one does not know of it.
        if _is_decided(answer) and answer.epoch >= self._told.get(ask.shard, 0):
            self._over(ask, answer)
        else:
            self._alarm(ask, self._port.clock() + AGAIN_S)

    def _unheard(self, gateway: str) -> None:
        """Nobody listens there, or it could not be sent: those who wait for it ask again."""
        for ask in [ask for ask in self._asked.values() if ask.home == gateway]:
            del self._asked[ask.number]
            self._alarm(ask, self._port.clock() + AGAIN_S)

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
            pending=tuple(number for number, ask in self._asked.items() if ask.shard == shard),
        )
        if home == self._gateway:
            self._home.heard(holdings, self._clock())
        else:
            self.flush()  # what was asked before must arrive before
            self._mail.send(subjects.limits(self._region, home), holdings)


def _is_decided(answer: LimitAnswer) -> bool:
    return answer.verdict in (LimitVerdict.GRANTED, LimitVerdict.REFUSED)
