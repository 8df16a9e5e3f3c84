"""A gateway's part in the identities of nodes, over a bus: it lets them in, renews them, and closes what is out."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import NamedTuple

from pilotlight_core.bus import Bus, BusDown, bus_users, connect
from pilotlight_core.host.config import Settings
from pilotlight_core.model.errors import BadInput
from pilotlight_gateway.nodes.node_admission import NodeAdmission
from pilotlight_gateway.nodes.node_eviction import NodeEviction
from pilotlight_gateway.nodes.node_issuer import NodeIssuer
from pilotlight_gateway.nodes.open_connections import OpenConnections
from pilotlight_gateway.tenancy.registry_port import NodeRegistry

CREDENTIALS = re.compile(r"(?<=://)[^\s/@,]+@")
KEEPER_CONNECT_S = 5.0


def without_credentials(url: str) -> str:
    """The addresses of the bus, as anybody may know them."""
    return CREDENTIALS.sub("", url)


class BusAddress(NamedTuple):
    """Where a gateway reaches the bus, and the file of the authorities of its certificates; "": it has none."""

    url: str
    ca_file: str = ""


@dataclass(frozen=True, kw_only=True)
class JoiningTerms:
    """What a gateway tells and gives nodes that join."""

    bus_url: str = ""
    """Where they reach the bus; "": it lets none in."""
    region: str = "local"
    zone: str = "local-a"


def joining_terms(settings: Settings, bus_url: str, *, takes_nodes: bool) -> JoiningTerms:
    """Those of a gateway: `bus_url` is where nodes reach the bus, if that is not as the gateway does."""
    url = bus_url or without_credentials(settings.nats_url)
    return JoiningTerms(bus_url=url if takes_nodes else "", region=settings.region, zone=settings.zone)


@asynccontextmanager
async def node_identities(
    bus: Bus, registry: NodeRegistry, issuer: NodeIssuer | None, address: BusAddress, *, region: str, name: str
) -> AsyncIterator[None]:
    """Answer for nodes until the block ends; without an issuer none can join.

    Raises:
        BadInput: the servers of the bus do not know the issuer's keys.
    """
    if issuer is None:
        yield
        return
    keeper = bus_users.connection_keeper()
    async with AsyncExitStack() as stack:
        try:
            own = await stack.enter_async_context(
                connect(
                    without_credentials(address.url),
                    name=f"{name} {keeper.name}",
                    inbox=keeper.inbox,
                    timeout=KEEPER_CONNECT_S,
                    ca_file=address.ca_file,
                    makes_streams=False,
                    key=issuer.keeper,
                )
            )
        except BusDown:
            printed = f"--issuer {issuer.public.issuer} --keeper {issuer.public.keeper}"
            raise BadInput(
                "node_issuer: the servers of the bus do not know its keys. Put what 'python -m "
                f"pilotlight_core.bus.bus_users {printed}' prints into their configuration, and reload them.",
                field="node_issuer",
            ) from None
        await stack.enter_async_context(NodeAdmission(bus, registry, issuer.issuer, region=region).running())
        await stack.enter_async_context(NodeEviction(registry, OpenConnections(own)).running())
        yield
