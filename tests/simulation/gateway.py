"""A gateway in the simulation: origins of its own calls, and the home of all functions while it holds the lease."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import msgspec

from pilotlight_core.model.errors import PilotlightError
from pilotlight_core.model.messages.agent_messages import (
    Chunk,
    ContainerState,
    Credit,
    Ended,
    Grant,
    NodeReport,
    Reconcile,
    Refused,
    Started,
)
from pilotlight_core.model.messages.scheduling import Dropped, Enqueue, HandBack, Settle, Withdraw
from pilotlight_core.model.spec import Priority
from pilotlight_gateway.calls.call_plan import CallPlan
from pilotlight_gateway.calls.effects import (
    Effect,
    FailCall,
    FinishCall,
    RelayChunk,
    SendControl,
    SendRun,
    settlement_of,
)
from pilotlight_gateway.calls.origin import Origin
from pilotlight_gateway.cluster.node_incarnations import GoneNode, NodeIncarnations
from pilotlight_gateway.home.home import Home
from tests.simulation.promises import Fate
from tests.simulation.world import NoResponders, Process, World

TTL = 3.0
LEASE_MARGIN = 0.5
SILENT_AFTER = 2.0

ToHome = Enqueue | HandBack | Settle | Withdraw


class HomeIs(msgspec.Struct, frozen=True):
    """Everybody's view of the lease."""

    name: str
    epoch: int


class GatewayIs(msgspec.Struct, frozen=True):
    """A gateway has begun anew: its former calls are nobody's."""

    name: str


@dataclass
class Lease:
    """The lease as its bucket keeps it, by the world's clock."""

    holder: str = ""
    epoch: int = 0
    until: float = 0.0

    def ask(self, name: str, epoch: int, now: float) -> int:
        """Renew or take it; returns the epoch under which `name` holds it now, 0 if somebody else does."""
        if now < self.until and (self.holder, self.epoch) != (name, epoch):
            return 0
        if (self.holder, self.epoch) != (name, epoch) or now >= self.until:
            self.holder, self.epoch = name, self.epoch + 1
        self.until = now + TTL
        return self.epoch


