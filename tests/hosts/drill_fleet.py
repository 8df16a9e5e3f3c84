"""A whole platform over hosts, for drills: what is restarted, replaced or restored is started in its place."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pilotlight_core.host.signing import PUBLIC
from tests.hosts.host_fleet import GatewayClient, HostFleet, host_fleet
from tests.hosts.host_network import TestHost
from tests.system.support.sample_apps import APPS
from tests.system.support.steady_load import SteadyLoad
from tests.waiting import wait_until

NODES, GATEWAYS = ("node-1", "node-2"), ("gateway-1", "gateway-2")
NOTICE = ("--notice-seconds", "2")


class DrillFleet:
    """Two gateways that sign with one key, duties, a controller and two agents, each started alone."""

    def __init__(self, fleet: HostFleet, *flags: str) -> None:
        """`flags`: of gateways."""
        self.fleet, self.flags = fleet, flags
        self.gateways: list[GatewayClient] = []

    def host(self, name: str) -> TestHost:
        return self.fleet.network.hosts[name]

    @property
    def keys(self) -> Path:
        """The folder of the first gateway's keys."""
        return self.host(GATEWAYS[0]).folder / "state" / "keys"

    def start_all(self) -> None:
        """In the order in which each finds what it needs."""
        first = self.fleet.start_gateway(GATEWAYS[0], *self.flags)
        second = self.fleet.network.hosts.get(GATEWAYS[1]) or self.fleet.network.add(GATEWAYS[1])
        shutil.copytree(self.keys, second.folder / "state" / "keys", dirs_exist_ok=True)
        self.gateways = [first, self.fleet.start_gateway(GATEWAYS[1], *self.flags)]
        self.start_duties()
        self.fleet.start_controller()
        for node in NODES:
            host = self.fleet.network.hosts.get(node) or self.fleet.network.add(node)
            shutil.copy(self.keys / PUBLIC, host.folder / PUBLIC)
            self.start_agent(node)

    def deploy(self) -> None:
        """What the load calls."""
        self.gateways[0].deploy(APPS / "crash" / "app.py")

    def load(self) -> SteadyLoad:
        return SteadyLoad(urls=[each.url for each in self.gateways], key=self.gateways[0].key)

    def start_duties(self) -> None:
        self.fleet.start_duties(self.host(GATEWAYS[0]))

    def start_agent(self, node: str) -> None:
        keys = self.host(node).folder / PUBLIC
        self.fleet.start_agent(node, "--trusted-keys", str(keys), "--cpu-slots", "6")

    def wait_for_nodes(self) -> None:
        """Until each gateway hears them all."""

        def heard() -> bool:
            found = [each.http.get("/v1/nodes").json()["nodes"] for each in self.gateways]
            return all({str(node["node"]) for node in nodes} == {*NODES} for nodes in found)

        wait_until(heard, "all nodes are heard", 60.0)


@contextmanager
def drill_fleet(folder: Path, *flags: str) -> Iterator[DrillFleet]:
    """One that is started, with its database; `flags` are of gateways."""
    with host_fleet(folder, *NODES) as fleet:
        fleet.start_database()
        made = DrillFleet(fleet, *flags)
        made.start_all()
        made.deploy()
        yield made
