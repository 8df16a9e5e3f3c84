"""A real nats-server with infra/nats-tls.conf: who connects, and what a new certificate does to connections."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import ssl
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from pilotlight_core.bus import Bus, BusDown, connect
from pilotlight_core.model.messages.call_messages import Cancel
from pilotlight_supervisor.embedded_bus import find_nats_server, with_parent
from tests.builders.certificates import a_server, an_authority
from tests.waiting import until

TLS = Path(__file__).parents[3] / "infra" / "nats-tls.conf"
pytestmark = pytest.mark.parametrize("anyio_backend", ["asyncio"])
USERS = 'authorization { users: [ { user: "me", password: "secret" } ] }\n'
ROUTES = """\
cluster {{
  name: pilotlight
  listen: "127.0.0.1:{own}"
  no_advertise: true
  routes: ["tls://127.0.0.1:{other}"]
  tls {{ cert_file: "{cert}", key_file: "{key}", ca_file: "{ca}", verify: true, timeout: 5 }}
}}
"""


@dataclass
class Server:
    port: int
    process: asyncio.subprocess.Process

    @property
    def url(self) -> str:
        return f"tls://me:secret@127.0.0.1:{self.port}"


def free_ports(count: int) -> list[int]:
    taken = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [each.getsockname()[1] for each in taken]
    for each in taken:
        each.close()
    return ports


def greets(port: int) -> bool:
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=5) as made:
            return made.recv(4) == b"INFO"
    except OSError:
        return False


@asynccontextmanager
async def served(folder: Path, port: int, name: str = "server", routes: str = "") -> AsyncIterator[Server]:
    """A server with the certificate of that name in `folder`."""
    config = folder / f"{name}.conf"
    (folder / TLS.name).write_text(TLS.read_text())
    own = f'listen: "127.0.0.1:{port}"\nserver_name: "{name}"\n{USERS}{routes}'
    config.write_text(f"{own}include ./{TLS.name}\n")
    env = {
        **os.environ,
        "PILOTLIGHT_BUS_CERT": str(folder / f"{name}.pem"),
        "PILOTLIGHT_BUS_KEY": f"{folder}/{name}.key",
    }
    with (folder / f"{name}.log").open("ab") as log:
        process = await asyncio.create_subprocess_exec(
            *with_parent(find_nats_server(), "-c", config), env=env, stdout=log, stderr=log
        )
    try:
        await until(lambda: greets(port) or process.returncode is not None)
        assert process.returncode is None, (folder / f"{name}.log").read_text()
        yield Server(port, process)
    finally:
        if process.returncode is None:
            process.terminate()
        await process.wait()


async def heard(listener: Bus, speaker: Bus) -> str:
    """What comes of a message."""
    came: asyncio.Future[str] = asyncio.get_running_loop().create_future()

    def hear(_subject: str, message: object, _reply: str) -> None:
        if isinstance(message, Cancel) and not came.done():
            came.set_result(message.call_id)

    subscription = await listener.subscribe("pl.x", hear)
    await listener.flush()
    await speaker.publish("pl.x", Cancel(call_id="c1"))
    async with asyncio.timeout(20):
        found = await came
    await subscription.unsubscribe()
    return found


def serial_of(port: int, authority: Path) -> str:
    """The number of the certificate that a new connection sees."""
    with socket.create_connection(("127.0.0.1", port), timeout=20) as plain:
        plain.recv(65536)
        with ssl.create_default_context(cafile=str(authority)).wrap_socket(
            plain, server_hostname="127.0.0.1"
        ) as secure:
            return str((secure.getpeercert() or {})["serialNumber"])


async def test_a_connection_survives_a_new_certificate(tmp_path: Path) -> None:
    """The server reads it on a signal; messages go on, and new connections see it."""
    authority = an_authority(tmp_path)
    a_server(tmp_path)
    (port,) = free_ports(1)
    async with (
        served(tmp_path, port) as server,
        connect(server.url, name="a", ca_file=str(authority), makes_streams=False) as bus,
    ):
        assert await heard(bus, bus) == "c1"
        before = serial_of(port, authority)

        a_server(tmp_path)
        server.process.send_signal(signal.SIGHUP)

        await until(lambda: serial_of(port, authority) != before)
        assert await heard(bus, bus) == "c1"
        assert bus.statistics().reconnects == 0


async def test_another_authority_needs_no_new_start_of_clients(tmp_path: Path) -> None:
    """It is put into their file, and a server that comes back with its certificate is believed."""
    (tmp_path / "old").mkdir()
    (tmp_path / "new").mkdir()
    file, (port,) = tmp_path / "believed.pem", free_ports(1)
    old, new = an_authority(tmp_path / "old" / "ca"), an_authority(tmp_path / "new" / "ca")
    for folder in (tmp_path / "old", tmp_path / "new"):
        files = a_server(folder / "ca")
        files.certificate.rename(folder / "server.pem")
        files.key.rename(folder / "server.key")
    file.write_text(old.read_text())
    async with AsyncExitStack() as stack:
        async with served(tmp_path / "old", port) as server:
            bus = await stack.enter_async_context(connect(server.url, name="a", ca_file=str(file), makes_streams=False))
            assert await heard(bus, bus) == "c1"
        file.write_text(old.read_text() + new.read_text())
        await stack.enter_async_context(served(tmp_path / "new", port))

        await until(lambda: bus.statistics().reconnects == 1)
        assert await heard(bus, bus) == "c1"


async def test_without_tls_nobody_connects(tmp_path: Path) -> None:
    """With the right password, and told nats://: by the authorities that Python knows the server is nobody."""
    an_authority(tmp_path)
    a_server(tmp_path)
    (port,) = free_ports(1)
    async with served(tmp_path, port) as server:
        with pytest.raises(BusDown, match="its certificate is of no authority"):
            async with connect(server.url.replace("tls://", "nats://"), name="a", timeout=1.0, makes_streams=False):
                raise AssertionError("it is connected")


async def test_servers_of_a_cluster_know_each_other_by_their_certificates(tmp_path: Path) -> None:
    """A message goes from one to the other; the routes between them verify both ends."""
    authority = an_authority(tmp_path)
    ports, routes = free_ports(2), free_ports(2)
    blocks = []
    for number, name in enumerate(("one", "two")):
        files = a_server(tmp_path, name)
        blocks.append(
            ROUTES.format(
                own=routes[number], other=routes[1 - number], cert=files.certificate, key=files.key, ca=authority
            )
        )
    async with (
        served(tmp_path, ports[0], "one", blocks[0]) as one,
        served(tmp_path, ports[1], "two", blocks[1]) as two,
        connect(one.url, name="a", ca_file=str(authority), makes_streams=False) as first,
        connect(two.url, name="b", ca_file=str(authority), makes_streams=False) as second,
    ):
        await until(lambda: "Route connection created" in (tmp_path / "one.log").read_text())
        for _ in range(50):
            try:
                async with asyncio.timeout(1):
                    assert await heard(first, second) == "c1"
                break
            except TimeoutError:  # the route does not know of the subscription yet
                continue
        else:
            raise AssertionError("no message came")
