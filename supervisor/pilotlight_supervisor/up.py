"""`python -m pilotlight_supervisor.up`: the whole platform on one machine, until Ctrl-C.

It keeps a nats-server, a gateway, a controller and an agent running as processes, and ends them in order:

    1. the gateway stops admitting and finishes its calls
    2. the agents end their containers and report their usage
    3. the controller releases its lease
    4. nats-server ends last, because all others communicate through it

Each step is bounded; then the process is killed. Only one `up` at a time uses a state folder.
"""

from __future__ import annotations

import pilotlight_core.lean_libraries  # isort: skip # noqa: F401 - before what would import it whole

import asyncio
import fcntl
import os
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, contextmanager, nullcontext
from functools import partial
from pathlib import Path

import msgspec

from pilotlight_core.bus import bus_users
from pilotlight_core.host import config, telemetry
from pilotlight_core.host.blobs.blob_opening import open_blobs
from pilotlight_core.host.file_permissions import WALK_ONLY, private_folder
from pilotlight_core.model.api.pools.pool_agent_api import POOL_SOCKET
from pilotlight_supervisor.blank_readiness import wait_blanks
from pilotlight_supervisor.client_file import choose_client_file
from pilotlight_supervisor.dashboard_link import login_link
from pilotlight_supervisor.embedded_bus import EmbeddedError, choose_ports, user_url
from pilotlight_supervisor.free_ports import claim_port, free_port
from pilotlight_supervisor.platform_plan import GatewayPorts, UpSettings, gateway_name, measured, plan, pool_agent
from pilotlight_supervisor.pool_agents import PoolAgents
from pilotlight_supervisor.readiness import ReadyFile, UpError, wait_ready, write_ready
from pilotlight_supervisor.restore_mark import incomplete_restore
from pilotlight_supervisor.supervisor import ManagedProcess, Supervisor

LOOPBACK = "127.0.0.1"
MAX_PORT = 65_535
DASHBOARD_ABOVE = 10
"""The port of the API, if nobody has that one."""
LONGEST_SOCKET = 107
"""Bytes of a socket's name."""


@contextmanager
def locked(state: Path) -> Iterator[None]:
    """Lock the state folder.

    Raises:
        UpError: if another `up` has it, or it cannot be created.
    """
    try:
        private_folder(state, WALK_ONLY)
        lock = (state / "up.lock").open("a+")
    except OSError as error:
        raise UpError(f"{state} cannot hold the state ({error.strerror}): choose another --state-dir.") from None
    with lock as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.seek(0)
            raise UpError(
                f"{state} is in use by another 'pilotlight up' (pid {file.read().strip() or 'unknown'}): "
                "stop that one, or choose another --state-dir."
            ) from None
        file.truncate(0)
        file.write(f"{os.getpid()}\n")
        file.flush()
        yield


def claim_ports(settings: UpSettings) -> None:
    """Claim the ports that the settings name.

    Raises:
        UpError: if one is in use, or another platform that starts has it.
    """
    named = (
        (settings.host, settings.port, "--port"),
        (settings.host, settings.grpc_port, "--grpc-port"),
        (LOOPBACK, settings.gateway_metrics_port, "--gateway-metrics-port"),
        (LOOPBACK, settings.nats_port, "--nats-port"),
    )
    for host, port, flag in named:
        if port:
            _claim(host, port, flag)


def _claim(host: str, port: int, flag: str) -> None:
    if port > MAX_PORT or not claim_port(host, port):
        why = "is none" if port > MAX_PORT else "is in use"
        raise UpError(f"Port {port} of {host} {why}: choose another with {flag}.")


def claim_metrics_ports(settings: UpSettings) -> dict[str, int]:
    """Claim a port for the metrics of each process beside gateways, by its name.

    Raises:
        UpError: if one of those that follow `metrics_port` is in use.
    """
    names = measured(settings)
    if not settings.metrics_port:
        return {name: free_port() for name in names}
    ports = {name: settings.metrics_port + number for number, name in enumerate(names)}
    for port in ports.values():
        _claim(LOOPBACK, port, "--metrics-port")
    return ports


