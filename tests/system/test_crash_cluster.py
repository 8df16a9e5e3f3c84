"""A bus of three servers loses one under load: the other two have everything that it had."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Iterator

import pytest

from pilotlight_core.bus import connect
from pilotlight_core.bus.streams import bucket_stream
from pilotlight_core.model.subjects import LEASE_BUCKET
from pilotlight_supervisor.embedded_bus import folder_of, server_name
from tests.system.support.jobload import survive
from tests.system.support.load import TARGETS, Load
from tests.system.support.platform import Platform
from tests.system.support.platform import platform as run_platform
from tests.system.support.sample_apps import APPS
from tests.waiting import wait_until

pytestmark = [pytest.mark.crash, pytest.mark.timeout(200)]
SERVERS = ("nats", "nats-2", "nats-3")


@pytest.fixture(scope="module")
def platform(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Platform]:
    """Three servers, two gateways."""
    options = ("--nats-servers", "3", "--extra-gateways", "1", "--cpu-slots", "8", "--blanks", "0")
    with run_platform(tmp_path_factory.mktemp("cluster"), *options) as running:
        running.deploy(APPS / "crash" / "app.py")
        yield running


IN_FLIGHT = 8
"""Calls of the load at a time: no more can have a frame in the dead server."""


async def leader(platform: Platform, bucket: str) -> str:
    """The server that leads a bucket, as a part of the platform."""
    names = {server_name(folder_of(platform.state / "nats", number)): part for number, part in enumerate(SERVERS)}
    async with connect(platform.nats_url, name="test", makes_streams=False) as bus:
        told = await bus.jetstream.api(f"STREAM.INFO.{bucket_stream(bucket)}", {})
    assert told.cluster is not None
    assert len(told.cluster["replicas"]) == len(SERVERS) - 1
    return names[told.cluster["leader"]]


@pytest.mark.long  # that calls outlive it is shown over hosts: tests/hosts/test_fleet.py
@pytest.mark.parametrize("which", ["the one that leads the leases", "any"])
def test_a_killed_server_of_three_is_survived(platform: Platform, chance: random.Random, which: str) -> None:
    """Whatever was accepted is answered, nothing runs twice, and all is served again without the one that died."""
    load = Load(platform=platform, seed=chance.randrange(10**9))
    with load.running():
        wait_until(lambda: load.codes()["ok"] > 40, "the load runs", 30.0)
        time.sleep(chance.uniform(0.0, 1.0))
        part = chance.choice(SERVERS) if which == "any" else asyncio.run(leader(platform, LEASE_BUCKET))
        print(part)
        platform.kill(part)
        killed = time.monotonic()
        everywhere = {(ref, url) for ref in TARGETS for url in platform.urls}
        wait_until(
            lambda: {(o.ref, o.url) for o in load.outcomes if o.code == "ok" and o.at > killed + 3.0} >= everywhere,
            "every function is served by each gateway",
        )
        wait_until(lambda: part in platform.pids, "it is back")

    # A frame that was in the dead server is lost: its call is told that it may have run, and is not run again.
    assert set(load.codes()) - {"ok"} <= {"container_died"}, load.codes()
    assert load.codes()["container_died"] <= IN_FLIGHT, load.codes()
    wait_until(load.are_logged, "all lines are logged")
    assert {name: count for name, count in load.starts().items() if count > 1} == {}


@pytest.mark.variant
def test_jobs_end_once_though_servers_die(platform: Platform, chance: random.Random) -> None:
    """A hundred and fifty, while servers, a gateway and the agent are killed."""
    survive(platform, chance, (*SERVERS, "gateway-2", "agent"), jobs=150, kills=4, within=60.0)
