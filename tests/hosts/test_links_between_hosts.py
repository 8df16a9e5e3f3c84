"""Between hosts calls go over links: connections of agents to gateways, and of gateways to each other, with TLS."""

from __future__ import annotations

import os
import re
import signal
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest

from pilotlight_core.host.signing import PUBLIC
from tests.builders.certificates import an_authority
from tests.hosts.host_fleet import GatewayClient, HostFleet, host_fleet
from tests.hosts.host_network import TestHost
from tests.system.support.sample_apps import APPS
from tests.waiting import wait_until

pytestmark = [pytest.mark.system, pytest.mark.timeout(240)]
METRICS_PORT = 9100
NODE = "node-1"


@dataclass(frozen=True)
class Pair:
    """A gateway and an agent on two hosts."""

    fleet: HostFleet
    client: GatewayClient

    def metric(self, series: str) -> float:
        """The value of one of the gateway's series."""
        address = self.fleet.network.hosts["gateway"].address
        text = httpx.get(f"http://{address}:{METRICS_PORT}/metrics", trust_env=False).text
        return float(re.findall(rf"^{re.escape(series)} (\S+)$", text, re.MULTILINE)[0])

    def host(self, name: str) -> TestHost:
        return self.fleet.network.hosts[name]

    def runs(self, way: str) -> float:
        return self.metric(f'pilotlight_runs_sent_total{{way="{way}"}}')

    def links(self) -> float:
        return self.metric('pilotlight_links{to="agent",way="hosts"}')

    def until_linked(self) -> None:
        wait_until(lambda: self.links() == 1, "the agent has a link")


@contextmanager
def paired(folder: Path, authority: Path | None) -> Iterator[Pair]:
    """With TLS on everything, or in clear; its function is ready."""
    with host_fleet(folder, NODE, authority=authority) as fleet:
        client = fleet.start_one_of_each(NODE, *_shown(fleet))
        client.deploy(APPS / "calls" / "app.py")
        client.output("calls.echo", value="warm")
        yield Pair(fleet, client)


def _shown(fleet: HostFleet) -> tuple[str, ...]:
    host = fleet.network.hosts.get("gateway") or fleet.network.add("gateway")
    return ("--metrics-host", host.address, "--metrics-port", str(METRICS_PORT))


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    authority = tmp_path_factory.mktemp("authority")
    an_authority(authority)
    with paired(tmp_path_factory.mktemp("pair"), authority) as made:
        yield made


def check_calls_take_the_link(pair: Pair) -> None:
    pair.until_linked()
    before = {way: pair.runs(way) for way in ("hosts", "bus", "machine")}
    for number in range(5):
        assert pair.client.output("calls.echo", value=number) == number
    assert {way: pair.runs(way) - before[way] for way in before} == {"hosts": 5, "bus": 0, "machine": 0}


def test_calls_go_over_the_link(pair: Pair) -> None:
    """With TLS, and none of them over the bus."""
    check_calls_take_the_link(pair)


def test_where_the_bus_is_in_clear_links_may_be(tmp_path: Path) -> None:
    """And are."""
    with paired(tmp_path, None) as pair:
        check_calls_take_the_link(pair)


def test_an_agent_that_is_parted_from_its_gateway_is_reached_over_the_bus(pair: Pair) -> None:
    """What was on the link is sent again, calls that come meanwhile are answered, and the link is back after."""
    pair.until_linked()
    before = pair.runs("bus")
    with pair.fleet.network.apart(pair.host("gateway"), pair.host(NODE)):
        assert pair.client.output("calls.echo", value="at once") == "at once"
        wait_until(lambda: pair.links() == 0, "the link has ended")
        assert pair.client.output("calls.echo", value="later") == "later"
        assert pair.runs("bus") >= before + 1
    check_calls_take_the_link(pair)


def test_a_frozen_agent_loses_its_link_and_gets_another(pair: Pair) -> None:
    """A call that came meanwhile is answered once it goes on."""
    pair.until_linked()
    agent = pair.host(NODE).running["agent"]
    with ThreadPoolExecutor(1) as pool:
        os.kill(agent.pid, signal.SIGSTOP)
        try:
            answer = pool.submit(pair.client.call, "calls.echo", value="meanwhile")
            wait_until(lambda: pair.links() == 0, "the link has ended")
        finally:
            os.kill(agent.pid, signal.SIGCONT)
        assert answer.result().json().get("output", "died") in ("meanwhile", "died"), answer.result().text
    check_calls_take_the_link(pair)


def test_an_agent_that_the_bus_no_longer_hears_has_no_link(pair: Pair) -> None:
    """Though it reaches the gateway: it counts as gone there, as ever."""
    pair.until_linked()
    with pair.fleet.network.apart(pair.host("bus"), pair.host(NODE)):
        wait_until(lambda: pair.links() == 0, "the link has ended")
    assert "it is not heard on the bus" in pair.host("gateway").log("gateway")
    wait_until(lambda: pair.client.call("calls.echo", value=1).status_code == 200, "calls are answered again")
    check_calls_take_the_link(pair)


@pytest.mark.parametrize("part", ["agent", "gateway"])
def test_whoever_was_killed_is_linked_anew(pair: Pair, part: str) -> None:
    """And its calls go over the new link."""
    pair.until_linked()
    host = pair.host(NODE if part == "agent" else "gateway")
    host.kill(part)
    if part == "agent":
        pair.fleet.start_agent(NODE, "--trusted-keys", str(host.folder / PUBLIC))
    else:
        pair.fleet.start_gateway("gateway", *_shown(pair.fleet))
    wait_until(lambda: pair.client.call("calls.echo", value=1).status_code == 200, "calls are answered again")
    check_calls_take_the_link(pair)