def choose_dashboard_port(settings: UpSettings, port: int) -> int:
    """Claim a port for the dashboard of a platform whose API is at `port`; 0: there is none.

    Raises:
        UpError: if the one that is named is in use.
    """
    if not settings.dashboard:
        return 0
    if settings.dashboard_port:
        _claim(settings.host, settings.dashboard_port, "--dashboard-port")
        return settings.dashboard_port
    usual = port + DASHBOARD_ABOVE
    return usual if usual <= MAX_PORT and claim_port(settings.host, usual) else free_port(settings.host)


def check_blob_url(url: str) -> None:
    """Check the blob store's address; "" is a folder of the state's.

    Raises:
        UpError: if it is invalid.
    """
    try:
        if url:
            open_blobs(url)
    except ValueError as error:
        raise UpError(f"--blob-url: {error}.") from None


async def check_fake_gpus(spec: str) -> None:
    """Check the spec of fake GPUs with the runtime's parser; "" is none.

    Raises:
        UpError: with the parser's message.
    """
    if spec and (why := await _refusal_of("pilotlight_runtime.devices.fake.fake_machine", spec)):
        raise UpError(f"{why} Correct --fake-gpus.")


async def check_bases(bases: Sequence[str], sandbox: str) -> None:
    """Run each base environment once, as agents will, which would be started again and again for a wrong one.

    Raises:
        UpError: naming the first that cannot run functions.
    """
    if bases and (why := await _refusal_of("pilotlight_runtime.containers.blanks.base_environment", sandbox, *bases)):
        raise UpError(why)


async def _refusal_of(module: str, *words: str) -> str:
    """What the check of the runtime says against these words; "": nothing."""
    child = await asyncio.create_subprocess_exec(sys.executable, "-m", module, *words, stderr=asyncio.subprocess.PIPE)
    _, message = await child.communicate()
    return message.decode(errors="replace").strip() if child.returncode else ""


def check_pool_socket(settings: UpSettings) -> None:
    """Check that the socket for agents of pools can be where it is to be.

    Raises:
        UpError: if its name is too long for one.
    """
    path = settings.state_dir / POOL_SOCKET
    if settings.pool_agents and len(os.fsencode(path)) > LONGEST_SOCKET:
        raise UpError(f"{path} is too long for a socket, which --pool-agents needs: choose a shorter --state-dir.")


async def run(settings: UpSettings) -> None:
    """Run the platform until SIGINT or SIGTERM.

    Raises:
        UpError, EmbeddedError: if it cannot be started; nothing is left running then.
    """
    check_blob_url(settings.blob_url)
    check_pool_socket(settings)
    await check_fake_gpus(settings.fake_gpus)
    await check_bases(settings.base, settings.sandbox)
    claim_ports(settings)
    metrics = claim_metrics_ports(settings)
    port = settings.port or free_port(settings.host)
    nats = settings.state_dir / "nats"
    nats_ports = choose_ports(nats, settings.nats_servers, settings.nats_port)
    address = settings.url_of(port)
    client_file = await choose_client_file(settings.client_file, settings.state_dir, address)
    settings = msgspec.structs.replace(settings, client_file=str(client_file))
    ready = ReadyFile(
        url=address,
        api_key_file=settings.client_file,
        nats_url=user_url(nats, nats_ports, bus_users.OPERATOR),
        state_dir=str(settings.state_dir.resolve()),
    )
    publics = [port, *(free_port(settings.host) for _ in range(settings.extra_gateways))]
    ports = [GatewayPorts(public, free_port(), free_port()) for public in publics]
    ports[0] = ports[0]._replace(metrics=settings.gateway_metrics_port or ports[0].metrics)
    ready = msgspec.structs.replace(
        ready,
        urls=tuple(settings.url_of(own.public) for own in ports),
        metrics_urls=tuple(_metrics_url(own.metrics) for own in ports),
        metrics_by_process={
            **{gateway_name(number): _metrics_url(own.metrics) for number, own in enumerate(ports, 1)},
            **{name: _metrics_url(port) for name, port in metrics.items()},
        },
    )
    dashboard_port = choose_dashboard_port(settings, port)
    if dashboard_port:
        ready = msgspec.structs.replace(ready, dashboard_url=settings.url_of(dashboard_port))
    parts = plan(settings, ports=ports, metrics=metrics, nats_ports=nats_ports, dashboard_port=dashboard_port)
    ready_file = Path(settings.json_ready) if settings.json_ready else None

    def pools_of(supervisor: Supervisor) -> AbstractAsyncContextManager[None]:
        agents = PoolAgents(supervisor, partial(pool_agent, settings, nats_ports=nats_ports), settings.pool_agents)
        return agents.listening(settings.state_dir / POOL_SOCKET) if settings.pool_agents else nullcontext()

    await supervise(parts, settings.state_dir / "logs", ready, ready_file, pools_of, settings.ca_file)


