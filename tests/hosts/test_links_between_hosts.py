"""Between hosts calls go over links: connections of agents to gateways, and of gateways to each other, with TLS."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

import httpx
import pytest

from tests.builders.certificates import an_authority
from tests.hosts.host_fleet import GatewayClient, HostFleet, host_fleet
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

    def runs(self, way: str) -> float:
        return self.metric(f'pilotlight_runs_sent_total{{way="{way}"}}')

    def links(self) -> float:
        return self.metric('pilotlight_links{to="agent",way="hosts"}')

    def until_linked(self) -> None:
        wait_until(lambda: self.links() == 1, "the agent has a link")


@pytest.fixture(scope="module", params=["tls", "plain"])
def pair(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    authority = None
    if request.param == "tls":
        an_authority(authority := tmp_path_factory.mktemp("authority"))
    with host_fleet(tmp_path_factory.mktemp("pair"), NODE, authority=authority) as fleet:
        shown = ("--metrics-host", fleet.network.add("gateway").address, "--metrics-port", str(METRICS_PORT))
        client = fleet.start_one_of_each(NODE, *shown)
        client.deploy(APPS / "calls" / "app.py")
        client.output("calls.echo", value="warm")
        yield Pair(fleet, client)


def test_calls_go_over_the_link(pair: Pair) -> None:
    """None of them over the bus; with TLS as without, where the bus is so."""
    pair.until_linked()
    before = {way: pair.runs(way) for way in ("hosts", "bus", "machine")}
    for number in range(5):
        assert pair.client.output("calls.echo", value=number) == number
    assert {way: pair.runs(way) - before[way] for way in before} == {"hosts": 5, "bus": 0, "machine": 0}
