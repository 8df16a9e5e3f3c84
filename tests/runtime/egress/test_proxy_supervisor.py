"""The agent's side of the proxy, with the real process."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import msgspec
import pytest

from pilotlight_runtime.egress.function_counts import EgressCounts
from pilotlight_runtime.egress.proxy_messages import OpenWay, ProxyBeat
from pilotlight_runtime.egress.proxy_process import NICER
from pilotlight_runtime.egress.proxy_supervisor import BEATS_MISSED, SOCKET, ProxySupervisor, listening_socket
from pilotlight_runtime.sandbox.descriptors import SO_PASSRIGHTS
from tests.waiting import until

REFUSED = b"CONNECT other.example.com:443 HTTP/1.1\r\n\r\n"


def way(container: str, *targets: str) -> OpenWay:
    return OpenWay(container=container, tenant="acme", function=f"acme:app.{container}", targets=targets)


@asynccontextmanager
async def supervised(*command: str, beat_s: float = 1.0) -> AsyncIterator[ProxySupervisor]:
    supervisor = ProxySupervisor(command=command or None, beat_s=beat_s)
    running = asyncio.create_task(supervisor.run())
    try:
        yield supervisor
    finally:
        running.cancel()
        await asyncio.wait([running])
        supervisor.close("one")
        supervisor.close("two")


async def asked(folder: Path, data: bytes = REFUSED) -> bytes:
    """What the proxy answers; it may have to start first."""
    reader, writer = await asyncio.open_unix_connection(f"{folder}/{SOCKET}")
    writer.write(data)
    try:
        return await reader.read()
    except ConnectionResetError:
        return b""
    finally:
        writer.close()


def folder_of(root: Path, container: str) -> Path:
    folder = root / container
    folder.mkdir()
    return folder


def pid_of(supervisor: ProxySupervisor) -> int:
    assert supervisor.process is not None
    return supervisor.process.pid


async def test_the_first_way_starts_it(tmp_path: Path, anyio_backend: str) -> None:
    """Before there is none; whoever comes meanwhile waits. What was refused is counted by function."""
    async with supervised() as supervisor:
        assert supervisor.process is None
        folder = folder_of(tmp_path, "one")
        supervisor.open(way("one", "api.example.com:443"), folder)
        assert b" 403 other.example.com:443 is not in network=" in await asked(folder)
        await until(lambda: supervisor.counts == {"acme:app.one": EgressCounts(refused=1)})
        assert supervisor.open_ways == 1


def agents_descriptors(process: Path) -> list[str]:
    """What a process has open of the files and sockets that this one has, but the ways and what they talk over."""
    opened = [os.readlink(path) for path in (process / "fd").iterdir()]  # noqa: PTH115 - a socket is no path
    named = {line.split()[6]: line.split()[-1] for line in Path("/proc/net/unix").read_text().splitlines()[1:]}
    ways = {f"socket:[{inode}]" for inode, path in named.items() if path.endswith(SOCKET)}
    own = {os.readlink(path) for path in Path("/proc/self/fd").iterdir() if path.is_symlink()}  # noqa: PTH115
    standard = {os.readlink(f"/proc/self/fd/{number}") for number in (1, 2)} | {"/dev/null"}  # noqa: PTH115
    return sorted(each for each in own.intersection(opened) - ways - standard if not each.startswith("anon_inode:"))


async def test_it_has_no_rights(tmp_path: Path, anyio_backend: str) -> None:
    """Nobody's, nothing of the agent's environment, and no descriptor but its own."""
    with socket.socket() as agents:
        agents.set_inheritable(True)
        await check_rights(tmp_path)


async def check_rights(tmp_path: Path) -> None:
    async with supervised() as supervisor:
        folder = folder_of(tmp_path, "one")
        supervisor.open(way("one"), folder)
        await asked(folder)
        process = Path(f"/proc/{pid_of(supervisor)}")
        status = dict(line.split(":\t", 1) for line in (process / "status").read_text().splitlines())
        assert status["NoNewPrivs"] == "1"
        assert agents_descriptors(process) == []
        nice = os.getpriority(os.PRIO_PROCESS, pid_of(supervisor))
        assert nice == min(19, os.getpriority(os.PRIO_PROCESS, 0) + NICER)
        if os.geteuid() == 0:
            assert set(status["Uid"].split()) == {"65534"}
            assert status["Groups"].strip() == ""
            assert int(status["CapEff"], 16) == 0
            names = {entry.split("=")[0] for entry in (process / "environ").read_text().split("\0") if entry}
            assert names == {"PATH", "LANG", "LOCALDOMAIN"}


async def test_one_that_is_killed_is_started_again(tmp_path: Path, anyio_backend: str) -> None:
    """With all ways; its connections end, and those that come meanwhile wait. What was counted stays."""
    async with supervised() as supervisor:
        one, two = folder_of(tmp_path, "one"), folder_of(tmp_path, "two")
        supervisor.open(way("one"), one)
        supervisor.open(way("two"), two)
        assert b" 403 " in await asked(one)
        await until(lambda: supervisor.counts.get("acme:app.one") == EgressCounts(refused=1))
        reader, writer = await asyncio.open_unix_connection(f"{one}/{SOCKET}")
        writer.write(b"CONNECT ")
        os.kill(pid_of(supervisor), 9)

        with suppress(ConnectionResetError):
            assert await reader.read() == b""
        writer.close()
        assert b" 403 " in await asked(two)
        assert b" 403 " in await asked(one)
        await until(lambda: supervisor.counts.get("acme:app.one") == EgressCounts(refused=2))
        assert supervisor.starts == 2


async def test_a_way_that_is_closed(tmp_path: Path, anyio_backend: str) -> None:
    """Its socket takes nobody; the others' do, and what it had is counted."""
    async with supervised() as supervisor:
        one, two = folder_of(tmp_path, "one"), folder_of(tmp_path, "two")
        supervisor.open(way("one"), one)
        supervisor.open(way("two"), two)
        assert b" 403 " in await asked(one)
        supervisor.close("one")
        supervisor.close("one")
        assert b" 403 " in await asked(two)
        with pytest.raises(ConnectionRefusedError):
            await asked(one)
        await until(lambda: supervisor.counts.get("acme:app.one") == EgressCounts(refused=1))
        assert supervisor.open_ways == 1