def _metrics_url(port: int) -> str:
    return f"http://{LOOPBACK}:{port}/metrics"


async def supervise(
    parts: tuple[ManagedProcess, ...],
    logs: Path,
    ready: ReadyFile,
    ready_file: Path | None,
    beside: Callable[[Supervisor], AbstractAsyncContextManager[None]] = lambda _: nullcontext(),
    ca_file: str = "",
) -> None:
    """Run `parts` until SIGINT or SIGTERM, and what is `beside` them; a second signal kills them.

    When `ready.url` answers, and agents have their blanks, print a line and write the ready file, the latter again
    whenever a pid changes. `ca_file`: the authority of the gateway's certificate.
    """
    is_up = False

    def write_pids() -> None:
        if is_up and ready_file is not None:
            write_ready(ready_file, msgspec.structs.replace(ready, pids=supervisor.pids))

    supervisor = Supervisor(parts, logs, write_pids)
    stop = _stop_on_signals(supervisor)
    try:
        async with beside(supervisor):
            is_up = await _come_up(supervisor, ready, stop)
            if is_up:
                write_pids()
                print(f"Pilotlight is up at {ready.url} (key in {ready.api_key_file})", flush=True)  # noqa: T201
                if ready.dashboard_url:
                    await _print_link(ready, ca_file, stop)
                await stop.wait()
    finally:
        is_up = False
        await supervisor.stop()


async def _print_link(ready: ReadyFile, ca_file: str, stop: asyncio.Event) -> None:
    """Say where the dashboard is, unless everything is to stop before it answers. It is no condition of anything."""
    link = asyncio.create_task(login_link(ready.dashboard_url, ready.url, Path(ready.api_key_file), ca_file))
    stopped = asyncio.create_task(stop.wait())
    await asyncio.wait((link, stopped), return_when=asyncio.FIRST_COMPLETED)
    if link.done() and not link.cancelled() and link.exception() is None:
        shown = f"The dashboard: {link.result()}" if link.result() else "note: the dashboard does not answer yet."
        print(shown, flush=True)  # noqa: T201
    for task in (link, stopped):
        task.cancel()
    await asyncio.wait((link, stopped))


async def _come_up(supervisor: Supervisor, ready: ReadyFile, stop: asyncio.Event) -> bool:

    async def all_ready() -> None:
        await supervisor.start()
        await wait_ready(supervisor, ready.url)
        agents = {name: url for name, url in ready.metrics_by_process.items() if name.startswith("agent")}
        if not await wait_blanks(supervisor, agents):
            print("note: not all blanks are ready yet: until they are, first calls start slower.", flush=True)  # noqa: T201

    up, stopped = asyncio.create_task(all_ready()), asyncio.create_task(stop.wait())
    try:
        await asyncio.wait((up, stopped), return_when=asyncio.FIRST_COMPLETED)
        if up.done():
            up.result()
        return up.done()
    finally:
        for task in (up, stopped):
            task.cancel()
        await asyncio.wait((up, stopped))


def _stop_on_signals(supervisor: Supervisor) -> asyncio.Event:
    stop = asyncio.Event()

    def on_signal() -> None:
        if stop.is_set():
            supervisor.kill()
        stop.set()

    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, on_signal)
    return stop


def main() -> None:
    settings = config.load(UpSettings, "The whole platform on this machine, until Ctrl-C.")
    telemetry.setup("up")
    try:
        with locked(settings.state_dir):
            if why := incomplete_restore(settings.state_dir):
                raise UpError(why)
            asyncio.run(run(settings))
    except (UpError, EmbeddedError) as error:
        print(f"error: {error}", file=sys.stderr)  # noqa: T201
        raise SystemExit(1) from None


if __name__ == "__main__":
    main()
