"""A gateway's part in live calls, over a bus."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager

from pilotlight_core.bus import Bus
from pilotlight_core.host.binding_book import BindingBook
from pilotlight_core.links import TO_PEER, Link, LinkFolder, unix_link
from pilotlight_gateway.call_drivers import CallDrivers
from pilotlight_gateway.calls.call_service import CallService
from pilotlight_gateway.calls.large_bodies import LargeBodies
from pilotlight_gateway.cluster.agent_ends import AgentEnds
from pilotlight_gateway.cluster.driver_port import BusDriverPort
from pilotlight_gateway.cluster.gateway_addresses import GatewayAddresses
from pilotlight_gateway.cluster.link_dialer import LinkDialer
from pilotlight_gateway.cluster.shard_table import ShardTable
from pilotlight_gateway.cluster.shards import ShardParticipant, Shards, gateway_lease
from pilotlight_gateway.fleet.fleet_view import FleetView
from pilotlight_gateway.home.home import QueueLimits
from pilotlight_gateway.streams.stream_exchange import StreamExchange
from pilotlight_gateway.streams.stream_keeper import StreamKeeper


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
        links: LinkFolder | None = None,
        url: str = "",
    ) -> None:
        """
        Args:
            links: where agents and gateways of this machine have their sockets; None: all are spoken to over the bus.
            url: where clients reach this gateway; "": answers of others do not say.
        """
        self._bus = bus
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
        self._dialers: list[LinkDialer] = []
        if links is not None:
            ends, peers, clock = AgentEnds(self.drivers.links, self.drivers), self.drivers.peers, self._port.clock
            self._dialers = [
                LinkDialer(links, ends, self._agents, gateway=instance, clock=clock),
                LinkDialer(
                    links,
                    peers.dialled,
                    self._peers,
                    gateway=instance,
                    clock=clock,
                    decoder=TO_PEER,
                    keeps_unheard=True,
                    accepted=peers.accepted,
                ),
            ]
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
                await stack.enter_async_context(self._links.listening("", self.table.instance, self._accepted))
            await stack.enter_async_context(self.streams.running())
            for dialer in self._dialers:
                stack.push_async_callback(self._bus.end, self._bus.spawn(dialer.run()))
            yield

    def _accepted(self) -> Link:
        return unix_link(self.drivers.peers.accepted, TO_PEER, self._bus.loop)

    def _peers(self) -> list[tuple[str, str]]:
        return [("", instance) for instance in self.table.others()]

    def _agents(self) -> list[tuple[str, str]]:
        return [(report.node, report.instance) for report in self.fleet.reports(self._port.clock())]