async def test_it_ends_with_the_agent(tmp_path: Path, anyio_backend: str) -> None:
    """In order here; that it dies with a killed one is `test_proxy_process.py`."""
    async with supervised() as supervisor:
        folder = folder_of(tmp_path, "one")
        supervisor.open(way("one"), folder)
        await asked(folder)
        pid = pid_of(supervisor)
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


async def test_one_that_says_nonsense_is_ended(tmp_path: Path, anyio_backend: str) -> None:
    """It reads what tenants send, so the agent believes it little."""
    nonsense = "import os, sys, time; os.write(int(sys.argv[1]), b'nonsense'); time.sleep(600)"
    async with supervised(sys.executable, "-c", nonsense) as supervisor:
        supervisor.open(way("one"), folder_of(tmp_path, "one"))
        await until(lambda: supervisor.starts >= 2)
        assert supervisor.counts == {}


async def test_one_that_hangs_is_killed(tmp_path: Path, anyio_backend: str) -> None:
    """It said something once, and then no more: whatever holds it up, another one serves."""
    beat = msgspec.msgpack.encode(ProxyBeat())
    hangs = f"import os, sys, time; os.write(int(sys.argv[1]), {beat!r}); time.sleep(600)"
    async with supervised(sys.executable, "-c", hangs, beat_s=0.01) as supervisor:
        supervisor.open(way("one"), folder_of(tmp_path, "one"))
        await until(lambda: supervisor.starts >= 2)


@pytest.mark.variant
async def test_one_that_is_stopped_is_killed(tmp_path: Path, anyio_backend: str) -> None:
    """The real one, which nothing else than its beat tells from one that has nothing to do."""
    async with supervised() as supervisor:
        folder = folder_of(tmp_path, "one")
        supervisor.open(way("one"), folder)
        assert b" 403 " in await asked(folder)
        await until(lambda: supervisor._beats_left <= BEATS_MISSED)  # before its first beat it has a minute to start
        os.kill(pid_of(supervisor), signal.SIGSTOP)
        assert b" 403 " in await asked(folder)
        assert supervisor.starts == 2


async def test_it_takes_no_descriptors(tmp_path: Path, anyio_backend: str) -> None:
    """Where the kernel can refuse them: to drop one may take as long as its sender likes."""
    with listening_socket(tmp_path) as listener:
        try:
            assert listener.getsockopt(socket.SOL_SOCKET, SO_PASSRIGHTS) == 0
        except OSError:
            pytest.skip("this kernel passes them to everybody (before 6.16)")
        with socket.socket(socket.AF_UNIX) as client:
            client.connect(str(tmp_path / SOCKET))
            with pytest.raises(PermissionError):
                socket.send_fds(client, [b"x"], [client.fileno()])
            taken, _ = listener.accept()
            with taken, pytest.raises(PermissionError):
                socket.send_fds(client, [b"x"], [client.fileno()])


async def test_one_that_does_not_read_holds_up_nobody(tmp_path: Path, anyio_backend: str) -> None:
    """What it is told waits, and the agent goes on."""
    async with supervised(sys.executable, "-c", "import time; time.sleep(600)") as supervisor:
        folder = folder_of(tmp_path, "one")
        targets = tuple(f"{'a' * 60}.{'b' * 60}.h{n}.example.com:443" for n in range(64))
        supervisor.open(way("one", *targets), folder)
        await until(lambda: supervisor.starts == 1)
        for _ in range(100):
            supervisor.open(way("one", *targets), folder)
        assert supervisor.open_ways == 1


def test_a_socket_in_a_deep_folder(tmp_path: Path) -> None:
    """A path may be longer than a socket's; what a dead agent left there is replaced."""
    folder = tmp_path / ("d" * 120)
    folder.mkdir()
    listening_socket(folder).close()
    with listening_socket(folder):
        assert (folder / SOCKET).stat().st_mode & 0o777 == 0o666
