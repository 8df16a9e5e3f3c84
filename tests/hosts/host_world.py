"""One fleet over hosts: three bus servers, two gateways, a controller and one that stands by, and three agents.

With PostgreSQL and S3 each has a host of its own with a folder of its own; bus, API and large bodies speak TLS. A host
that is none of the platform's counts what functions do outside.
"""

from __future__ import annotations

import shutil
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pilotlight_core.host.signing import PUBLIC, Signer
from pilotlight_gateway.operator_key import KEY_SET, OPERATOR_KEY, vouch
from tests.builders.certificates import an_authority
from tests.hosts.host_fleet import GatewayClient, HostFleet, host_fleet
from tests.hosts.host_network import TestHost
from tests.system.apps.counted.app import COUNTER, OUT
from tests.system.support.processes import descendants, is_alive
from tests.system.support.sample_apps import APPS
from tests.system.test_webhooks import Receiver, answer, receiver
from tests.waiting import wait_until

NODES, STRAY = ("node-1", "node-2", "node-3"), "stray"
GATEWAYS = ("gateway-1", "gateway-2")
CONTROLLERS = ("controller-1", "controller-2")
SERVERS = 3
ROOT = Path(__file__).parents[2]


class HostWorld:
    """The whole of it, and the operator's folder, which is on none of the hosts."""

    def __init__(self, fleet: HostFleet, operator: Path, receiver: Receiver) -> None:
        self.fleet, self.operator, self.receiver = fleet, operator, receiver
        self.state = operator
        self.network = fleet.network
        self.clients: list[GatewayClient] = []
        self.below: set[int] = set()
        """Processes that were below agents that have been killed."""

    @property
    def ledger_url(self) -> str:
        return self.fleet.ledger_url

    def host(self, name: str) -> TestHost:
        return self.network.hosts[name]

    def everybody_but(self, *names: str) -> list[TestHost]:
        return [host for host in self.network.hosts.values() if host.name not in names]

    def start(self) -> None:
        """As docs/hosts.md has it: gateways make their keys, the operator vouches, agents are given one public key."""
        self._start_counter()
        self.fleet.start_database()
        for name in GATEWAYS:
            Signer.load_or_create(self.network.add(name).folder / "state" / "keys")
        first = self.vouch(*map(self.public_key, GATEWAYS))
        self.clients += [self.start_gateway(GATEWAYS[0], "--key-set", first), self.start_gateway(GATEWAYS[1])]
        for name in GATEWAYS:
            self.start_duties(name)
        for name in CONTROLLERS:
            self.fleet.start_controller(name)
        for node in NODES:
            host = self.network.add(node)
            host.names[COUNTER] = self.host("counter").address
            shutil.copy(self.operator / f"{OPERATOR_KEY}.pub", host.folder / "operator.pub")
            self.start_agent(node)
        allowed = self.clients[0].http.patch("/v1/tenants/default", json={"network": OUT})
        assert allowed.status_code == 200, allowed.text
        self.clients[0].deploy(APPS / "counted" / "app.py")
        hooked = self.clients[0].http.post("/v1/webhooks", json={"url": self.receiver.url})
        assert hooked.status_code == 201, hooked.text

    def start_gateway(self, name: str, *flags: str) -> GatewayClient:
        return self.fleet.start_gateway(name, "--webhook-allow", self.network.own_address, *flags)

    def start_duties(self, gateway: str) -> None:
        name = f"duties-{gateway.rpartition('-')[2]}"
        self.fleet.start_duties(self.host(gateway), name, "--webhook-allow", self.network.own_address)

    def start_agent(self, node: str) -> None:
        host = self.host(node)
        flags = ("--egress-allow", self.host("counter").address) if "counter" in self.network.hosts else ()
        self.fleet.start_agent(node, "--trusted-keys", str(host.folder / "operator.pub"), *flags)

    def kill_agent(self, node: str) -> None:
        """kill -9; what was below it must end too."""
        process = self.host(node).running["agent"]
        self.below |= descendants(process.pid)
        self.host(node).kill("agent")

    def vouch(self, *keys: Path) -> str:
        """Sign the set of these keys, and bring it to the first gateway's host, where its path is."""
        vouch(self.operator, keys, time.time())
        return str(shutil.copy(self.operator / KEY_SET, self.host(GATEWAYS[0]).folder))

    def public_key(self, gateway: str) -> Path:
        return self.host(gateway).folder / "state" / "keys" / PUBLIC

    def nodes(self) -> set[str]:
        """Those that the second gateway hears; none: it does not say now."""
        answer = self.clients[1].http.get("/v1/nodes")
        return {str(node["node"]) for node in answer.json()["nodes"]} if answer.status_code == 200 else set()

    def runs_on(self, app: str) -> set[str]:
        return {str(container["node"]) for container in self.clients[1].containers(app)}

    def runs(self) -> Counter[str]:
        """How often each call ran, as the host outside has counted."""
        return Counter((self.host("counter").folder / "runs").read_text().split())

    def check_nothing_is_left(self) -> None:
        """Containers go when nobody calls, and with them their processes; those of killed agents are gone."""
        client = self.clients[1]
        wait_until(lambda: not client.http.get("/v1/containers").json()["containers"], "no container is left", 90.0)
        agents = {self.host(node).running["agent"].pid for node in NODES}
        kept = set().union(*map(descendants, agents))
        wait_until(lambda: not any(map(is_alive, self.below - kept)), "no process of a container is left", 30.0)
        self.below.clear()

    def _start_counter(self) -> None:
        host = self.network.add("counter")
        (host.folder / "runs").touch()
        words = ["-m", "tests.hosts.counter_server", host.address, str(host.folder / "runs")]
        host.start("counter", [sys.executable, *words], {"PYTHONPATH": str(ROOT)})


@contextmanager
def host_world(folder: Path) -> Iterator[HostWorld]:
    """A world with hosts in `folder`, until the block ends."""
    hosts, operator, authority = (folder / name for name in ("hosts", "operator", "authority"))
    for each in (hosts, operator, authority):
        each.mkdir()
    an_authority(authority)
    with (
        host_fleet(hosts, *NODES, strays=(STRAY,), authority=authority, servers=SERVERS) as fleet,
        receiver(answer(200), fleet.network.own_address) as there,
    ):
        made = HostWorld(fleet, operator, there)
        made.start()
        yield made
