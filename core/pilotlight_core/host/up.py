"""`python -m pilotlight_core.host.up`: the whole platform on one machine, until Ctrl-C.

It keeps a nats-server, a gateway, a controller and an agent running as processes, and ends them in order:

    1. the gateway stops admitting and finishes what it holds
    2. the agents end their containers and hand in their usage
    3. the controller gives up its lease
    4. nats-server ends last, because all others speak through it

Each step has a bound, after which the process is killed. One `up` at a time uses a state folder.
"""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import os
import signal
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import msgspec
import structlog

from pilotlight_core.host import config, telemetry
from pilotlight_core.host.embedded import (
    EmbeddedError,
    can_listen,
    choose_port,
    find_nats_server,
    free_port,
    nats_url,
    wait_listening,
    write_config,
)
from pilotlight_core.host.supervisor import Part, Supervisor

log = structlog.get_logger(__name__)

READY_WITHIN = 60.0
READY_EVERY = 0.03
NATS_WITHIN = 15.0
GIVE_UP_AFTER = 4
"""Deaths of one part before the platform was ever ready."""
Text = Annotated[str, msgspec.Meta(description="")]


class UpError(RuntimeError):
    """The platform cannot be started; the message says why."""


class UpSettings(msgspec.Struct, frozen=True, kw_only=True):
    """What `up` is told."""

    state_dir: Annotated[Path, msgspec.Meta(description="where this machine keeps everything")] = Path(".pilotlight")
    host: Annotated[str, msgspec.Meta(description="address of the HTTP API")] = "127.0.0.1"
    port: Annotated[config.Port, msgspec.Meta(description="port of the HTTP API; 0: any")] = 8470
    nats_port: Annotated[config.Port, msgspec.Meta(description="port of the embedded nats-server; 0: any")] = 0
    region: Annotated[config.Name, msgspec.Meta(description="the region")] = "local"
    zone: Annotated[config.Name, msgspec.Meta(description="the zone")] = "local-a"
    agent: Annotated[bool, msgspec.Meta(description="run an agent on this machine")] = True
    extra_agents: Annotated[config.Count, msgspec.Meta(description="further agents, as if nodes of their own")] = 0
    cpu_slots: Annotated[config.Count, msgspec.Meta(description="CPU slots of each agent; 0: the machine's cores")] = 0
    blanks: Annotated[config.Count, msgspec.Meta(description="blanks that each agent keeps")] = 2
    sandbox: Annotated[str, msgspec.Meta(description="bubblewrap, or process (no isolation: one tenant only)")] = (
        "bubblewrap"
    )
    blob_url: Annotated[str, msgspec.Meta(description="file:///… or s3://bucket/prefix; empty: below --state-dir")] = ""
    client_file: Annotated[str, msgspec.Meta(description="where the first admin key is written")] = ""
    json_ready: Annotated[str, msgspec.Meta(description="file to write when ready: url, api_key_file, pids")] = ""

    def __post_init__(self) -> None:
        if self.sandbox not in config.SANDBOXES:
            raise ValueError(f"expected one of {', '.join(config.SANDBOXES)} - at `$.sandbox`")


class Ready(msgspec.Struct, frozen=True, kw_only=True):
    """The ready file; written anew when a pid changes."""

    url: str
    api_key_file: str
    nats_url: str
    state_dir: str
    pids: dict[str, int]


def client_file(settings: UpSettings) -> Path:
    """Where the SDK looks for the address and key."""
    if settings.client_file:
        return Path(settings.client_file).expanduser().resolve()
    home = Path(os.environ.get("PILOTLIGHT_HOME") or "~/.pilotlight").expanduser()
    return (home / "client.json").resolve()


def plan(settings: UpSettings, *, port: int, nats_port: int, internal_port: int) -> tuple[Part, ...]:
    """The processes of a platform, in the order in which they are shown."""
    state = settings.state_dir.resolve()
    common = (
        "--nats-url", nats_url(nats_port), "--state-dir", str(state), "--region", settings.region, "--zone", settings.zone,
    )  # fmt: skip
    blob_url = settings.blob_url or f"file://{state / 'blobs'}"
    gateway = (
        "--name", "gateway", "--host", settings.host, "--port", str(port), "--internal-port", str(internal_port),
        "--blob-url", blob_url, "--bootstrap-client-file", str(client_file(settings)),
    )  # fmt: skip

    async def nats_ready() -> None:
        if not await wait_listening(nats_port, NATS_WITHIN):
            raise UpError(f"nats-server does not answer on port {nats_port}.")

    return (
        Part(
            name="nats", rank=0, stop_within=5.0, ready=nats_ready,
            command=(str(find_nats_server()), "-c", str(write_config(state / "nats", nats_port))),
        ),
        Part(name="gateway", rank=3, stop_within=15.0, command=_python("pilotlight_gateway", *common, *gateway)),
        Part(
            name="controller", rank=1, stop_within=5.0,
            command=_python("pilotlight_autoscaler", *common, "--name", "controller"),
        ),
        *(_agent(settings, number, common, blob_url) for number in _agents(settings)),
    )  # fmt: skip


def _agents(settings: UpSettings) -> range:
    return range(1, 1 + (1 if settings.agent else 0) + settings.extra_agents)


