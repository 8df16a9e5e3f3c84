"""Every component is restarted in turn under load, as a deployment is rolled out, and no request fails."""

from __future__ import annotations

import shutil
from collections.abc import Iterator

import pytest

from pilotlight_core.host.signing import PUBLIC
from tests.hosts.host_fleet import GatewayClient, HostFleet, host_fleet
from tests.system.support.sample_apps import APPS
from tests.system.support.steady_load import SteadyLoad
from tests.waiting import wait_until

pytestmark = [pytest.mark.long, pytest.mark.system, pytest.mark.timeout(240)]
NODES, GATEWAYS = ("node-1", "node-2"), ("gateway-1", "gateway-2")
NOTICE = ("--notice-seconds", "2")


class RestartedFleet:
    """Two gateways, two agents, a controller and duties, each of which can be restarted."""

    def __init__(self, fleet: HostFleet) -> None:
        self.fleet = fleet
        fleet.start_database()
        self.gateways = [self._start_first(), fleet.start_gateway(GATEWAYS[1], *NOTICE)]
        fleet.start_duties(fleet.network.hosts[GATEWAYS[0]])
        self.controller = fleet.start_controller()
        for node in NODES:
            host = fleet.network.add(node)
            shutil.copy(self.key_folder / PUBLIC, host.folder / PUBLIC)
            self.start_agent(node)
        self.gateways[0].deploy(APPS / "crash" / "app.py")

    def _start_first(self) -> GatewayClient:
        """Both sign with its key."""
        first = self.fleet.start_gateway(GATEWAYS[0], *NOTICE)
        self.key_folder = self.fleet.network.hosts[GATEWAYS[0]].folder / "state" / "keys"
        second = self.fleet.network.add(GATEWAYS[1]).folder / "state" / "keys"
        shutil.copytree(self.key_folder, second)
        return first

    def start_agent(self, node: str) -> None:
        keys = self.fleet.network.hosts[node].folder / PUBLIC
        self.fleet.start_agent(node, "--trusted-keys", str(keys), "--cpu-slots", "3")

    def nodes(self) -> set[str]:
        return {str(node["node"]) for node in self.gateways[0].http.get("/v1/nodes").json()["nodes"]}


@pytest.fixture
def restarted(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RestartedFleet]:
    with host_fleet(tmp_path_factory.mktemp("hosts"), *NODES) as fleet:
        yield RestartedFleet(fleet)


def test_every_component_is_restarted_and_no_request_fails(restarted: RestartedFleet) -> None:
    """Duties, agents, the controller, gateways: each ends on SIGTERM, and is started again."""
    hosts, fleet = restarted.fleet.network.hosts, restarted.fleet
    with SteadyLoad(urls=[each.url for each in restarted.gateways], key=restarted.gateways[0].key) as load:
        load.wait_for_more()

        assert hosts[GATEWAYS[0]].end("duties") == 0
        fleet.start_duties(hosts[GATEWAYS[0]])
        load.wait_for_more()

        for node in NODES:
            assert hosts[node].end("agent") == 0
            load.wait_for_more()
            restarted.start_agent(node)
            wait_until(lambda: restarted.nodes() == set(NODES), "both nodes are heard")

        assert restarted.controller.end("controller") == 0
        load.wait_for_more()
        fleet.start_controller()
        load.wait_for_more()

        for name in GATEWAYS:
            assert hosts[name].end("gateway") == 0
            load.wait_for_more()
            fleet.start_gateway(name, *NOTICE)
            load.wait_for_more()
    load.check()
