"""A bus of three servers: each asks for whom it does not know, and a revoked node is off all of them."""

from __future__ import annotations

import asyncio
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import AsyncExitStack, suppress
from pathlib import Path

import pytest

from pilotlight_core.bus import BusError, StreamLimits, bus_users, connect
from pilotlight_core.bus.nkeys import Nkey, NkeyKind
from pilotlight_core.host.registry import Registry
from pilotlight_core.model.api.node_api import JoinRequest, JoinTokenRequest
from pilotlight_gateway.nodes.join_tokens import create_join_token
from pilotlight_gateway.nodes.node_book import join_node, revoke_node
from pilotlight_gateway.nodes.node_identities import BusAddress, node_identities
from pilotlight_gateway.nodes.node_issuer import NodeIssuer, make_issuer
from pilotlight_supervisor.embedded_bus import (
    ClusterServer,
    choose_ports,
    cluster,
    find_nats_server,
    user_url,
    wait_listening,
    with_parent,
    write_config,
)
from tests.waiting import until, until_found


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
def issuer(tmp_path: Path) -> NodeIssuer:
    return make_issuer(tmp_path / "issuer.json")


@pytest.fixture
def members(tmp_path: Path, issuer: NodeIssuer) -> Iterator[tuple[ClusterServer, ...]]:
    folder, processes = tmp_path / "nats", []
    ports = choose_ports(folder, 3)
    members = cluster(folder, ports)
    try:
        for member in members:
            config = write_config(folder, ports[0], member=member, admission=issuer.public)
            command = with_parent(find_nats_server(), "-c", config, "-l", member.folder / "server.log")
            processes.append(subprocess.Popen(command))
        yield members
    finally:
        for process in processes:
            process.terminate()
        for process in processes:
            process.wait(10)


async def make_streams(members: Sequence[ClusterServer], url: str) -> None:
    """Once the servers have found each other."""
    for member in members:
        assert await wait_listening(member.folder, member.port, 10.0)
    async with connect(url, name="setup", inbox="_GW", limits=StreamLimits(replicas=3), makes_streams=False) as bus:

        async def made() -> bool:
            with suppress(BusError):
                await bus.ensure_streams()
                return True
            return False

        await until_found(made, 60.0)


async def join(registry: Registry, node: str, key: Nkey) -> None:
    """A node joins, or joins anew."""
    made = await create_join_token(registry, JoinTokenRequest(), time.time(), region="local", zone="z")
    asked = JoinRequest(token=made.token, node=node, key=key.public)
    await join_node(registry, asked, time.time(), is_up=False)


async def test_a_node_is_let_in_and_thrown_out_by_every_server(
    tmp_path: Path, members: tuple[ClusterServer, ...], issuer: NodeIssuer
) -> None:
    """With one gateway, which is connected to one of them; and it may join anew."""
    ports = [member.port for member in members]
    url, key = user_url(tmp_path / "nats", ports, "gateway"), Nkey.generate(NkeyKind.USER)
    await make_streams(members, url)
    async with (
        connect(url, name="g", inbox="_GW", limits=StreamLimits(replicas=3)) as bus,
        Registry(bus) as registry,
        node_identities(bus, registry, issuer, BusAddress(url), region="local", name="g"),
        AsyncExitStack() as stack,
    ):
        await join(registry, "n1", key)
        inbox = bus_users.agent("n1").inbox
        agents = [
            await stack.enter_async_context(
                connect(f"nats://127.0.0.1:{port}", name="agent n1", inbox=inbox, makes_streams=False, key=key)
            )
            for port in ports
        ]
        await revoke_node(registry, "n1", time.time())
        async with asyncio.timeout(5.0):  # the bound that is promised
            await until(lambda: not any(agent.connected for agent in agents))
        await join(registry, "n1", key)
        await until(lambda: all(agent.connected for agent in agents))
