"""A bus that asks gateways whom to let in, with one gateway's part in it."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from pilotlight_core.bus import Bus, bus_users, connect
from pilotlight_core.bus.nkeys import Nkey, NkeyKind
from pilotlight_core.host.registry import Registry
from pilotlight_core.model.api.node_api import JoinRequest, JoinTokenRequest
from pilotlight_gateway.nodes.join_tokens import create_join_token
from pilotlight_gateway.nodes.node_book import join_node
from pilotlight_gateway.nodes.node_identities import BusAddress, node_identities, without_credentials
from pilotlight_gateway.nodes.node_issuer import NodeIssuer, make_issuer
from pilotlight_supervisor.embedded_bus import EmbeddedNats, embedded_nats

REGION = "local"


@dataclass(frozen=True, kw_only=True)
class JoinedBus:
    """`bus` and `registry` are the gateway's."""

    server: EmbeddedNats
    bus: Bus
    registry: Registry
    issuer: NodeIssuer

    @property
    def url(self) -> str:
        """As anybody knows it."""
        return without_credentials(self.server.url)

    async def join(self, node: str) -> Nkey:
        """A node joins; its key."""
        key = Nkey.generate(NkeyKind.USER)
        made = await create_join_token(self.registry, JoinTokenRequest(), time.time(), region=REGION, zone="z1")
        asked = JoinRequest(token=made.token, node=node, key=key.public)
        await join_node(self.registry, asked, time.time(), is_up=False)
        return key

    def connect_agent(self, node: str, key: Nkey, timeout: float = 5.0) -> AbstractAsyncContextManager[Bus]:
        """As a node's agent does."""
        return connect(
            self.url, name=f"agent {node}", inbox=bus_users.agent(node).inbox, timeout=timeout, makes_streams=False,
            key=key,
        )  # fmt: skip


@asynccontextmanager
async def joined_bus(folder: Path) -> AsyncIterator[JoinedBus]:
    """A server and a gateway that lets nodes in, until the block ends."""
    issuer = make_issuer(folder / "issuer.json")
    async with (
        embedded_nats(folder / "nats", admission=issuer.public) as server,
        connect(server.url_of("gateway"), name="gateway", inbox=bus_users.gateway().inbox) as bus,
        Registry(bus) as registry,
        node_identities(bus, registry, issuer, BusAddress(server.url), region=REGION, name="gateway"),
    ):
        yield JoinedBus(server=server, bus=bus, registry=registry, issuer=issuer)
