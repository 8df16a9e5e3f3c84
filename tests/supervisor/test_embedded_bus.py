"""The embedded nats-server starts, keeps its port, reports a failed start, and ends with its parent."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from pilotlight_core.bus import BusError, connect
from pilotlight_supervisor.embedded_bus import (
    ROUTE,
    EmbeddedError,
    EmbeddedNats,
    bus_token,
    choose_port,
    choose_ports,
    cluster,
    embedded_nats,
    find_nats_server,
    server_name,
    wait_listening,
    write_config,
)
from pilotlight_supervisor.free_ports import HOST, can_listen, free_port, release_port
from tests.waiting import until

PARENT = """
import asyncio, sys
from pathlib import Path
from pilotlight_supervisor.embedded_bus import embedded_nats

async def main():
    async with embedded_nats(Path(sys.argv[1])) as server:
        print(server.pid, flush=True)
        await asyncio.Event().wait()

asyncio.run(main())
"""


async def test_it_runs_until_the_block_ends_and_keeps_what_it_confirmed(tmp_path: Path) -> None:
    """The next start has the same port and data."""
    async with embedded_nats(tmp_path) as server:
        async with connect(server.url, name="x") as bus:
            await bus.kv("REGISTRY").put("a.b", b"1")
        port, pid = server.port, server.pid

    assert not alive(pid)
    assert (tmp_path / "port").read_text() == f"{port}\n"
    async with embedded_nats(tmp_path) as again:
        assert again.port == port
        async with connect(again.url, name="x") as bus:
            assert await bus.kv("REGISTRY").keys() == ["a.b"]


async def test_its_folder_is_its_owners(tmp_path: Path) -> None:
    """Passwords open the bus, and the store holds what went over it: neither is in a log or on a command line."""
    async with embedded_nats(tmp_path / "nats", nodes=("n1",)) as server:
        names = ["agent-n1", "controller", "duties", "gateway", "operator"]
        tokens = {name: bus_token(server.folder, name) for name in names}
        command = Path(f"/proc/{server.pid}/cmdline").read_text()  # noqa: ASYNC240

        assert [len(token) for token in tokens.values()] == [48] * 5
        assert len(set(tokens.values())) == 5
        assert f"operator:{tokens['operator']}@" in server.url
        assert f"gateway:{tokens['gateway']}@" in server.url_of("gateway")
        assert not any(token in server.log_tail() + command for token in tokens.values())
        assert sorted(path.name for path in (server.folder / "users").iterdir()) == names
        for folder in (server.folder, server.folder / "users"):
            assert folder.stat().st_mode & 0o777 == 0o700
        for file in (server.folder / "nats.conf", *(server.folder / "users").iterdir()):
            assert file.stat().st_mode & 0o777 == 0o600


async def test_a_wrong_password_opens_nothing(tmp_path: Path) -> None:
    """Nor does none, or another user's."""
    async with embedded_nats(tmp_path) as server:
        for place in ("", "gateway:wrong@", f"gateway:{bus_token(tmp_path, 'duties')}@"):
            with pytest.raises(BusError):
                async with connect(f"nats://{place}127.0.0.1:{server.port}", name="x", timeout=0.3):
                    pass


async def test_a_start_that_fails_says_why(tmp_path: Path) -> None:
    """The error holds the end of the server's log."""
    async with embedded_nats(tmp_path / "one") as first:
        second = EmbeddedNats(folder=tmp_path / "two", port=first.port)
        with pytest.raises(EmbeddedError, match="address already in use"):
            await second.start()
        assert second.pid == 0


def test_the_servers_of_a_cluster_know_each_other(tmp_path: Path) -> None:
    """Each has the routes to the other two, under a password of their own; nats-server takes the configuration."""
    folder = tmp_path / "nats"
    members = cluster(folder, choose_ports(folder, 3))
    password = bus_token(folder, ROUTE)
    for member in members:
        config = write_config(folder, members[0].port, ["n1"], member)
        text = config.read_text()
        assert [text.count(f"nats://{ROUTE}:{password}@127.0.0.1:{port}") for port in member.routes] == [0, 1, 1]
        checked = subprocess.run([find_nats_server(), "-t", "-c", config], capture_output=True, text=True, check=False)
        assert checked.returncode == 0, checked.stderr
        assert config.stat().st_mode & 0o777 == 0o600
    assert len({member.folder for member in members} | {server_name(member.folder) for member in members}) == 6
    assert sorted(path.name for path in tmp_path.iterdir()) == ["nats", "nats-2", "nats-3"]


def test_a_state_folder_belongs_to_a_number_of_servers(tmp_path: Path) -> None:
    """What one server kept, three would not find; the ports stay what they were."""
    ports = choose_ports(tmp_path / "nats", 3)
    for port in ports:  # as when the process that chose them has ended
        release_port(HOST, port)
    assert choose_ports(tmp_path / "nats", 3) == ports
    assert len(set(ports)) == 3
    with pytest.raises(EmbeddedError, match=r"kept by 3 nats-server\(s\), not by 1"):
        choose_ports(tmp_path / "nats", 1)

    (tmp_path / "old" / "jetstream").mkdir(parents=True)  # of a version that did not note it
    with pytest.raises(EmbeddedError, match=r"kept by 1 nats-server\(s\), not by 3"):
        choose_ports(tmp_path / "old", 3)
    assert len(choose_ports(tmp_path / "old", 1)) == 1


def test_a_noted_port_that_is_taken_is_given_up(tmp_path: Path) -> None:
    """Another port is chosen, and noted."""
    import socket

    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        (tmp_path / "port").write_text(f"{port}\n")

        assert not can_listen("127.0.0.1", port)
        chosen = choose_port(tmp_path)

    assert chosen != port
    assert (tmp_path / "port").read_text() == f"{chosen}\n"


async def test_nobody_listening_is_noticed_in_time(tmp_path: Path) -> None:
    """Waiting for a server that does not come ends."""
    assert not await wait_listening(tmp_path, free_port(), 0.1)


async def test_it_dies_with_its_parent(tmp_path: Path) -> None:
    """`kill -9` of the process that started it ends the server too."""
    parent = await asyncio.create_subprocess_exec(
        sys.executable, "-c", PARENT, str(tmp_path), stdout=asyncio.subprocess.PIPE
    )
    assert parent.stdout is not None
    pid = int(await parent.stdout.readline())
    assert alive(pid)

    os.kill(parent.pid, signal.SIGKILL)
    await parent.wait()

    await until(lambda: not alive(pid))


def alive(pid: int) -> bool:
    """Whether the process exists and is no zombie."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False
