"""A gateway's part in live calls, over a bus."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass

from pilotlight_core.bus import Bus
from pilotlight_core.host.binding_book import BindingBook
from pilotlight_core.links import TO_PEER, Link, LinkCaller, LinkFolder, unix_link
from pilotlight_core.model import subjects
from pilotlight_gateway.call_drivers import CallDrivers
from pilotlight_gateway.calls.call_service import CallService
from pilotlight_gateway.calls.large_bodies import LargeBodies
from pilotlight_gateway.cluster.agent_ends import AgentEnds
from pilotlight_gateway.cluster.agent_links import AgentKey
from pilotlight_gateway.cluster.driver_port import BusDriverPort
from pilotlight_gateway.cluster.gateway_addresses import GatewayAddresses
from pilotlight_gateway.cluster.link_dialer import LinkDialer
from pilotlight_gateway.cluster.link_door import LinkDoor
from pilotlight_gateway.cluster.link_offers import LinkOffers
from pilotlight_gateway.cluster.shard_table import ShardTable
from pilotlight_gateway.cluster.shards import ShardParticipant, Shards, gateway_lease
from pilotlight_gateway.fleet.fleet_view import FleetView
from pilotlight_gateway.home.home import QueueLimits
from pilotlight_gateway.streams.stream_exchange import StreamExchange
from pilotlight_gateway.streams.stream_keeper import StreamKeeper


@dataclass(frozen=True, kw_only=True)
class LinkTerms:
    """How a gateway links."""

    folder: LinkFolder
    """Where agents and gateways of this machine have their sockets."""
    url: str = ""
    """Where those of other hosts reach its listener for agents; "": they are offered no links."""
    plain: bool = False
    """Whether the bus is in clear, so that links may be."""
    ca_file: str = ""
    """Of authorities that other gateways' certificates may be of, beside certifi's."""


class GatewayCalls:
    """`service` takes calls while this object's `running` and that of its `shards` are open."""

    def __init__(
        self,
        bus: Bus,
        bodies: LargeBodies,
        *,
        region: str,
        name: str,
        instance: str,
        limits: QueueLimits,
        links: LinkTerms | None = None,
        url: str = "",
    ) -> None:
        """
        Args:
            links: how it links; None: all are spoken to over the bus.
            url: where clients reach this gateway; "": answers of others do not say.
        """
        self._bus = bus
        self._region = region
        self._name = name
        self._lease = gateway_lease(bus, region=region, name=name, instance=instance)
        self.table = ShardTable(instance, self._lease)
        self.fleet = FleetView()
        self.bindings = BindingBook(bus, region=region)
        self._port = BusDriverPort(bus)
        self.drivers = CallDrivers(
            self._port, self.table, self.fleet, bodies, self.bindings, region=region, gateway=instance, limits=limits
        )
        self.bindings.on_bound.append(self.drivers.on_bound)
        self._links = links
        self.door = LinkDoor(self._port.clock)
        """For links that were offered: what the listener for agents asks."""
        self._dialers = self._make_dialers(links, region) if links is not None else []
        self._addresses = GatewayAddresses(bus, self.table, region=region, name=name, url=url)
        keeper = StreamKeeper(self._port.clock)
        self.streams = StreamExchange(bus, keeper, self.table, region=region, gateway=instance)
        self.service = CallService(
            bus,
            self.drivers.origins,
            self.table,
            self.fleet,
            self.drivers.homes.statistics,
            region=region,
            budget=bodies.budget,
        )

    def _make_dialers(self, links: LinkTerms, region: str) -> list[LinkDialer]:
        """To agents, and to other gateways."""
        gateway, peers, port = self.table.instance, self.drivers.peers, self._port
        ends = AgentEnds(self.drivers.links, self.drivers)
        to_agents = to_peers = None
        if links.url:
            to_agents = LinkOffers(
                self.door, ends, port, links.url, region=region, gateway=gateway, identity=self._identity
            )
            to_peers = LinkOffers(
                self.door, peers.dialled, port, links.url, region=region, gateway=gateway, identity=lambda _: "",
                decoder=TO_PEER, keeps_unheard=True,
            )  # fmt: skip
        return [
            LinkDialer(links.folder, ends, self._agents, gateway=gateway, clock=port.clock, offers=to_agents),
            LinkDialer(
                links.folder,
                peers.dialled,
                self._peers,
                gateway=gateway,
                clock=port.clock,
                decoder=TO_PEER,
                keeps_unheard=True,
                accepted=peers.accepted,
                offers=to_peers,
            ),
        ]

    def shards(self, participants: Mapping[str, ShardParticipant]) -> Shards:
        """The shards of calls and of `participants`, by the names under which their state is handed over."""
        return Shards(
            self._bus,
            self.table,
            self._lease,
            name=self._name,
            callers=self.drivers,
            participants={"calls": self.drivers.homes, **participants},
        )

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Run the drivers until the block ends."""
        async with self.bindings, self._addresses, self._port.driving(self.drivers), AsyncExitStack() as stack:
            if self._links is not None:
                await stack.enter_async_context(self._links.folder.listening("", self.table.instance, self._accepted))
                await stack.enter_async_context(self._taking_offers(self._links))
            await stack.enter_async_context(self.streams.running())
            for dialer in self._dialers:
                stack.push_async_callback(self._bus.end, self._bus.spawn(dialer.run()))
            yield

    @asynccontextmanager
    async def _taking_offers(self, links: LinkTerms) -> AsyncIterator[None]:
        """Take the links that gateways of other hosts offer."""
        me = self.table.instance
        caller = LinkCaller(
            self.drivers.peers.accepted, self._far, self._bus.spawn, node="", instance=me, plain=links.plain,
            ca_file=links.ca_file,
        )  # fmt: skip
        async with self._bus.listening({subjects.link_offers(self._region, "", me): caller.on_offer}):
            yield

    def _accepted(self) -> Link:
        return unix_link(self.drivers.peers.accepted, TO_PEER, self._bus.loop)

    def _far(self) -> Link:
        return Link(self.drivers.peers.accepted, TO_PEER, self._bus.loop)

    def _peers(self) -> list[AgentKey]:
        return [("", instance) for instance in self.table.others()]

    def _agents(self) -> list[AgentKey]:
        return [(report.node, report.instance) for report in self.fleet.reports(self._port.clock())]

    def _identity(self, agent: AgentKey) -> object | None:
        """Who a node is by its record, for as long as that holds; the bus's own configuration has the others."""
        record = self.fleet.record_of(agent[0])
        if record is None or not record.joined:
            return ""
        return None if record.why_out(time.time()) else record.joined_at