def _agent(settings: UpSettings, number: int, common: Sequence[str], blob_url: str) -> Part:
    suffix = "" if number == 1 else f"-{number}"
    flags = (
        "--name", f"agent{suffix}", "--node", f"local{suffix}", "--cpu-slots", str(settings.cpu_slots),
        "--blanks", str(settings.blanks), "--sandbox", settings.sandbox, "--blob-url", blob_url,
    )  # fmt: skip
    return Part(name=f"agent{suffix}", rank=2, stop_within=10.0, command=_python("pilotlight_runtime", *common, *flags))


def _python(module: str, *arguments: str) -> tuple[str, ...]:
    return (sys.executable, "-m", module, *arguments)


@contextmanager
def locked(state: Path) -> Iterator[None]:
    """The state folder for ourselves.

    Raises:
        UpError: if another `up` has it.
    """
    state.mkdir(parents=True, exist_ok=True)
    with (state / "up.lock").open("a+") as file:
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


def choose_http_port(settings: UpSettings) -> int:
    """The port of the HTTP API.

    Raises:
        UpError: if somebody listens there already.
    """
    if not settings.port:
        return free_port(settings.host)
    if not can_listen(settings.host, settings.port):
        raise UpError(f"Port {settings.port} of {settings.host} is in use: choose another with --port.")
    return settings.port


async def wait_ready(supervisor: Supervisor, host: str, port: int, within: float = READY_WITHIN) -> None:
    """Until the gateway says that it is ready.

    Raises:
        UpError: with the end of the logs, if a part dies again and again, or it takes too long.
    """
    try:
        async with asyncio.timeout(within):
            while await http_status(host, port, "/readyz") != 200:
                for name, statistics in supervisor.statistics().items():
                    if statistics.deaths >= GIVE_UP_AFTER:
                        raise UpError(f"{name} does not start:\n{supervisor.log_tail(name)}")
                await asyncio.sleep(READY_EVERY)
    except TimeoutError:
        tails = "\n".join(f"--- {name}\n{supervisor.log_tail(name)[-1000:]}" for name in supervisor.statistics())
        raise UpError(f"The gateway is not ready after {within:.0f} s.\n{tails}") from None


async def http_status(host: str, port: int, path: str) -> int:
    """The status of a GET, 0 if there is no answer."""
    try:
        reader, writer = await asyncio.open_connection(host, port)
    except OSError:
        return 0
    try:
        async with asyncio.timeout(2.0):
            writer.write(f"GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n".encode())
            words = (await reader.readline()).split()
        return int(words[1]) if len(words) > 1 and words[1].isdigit() else 0
    except (OSError, TimeoutError):
        return 0
    finally:
        writer.close()
        with contextlib.suppress(OSError):
            await writer.wait_closed()


async def run(settings: UpSettings) -> None:
    """Run the platform until SIGINT or SIGTERM; a second one ends it without waiting.

    Raises:
        UpError, EmbeddedError: if it cannot be started; nothing is left running then.
    """
    port = choose_http_port(settings)
    if settings.nats_port and not can_listen("127.0.0.1", settings.nats_port):
        raise UpError(f"Port {settings.nats_port} is in use: choose another with --nats-port.")
    nats_port = choose_port(settings.state_dir / "nats", settings.nats_port)
    parts = plan(settings, port=port, nats_port=nats_port, internal_port=free_port())
    ready: list[Path] = []

    def tell() -> None:
        for path in ready:
            write_ready(path, settings, supervisor, port, nats_port)

    supervisor = Supervisor(parts, settings.state_dir / "logs", tell)
    stop = _stop_on_signals(supervisor)
    try:
        if await _until_ready(supervisor, settings.host, port, stop):
            if settings.json_ready:
                ready.append(Path(settings.json_ready))
                tell()
            print(f"Pilotlight is up at http://{settings.host}:{port} (key in {client_file(settings)})", flush=True)  # noqa: T201
            await stop.wait()
    finally:
        ready.clear()
        await supervisor.stop()


async def _until_ready(supervisor: Supervisor, host: str, port: int, stop: asyncio.Event) -> bool:
    async def come_up() -> None:
        await supervisor.start()
        await wait_ready(supervisor, host, port)

    up, told = asyncio.create_task(come_up()), asyncio.create_task(stop.wait())
    try:
        await asyncio.wait((up, told), return_when=asyncio.FIRST_COMPLETED)
        if up.done():
            up.result()
        return up.done()
    finally:
        for task in (up, told):
            task.cancel()
        await asyncio.wait((up, told))


def _stop_on_signals(supervisor: Supervisor) -> asyncio.Event:
    stop = asyncio.Event()

    def told() -> None:
        if stop.is_set():
            supervisor.kill()
        stop.set()

    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, told)
    return stop


def write_ready(path: Path, settings: UpSettings, supervisor: Supervisor, port: int, nats_port: int) -> None:
    """Write the ready file, whole or not at all."""
    ready = Ready(
        url=f"http://{settings.host}:{port}",
        api_key_file=str(client_file(settings)),
        nats_url=nats_url(nats_port),
        state_dir=str(settings.state_dir.resolve()),
        pids=supervisor.pids,
    )
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    temporary.write_bytes(msgspec.json.encode(ready))
    temporary.rename(path)


def main() -> None:
    """The command."""
    settings = config.load(UpSettings, "The whole platform on this machine, until Ctrl-C.")
    telemetry.setup("up")
    try:
        with locked(settings.state_dir):
            asyncio.run(run(settings))
    except (UpError, EmbeddedError) as error:
        print(f"error: {error}", file=sys.stderr)  # noqa: T201
        raise SystemExit(1) from None


if __name__ == "__main__":
    main()