class SimGateway(Process):
    """One gateway; killed, it begins anew with nothing."""

    def __init__(
        self,
        world: World,
        name: str,
        *,
        gateways: list[str],
        agents: list[str],
        lease: Lease,
        home: type[Home],
        origin: type[Origin],
    ) -> None:
        super().__init__(world, name)
        self._others = [other for other in gateways if other != name]
        self._agents = agents
        self._lease = lease
        self._make_home = home
        self._make_origin = origin
        # A lease alone does not fence: some homes act on after it has passed to another.
        self._overstays = world.rng.choice((0.0, 0.0, 0.0, 2.0, 6.0))

    def boot(self) -> None:
        self.home: Home | None = None
        self.origins: dict[str, Origin] = {}
        self._heard: dict[str, float] = {}
        self._nodes = NodeIncarnations()
        self._told = {(agent, "") for agent in self._agents}
        """Where a former life may have left calls: told once that none is wanted."""
        self._home_is = HomeIs("", 0)
        self._valid_until = 0.0
        self._tell_all(GatewayIs(self.name))
        self.every(0.9, self._renew)
        self.every(0.25, self._tick)
        self.every(1.0, self._reconcile)

    def died(self) -> None:
        self.world.promises.gateway_died(self.name)

    def submit(self, call: str, tenant: str, version: str, fate: Fate) -> None:
        """A caller has come."""
        at = self.clock
        plan = CallPlan(
            id=call,
            tenant=tenant,
            version=version,
            function="acme:app.fn",
            method="",
            priority=Priority.STANDARD,
            gateway=self.name,
            arrived=at,
            deadline=at + fate.deadline - self.world.now,
            idempotent=fate.idempotent,
            retries=fate.retries,
            generator=fate.chunks > 0,
        )
        self.world.promises.submitted(call, fate)
        origin = self.origins[call] = self._make_origin(plan, at)
        self._act(origin, origin.begin(at))
        self._drive()

    def cancel(self, call: str) -> None:
        """The caller has gone."""
        if (origin := self.origins.get(call)) is not None:
            self._act(origin, origin.cancel())
            self._drive()

    # -- the lease -----------------------------------------------------------------------------------------------

    def _renew(self) -> None:
        if self.name in self.world.cut_off:
            return
        asked = self.clock
        epoch = self._lease.ask(self.name, self.home.epoch if self.home is not None else 0, self.world.now)
        if not epoch:
            if asked >= self._valid_until:
                self.home = None
            return
        self._valid_until = asked + TTL - LEASE_MARGIN + self._overstays
        if self.home is None or self.home.epoch != epoch:
            self.world.note("HOME", self.name, "epoch", epoch)
            self.home = self._make_home(gateway=self.name, epoch=epoch)
        self._tell_all(HomeIs(self.name, epoch))
        self._home_changed(HomeIs(self.name, epoch))
        self._drive()

    def _tell_all(self, message: Any) -> None:
        for other in self._others:
            self.send(other, message)

    def _home_changed(self, message: HomeIs) -> None:
        if message.epoch <= self._home_is.epoch:
            return
        self._home_is = message
        for origin in list(self.origins.values()):
            self._act(origin, origin.home_changed(message.epoch, self.clock))

    # -- actions -------------------------------------------------------------------------------------------------

    def _act(self, origin: Origin, actions: list[Effect]) -> None:
        for action in actions:
            match action:
                case Enqueue() | HandBack() | Settle() | Withdraw():
                    self._to_home(action)
                    origin.placed()
                case SendRun():
                    self._heard[origin.plan.id] = self.clock
                    self.send(action.node, action.run)
                case SendControl():
                    self.send(action.node, action.message)
                case RelayChunk():
                    self.world.promises.relayed(origin.plan.id, action.seq)
                case FinishCall() | FailCall():
                    self.world.note("ENDS", origin.plan.id, action)
                    del self.origins[origin.plan.id]
                    self.world.promises.ended(origin.plan.id, action, self.world.now, self.woke_at)

    def _to_home(self, action: ToHome) -> None:
        if self.home is not None:
            self._at_home(self.home, action)
        elif self._home_is.name not in ("", self.name):
            self.send(self._home_is.name, action)

    def _at_home(self, home: Home, action: ToHome) -> None:
        at = self.clock
        match action:
            case Enqueue(call):
                try:
                    home.enqueue(call, at)
                except PilotlightError as error:
                    dropped = Dropped(call=call.call, gateway=call.gateway, code=error.wire_code, detail=error.detail)
                    self._to_origin(call.gateway, dropped)
            case HandBack():
                home.refused(action.call, action.container, action.reason, action.epoch, at)
            case Settle():
                home.done(action.call, action.container, action.number, at, cost=action.cost, frees=action.frees)
            case Withdraw(call_id):
                home.cancel(call_id)

    def _to_origin(self, gateway: str, message: Grant | Dropped) -> None:
        if gateway == self.name:
            self._from_home(message)
        else:
            self.send(gateway, message)

    def _from_home(self, message: Grant | Dropped) -> None:
        origin = self.origins.get(message.call)
        if origin is not None:
            said = origin.dropped(message) if isinstance(message, Dropped) else origin.granted(message, self.clock)
            self._act(origin, said)
        elif isinstance(message, Grant):
            self._to_home(Settle(call=message.call, container=message.container, number=message.number))

    def _drive(self) -> None:
        at = self.clock
        if self.home is not None and at >= self._valid_until:
            self.home = None
        if (home := self.home) is None:
            return
        for dropped in home.expire(at):
            self._to_origin(dropped.gateway, dropped)
        while grants := home.grants(at):
            for grant in grants:
                self._to_origin(grant.gateway, grant)
        for demand in home.demand(at):
            self.send("controller", demand)

    # -- what happens --------------------------------------------------------------------------------------------

    def _tick(self) -> None:
        at = self.clock
        for gone in self._nodes.lost(at):
            self._node_gone(gone)
        for origin in list(self.origins.values()):
            if origin.wake_at <= at:
                self._act(origin, origin.tick(at))
        self._drive()

    def _reconcile(self) -> None:
        at = self.clock
        wanted: dict[tuple[str, str], list[str]] = {}
        silent: dict[tuple[str, str], dict[str, int]] = {}
        for call, origin in self.origins.items():
            if (grant := origin.grant) is not None:
                place = grant.node, grant.instance
                wanted.setdefault(place, []).append(call)
                if at - self._heard[call] > SILENT_AFTER:
                    silent.setdefault(place, {})[call] = grant.number
        for place in self._told | wanted.keys():
            calls = tuple(wanted.get(place, ()))
            message = Reconcile(gateway=self.name, calls=calls, grants=silent.get(place, {}), instance=place[1])
            self.send(place[0], message)
        self._told = set(wanted)

    def receive(self, message: Any) -> None:
        at = self.clock
        match message:
            case Refused() | Started() | Chunk() | Ended():
                self._frame(message)
            case Credit():
                self._credit(message)
            case NodeReport():
                self._seen(message.node, message.instance)
            case NoResponders():
                if (origin := self.origins.get(message.run.call)) is not None:
                    self._act(origin, origin.no_responders(message.run.grant, at))
            case HomeIs():
                self._home_changed(message)
            case GatewayIs():
                if self.home is not None:
                    self.home.gateway_gone(message.name)
            case Grant() | Dropped():
                self._from_home(message)
            case _ if self.home is not None:
                self._at_home(self.home, message)
        self._drive()

    def _frame(self, frame: Refused | Started | Chunk | Ended) -> None:
        origin = self.origins.get(frame.call)
        if origin is not None:
            self._heard[frame.call] = self.clock
            self._act(origin, origin.frame(frame, self.clock))
        elif isinstance(frame, Ended):
            self._to_home(settlement_of(frame))

    def _credit(self, credit: Credit) -> None:
        self._seen(credit.node, credit.instance)
        if self.home is not None:
            self.home.credit(credit, self.clock)
        if credit.state is ContainerState.GONE:
            for origin in list(self.origins.values()):
                self._act(origin, origin.container_gone(credit.container, "gone", self.clock))

    def _seen(self, node: str, instance: str) -> None:
        if (gone := self._nodes.seen(node, instance, self.clock)) is not None:
            self._node_gone(gone)

    def _node_gone(self, gone: GoneNode) -> None:
        if self.home is not None:
            self.home.node_gone(gone.node, gone.instance, self.clock)
        for origin in list(self.origins.values()):
            self._act(origin, origin.node_gone(gone.node, gone.instance, gone.reason, self.clock))
