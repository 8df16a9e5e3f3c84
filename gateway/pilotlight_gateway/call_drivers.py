"""Both sides of a gateway's calls and their router, over one port."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import structlog

from pilotlight_core.bus import NO_RESPONDERS, Handler
from pilotlight_core.host.binding_book import Bindings
from pilotlight_core.model import subjects
from pilotlight_core.model.messages.bindings import Binding
from pilotlight_core.model.messages.call_messages import Chunk, ChunkGroup, Ended, Refused, Started, StreamCheckpoint
from pilotlight_core.model.messages.link_messages import LinkSwitch
from pilotlight_core.model.messages.node_messages import Credit, NodeReport, Shortage, Shortages
from pilotlight_core.model.messages.scheduling import Breakers, ToHome
from pilotlight_gateway.calls.large_bodies import LargeBodies
from pilotlight_gateway.calls.origins import NODE, Origins
from pilotlight_gateway.cluster.agent_links import AgentLinks
from pilotlight_gateway.cluster.driver_port import DriverPort
from pilotlight_gateway.cluster.node_incarnations import NodeIncarnations
from pilotlight_gateway.cluster.node_watch import NodeWatch
from pilotlight_gateway.cluster.peer_links import PeerEnds
from pilotlight_gateway.cluster.router import Outbox, ShardRouter
from pilotlight_gateway.cluster.shard_ownership import ShardOwnership
from pilotlight_gateway.fleet.clock_news import note_clock
from pilotlight_gateway.fleet.clock_watch import ClockKind
from pilotlight_gateway.fleet.fleet_view import FleetView
from pilotlight_gateway.fleet.node_guard import NodeGuard
from pilotlight_gateway.home.home import QueueLimits
from pilotlight_gateway.home.homes import Homes

FRAMES = (Ended, Chunk, Started, Refused, StreamCheckpoint)
CHECK_S = 0.5
"""Between two checks for silent nodes."""

log = structlog.get_logger(__name__)


class CallDrivers:
    """One `Driver` for both sides: a turn ends when both inboxes are empty.

    A call costs one publish, one frame back and one alarm; with a home at another gateway also an enqueue, a grant and
    a settlement.
    """

    def __init__(
        self,
        port: DriverPort,
        ownership: ShardOwnership,
        fleet: FleetView,
        bodies: LargeBodies,
        bindings: Bindings,
        *,
        region: str,
        gateway: str,
        limits: QueueLimits,
    ) -> None:
        self._port = port
        self._region = region
        self._gateway = gateway
        self._fleet = fleet
        self.guard = guard = NodeGuard(bindings)
        self._outbox = Outbox(port, region)
        self._router = router = ShardRouter(port, ownership, self._outbox, gateway=gateway)
        self.homes = Homes(
            port, ownership, router, router.home_inbox, region=region, gateway=gateway, limits=limits
        )  # fmt: skip
        self.links = AgentLinks(port, region)
        nodes = NodeIncarnations()
        self.origins = Origins(
            port, self.links, ownership, router, router.origin_inbox, bodies, guard, nodes,
            region=region, gateway=gateway, splits=self.homes.splits,
        )  # fmt: skip
        self.peers = PeerEnds(self._outbox.peers, ownership.others, self._on_peer, gateway=gateway)
        self._nodes = NodeWatch((self.homes, self.origins), nodes)
        self._check_at = float("-inf")

    # -- the driver ----------------------------------------------------------------------------------------------

    def handlers(self) -> Mapping[str, Handler]:
        """See `Driver`."""
        region, gateway = self._region, self._gateway
        return {
            subjects.reply(region, gateway): self._on_frame,
            subjects.unheard(region, gateway): self._on_unheard,
            subjects.credit(region): self._on_credit,
            subjects.beat(region): self._on_report,
            subjects.shortage(region): self._on_shortage,
            subjects.shortages(region): self._on_shortage,
            subjects.breakers(region): self._on_breakers,
            subjects.to_home(region, gateway): self.homes.on_mail,
            subjects.to_origin(region, gateway): self.origins.on_mail,
            subjects.ask(region, gateway): self.origins.on_ask,
        }

    def take_turn(self) -> None:
        """See `Driver`."""
        at, router = self._port.clock(), self._router
        if at >= self._check_at:
            self._check_at = at + CHECK_S
            self._nodes.check_silence(at)
            self._fleet.forget(at)
            self.guard.expire(at)
        self._port.wake_at(self._check_at)
        self.homes.take_turn(at)
        self.origins.take_turn(at)
        self._outbox.flush()
        self.links.flush()
        # What comes up within a turn asks for none: it is of this one.
        while router.home_inbox or router.origin_inbox:
            at = self._port.clock()
            self.homes.take_turn(at)
            self.origins.take_turn(at)
            self._outbox.flush()
            self.links.flush()

    def reconnected(self) -> None:
        """See `Driver`."""
        self.homes.wake_all()

    # -- other gateways ------------------------------------------------------------------------------------------

    def homes_changed(self, shards: frozenset[int]) -> None:
        """Other gateways are the homes of these shards now."""
        self._router.homes_changed()
        self.origins.homes_changed(shards)

    def gateway_gone(self, instance: str) -> None:
        """A gateway is gone, with its callers."""
        self.homes.gateway_gone(instance)

    # -- what arrives --------------------------------------------------------------------------------------------

    def on_link(self, node: str, messages: list[Any]) -> None:
        """An agent's messages have come over its link: checked as those of its subjects."""
        for message in messages:
            try:
                if isinstance(message, FRAMES):
                    self.origins.on_frame(node, message)
                elif isinstance(message, ChunkGroup):
                    self.origins.on_chunks(node, message)
                else:
                    self._believe(node, message)
            except Exception:
                log.exception("what came over a link went wrong; the others go on", node=node)
        self._port.take_turn_if_many()

    def _on_peer(self, messages: list[Any]) -> None:
        """Items have come over the link of another gateway."""
        for message in messages:
            try:
                (self.homes if isinstance(message, ToHome) else self.origins).on_mail("", message, "")
            except Exception:
                log.exception("what came over a gateway's link went wrong; the others go on")
        self._port.take_turn_if_many()

    def _on_frame(self, subject: str, message: object, reply: str) -> None:
        if isinstance(message, FRAMES):
            self.origins.on_frame(subjects.node_of(subject), message)
            self._port.take_turn_if_many()
        elif isinstance(message, ChunkGroup):
            self.origins.on_chunks(subjects.node_of(subject), message)
            self._port.take_turn_if_many()
        elif isinstance(message, LinkSwitch):
            self.links.switched(subjects.node_of(subject), message)
        else:
            self._on_credit(subject, message, reply)  # of a slot that we had taken for another gateway

    def _on_unheard(self, subject: str, message: object, _: str) -> None:
        if message is not NO_RESPONDERS:
            return
        call_id, last = subject.rsplit(".", 2)[1:]
        if call_id == NODE:
            self._nodes.on_unheard(last, self._port.clock())
        else:
            self.origins.on_unheard(call_id, int(last))

    def _on_credit(self, subject: str, message: object, _: str) -> None:
        if isinstance(message, Credit):
            node = subjects.node_of(subject)
            # Of an agent with a link it is here already, or its link is not read to the end.
            if not self.links.has(node, message.instance) and not self.links.is_ahead(node, message.instance):
                self._believe(node, message)

    def _believe(self, node: str, message: object) -> None:
        at = self._port.clock()
        if isinstance(message, Credit) and self.guard.believes_credit(node, message, at):
            self._nodes.on_credit(message, at)

    def on_bound(self, binding: Binding) -> None:
        """The controller has bound a container."""
        for credit in self.guard.bound(binding):
            self._nodes.on_credit(credit, self._port.clock())

    def _on_report(self, subject: str, message: object, _: str) -> None:
        at = self._port.clock()
        if not isinstance(message, NodeReport) or self.links.is_ahead(subjects.node_of(subject), message.instance):
            return
        if (report := self.guard.believed_report(subjects.node_of(subject), message, at)) is None:
            return
        if self._fleet.has_room(report.node):
            self._fleet.on_report(report, at)
            note_clock(self._fleet.clocks, ClockKind.NODE, report.node, report.clock)
            self._nodes.on_report(report, at)
        else:
            self.guard.note_crowd(report.node, at)

    def _on_breakers(self, _: str, message: object, __: str) -> None:
        if isinstance(message, Breakers):
            self._fleet.on_breakers(message, self._port.clock())

    def _on_shortage(self, _: str, message: object, __: str) -> None:
        told = message.items if isinstance(message, Shortages) else (message,)
        for shortage in told:
            if isinstance(shortage, Shortage):
                self._nodes.on_shortage(shortage, self._port.clock())
