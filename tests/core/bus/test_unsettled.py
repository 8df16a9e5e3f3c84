"""Writes of which three servers cannot say yet whether they stand: two of them are stopped, and go on later."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from pilotlight_core.bus import Bus, BusError, BusTimeout, KeyExists, KvEntry, WrongRevision, connect
from pilotlight_core.bus.streams import StreamLimits, bucket_stream, key_subject, stream_configs
from pilotlight_core.model.ids import token
from pilotlight_core.model.subjects import JOB_BUCKET
from pilotlight_supervisor.embedded_bus import (
    ClusterServer,
    bus_token,
    choose_ports,
    cluster,
    find_nats_server,
    nats_url,
    server_name,
    wait_listening,
    with_parent,
    write_config,
)
from tests.waiting import until, until_found

STREAM = bucket_stream(JOB_BUCKET)


@dataclass
class Servers:
    """Three servers that keep one bucket."""

    folder: Path
    members: tuple[ClusterServer, ...]
    processes: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)

    def start(self) -> None:
        for member in self.members:
            config = write_config(self.folder, self.members[0].port, (), member)
            log = member.folder / "server.log"
            command = with_parent(find_nats_server(), "-c", config, "-l", log)
            self.processes[server_name(member.folder)] = subprocess.Popen(command)

    async def make_bucket(self) -> None:
        (config,) = (one for one in stream_configs(StreamLimits(replicas=3)) if one["name"] == STREAM)
        for member in self.members:
            assert await wait_listening(member.folder, member.port, 10.0)
        async with connect(self.url(self.members[0]), name="setup", makes_streams=False) as bus:

            async def made() -> bool:
                with suppress(BusError):  # they have not found each other yet
                    await bus.jetstream.ensure_stream(config)
                    return True
                return False

            await until_found(made, 60.0)

    async def leader(self) -> ClusterServer:
        """Who leads the bucket."""
        async with connect(self.url(self.members[0]), name="setup", makes_streams=False) as bus:
            cluster_info = (await bus.jetstream.api(f"STREAM.INFO.{STREAM}", {})).cluster
        assert cluster_info is not None
        return next(member for member in self.members if server_name(member.folder) == cluster_info["leader"])

    def url(self, member: ClusterServer) -> str:
        return nats_url(member.port, bus_token(self.folder))

    def signal(self, number: signal.Signals) -> None:
        for process in self.processes.values():
            process.send_signal(number)

    def stop(self, but: ClusterServer) -> None:
        """Stop the other servers, and wait until they are stopped: a signalled one may still confirm."""
        others = [process for name, process in self.processes.items() if name != server_name(but.folder)]
        for process in others:
            process.send_signal(signal.SIGSTOP)
        for process in others:
            os.waitid(os.P_PID, process.pid, os.WSTOPPED)


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Servers]:
    folder = tmp_path_factory.mktemp("cluster") / "nats"
    servers = Servers(folder, cluster(folder, choose_ports(folder, 3)))
    try:
        servers.start()
        asyncio.run(servers.make_bucket())
        yield servers
    finally:
        servers.signal(signal.SIGCONT)
        servers.signal(signal.SIGTERM)
        for process in servers.processes.values():
            process.wait(10)


@pytest.fixture
async def leader(servers: Servers) -> ClusterServer:
    return await servers.leader()


@pytest.fixture
async def bus(servers: Servers, leader: ClusterServer) -> AsyncIterator[Bus]:
    """A connection to the server that leads."""
    async with connect(servers.url(leader), name="test", makes_streams=False) as bus:
        yield bus


@contextmanager
def undecided(servers: Servers, leader: ClusterServer) -> Iterator[None]:
    """While the others are stopped, the leader accepts writes that it cannot confirm."""
    servers.stop(but=leader)
    try:
        yield
    finally:
        servers.signal(signal.SIGCONT)


async def refused(bus: Bus, before: int) -> None:
    """Until the server has answered something after `before` messages: that it cannot say."""
    await until(lambda: bus.statistics().messages_in > before)
    await asyncio.sleep(0)


async def test_a_write_behind_one_that_is_not_settled_is_no_conflict(
    servers: Servers, leader: ClusterServer, bus: Bus
) -> None:
    """It becomes a conflict only when the earlier write is stored."""
    kv, key = bus.kv(JOB_BUCKET), f"x.{token()}"
    revision = await kv.create(key, b"0")
    with undecided(servers, leader):
        first = asyncio.ensure_future(kv.update(key, b"1", revision))
        await bus.flush()
        before = bus.statistics().messages_in
        second = asyncio.ensure_future(kv.update(key, b"2", revision))
        await refused(bus, before)

        assert not first.done()
        assert not second.done()
        assert await kv.get(key) == KvEntry(b"0", revision)

    stored = await first
    with pytest.raises(WrongRevision):
        await second
    assert await kv.get(key) == KvEntry(b"1", stored)


async def test_a_key_that_somebody_creates_exists_when_it_is_there(
    servers: Servers, leader: ClusterServer, bus: Bus
) -> None:
    """Not before: it may still come to nothing."""
    kv, key = bus.kv(JOB_BUCKET), f"x.{token()}"
    with undecided(servers, leader):
        first = asyncio.ensure_future(kv.create(key, b"1"))
        await bus.flush()
        before = bus.statistics().messages_in
        second = asyncio.ensure_future(kv.create(key, b"2"))
        await refused(bus, before)

        assert not second.done()

    stored = await first
    with pytest.raises(KeyExists):
        await second
    assert await kv.get(key) == KvEntry(b"1", stored)


async def test_a_write_that_is_repeated_while_it_is_not_settled_is_confirmed(
    servers: Servers, leader: ClusterServer, bus: Bus
) -> None:
    """A repetition without a confirmation is stored once."""
    subject, name = key_subject(JOB_BUCKET, f"x.{token()}"), token()
    with undecided(servers, leader):
        first = asyncio.ensure_future(bus.jetstream.store(subject, b"1", message_id=name))
        await bus.flush()
        before = bus.statistics().messages_in
        second = asyncio.ensure_future(bus.jetstream.store(subject, b"1", message_id=name))
        await refused(bus, before)

        assert not second.done()

    assert await first == await second


async def test_of_a_write_that_does_not_settle_it_is_told_that_nothing_is_known(
    servers: Servers, leader: ClusterServer, bus: Bus
) -> None:
    """It may be stored or not, and so may the one before it."""
    kv, key = bus.kv(JOB_BUCKET), f"x.{token()}"
    with undecided(servers, leader):
        first = asyncio.ensure_future(kv.create(key, b"1"))
        await bus.flush()
        with pytest.raises(
            BusTimeout, match=r"is on its way|No answer"
        ):  # if the last attempt was not answered in time
            await kv.update(key, b"2", 0, timeout=0.05)

    stored = await first
    assert await kv.get(key) == KvEntry(b"1", stored)


async def test_writes_that_travel_together_wait_for_what_is_not_settled_each_alone(
    servers: Servers, leader: ClusterServer, bus: Bus
) -> None:
    """One of them meets it, and then the conflict; the other is stored."""
    kv, group_commit, base = bus.kv(JOB_BUCKET), bus.group_commit(JOB_BUCKET), token()
    with undecided(servers, leader):
        first = asyncio.ensure_future(kv.create(f"{base}.k", b"1"))
        await bus.flush()
        before = bus.statistics().messages_in
        late = asyncio.ensure_future(group_commit.update(f"{base}.k", b"2", 0))
        other = asyncio.ensure_future(group_commit.update(f"{base}.other", b"3", 0))
        await refused(bus, before)

        assert not late.done()

    stored, beside = await first, await other
    with pytest.raises(WrongRevision):
        await late
    assert await kv.get(f"{base}.k") == KvEntry(b"1", stored)
    assert await kv.get(f"{base}.other") == KvEntry(b"3", beside)
