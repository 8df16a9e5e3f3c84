"""Hosts join by tokens, with nothing of theirs in the bus's configuration; they are cordoned, drained and revoked.

Behind its token each was given whom its agent trusts; no other file was brought there.

The bus and the gateway speak TLS.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from pilotlight_core.bus.nkeys import Nkey, NkeyKind
from pilotlight_core.host.signing import PUBLIC
from pilotlight_gateway.nodes.node_issuer import make_issuer
from tests.builders.certificates import an_authority
from tests.hosts.host_fleet import GatewayClient, HostFleet, host_fleet
from tests.system.support.sample_apps import APPS
from tests.waiting import wait_until

pytestmark = [pytest.mark.system, pytest.mark.timeout(240)]
NODES = ("node-1", "node-2")
PUBLIC_KEY = Nkey.generate(NkeyKind.USER).public


@dataclass
class Joined:
    """Two nodes that have joined, of which the first is on spot."""

    fleet: HostFleet
    client: GatewayClient
    credentials: dict[str, Path]

    def node(self, name: str) -> dict[str, Any]:
        found: dict[str, Any] = self.client.http.get(f"/v1/nodes/{name}").json()
        return found

    def say(self, name: str, verb: str) -> dict[str, Any]:
        answer = self.client.http.post(f"/v1/nodes/{name}/{verb}")
        assert answer.status_code == 200, answer.text
        found: dict[str, Any] = answer.json()
        return found

    def nodes_of_containers(self) -> set[str]:
        return {each["node"] for each in self.client.containers("calls") if each["state"] == "ready"}

    def busy_node(self) -> str:
        """Where a call runs, once its node says so."""
        assert self.client.output("calls.echo", value="start") == "start"
        return min(wait_until(self.nodes_of_containers, "a container is ready"))


@pytest.fixture(scope="module")
def joined(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Joined]:
    folder = tmp_path_factory.mktemp("joined")
    issuer = make_issuer(folder / "issuer.json")
    authority = tmp_path_factory.mktemp("authority")
    an_authority(authority)
    with host_fleet(folder, authority=authority, admission=issuer.public) as fleet:
        client = fleet.start_gateway("gateway", "--node-issuer", str(folder / "issuer.json"))
        gateway = fleet.network.hosts["gateway"]
        fleet.start_duties(gateway)
        fleet.start_controller()
        labels = {"node-1": {"zone": "eu-1", "pool": "cheap", "purchase": "spot"}, "node-2": {"zone": "eu-2"}}
        trusted = gateway.folder / "state" / "keys" / PUBLIC
        credentials = {node: fleet.join(node, client, trusted, **labels[node]) for node in NODES}
        for node in NODES:
            fleet.start_joined_agent(node, credentials[node], "--no-spot", "--zone", "elsewhere")
        client.deploy(APPS / "calls" / "app.py")
        yield Joined(fleet, client, credentials)


def test_a_joined_node_works_under_its_labels(joined: Joined) -> None:
    """They are its token's, whatever its agent is told; its credentials are closed to others."""
    assert joined.client.output("calls.echo", value="hello") == "hello"
    first = joined.node("node-1")
    assert (first["status"], first["state"], first["joined"]) == ("up", "open", True)
    assert (first["zone"], first["pool"], first["purchase"]) == ("eu-1", "cheap", "spot")
    assert first["guarantees"]["sandbox"] == "bubblewrap"
    assert joined.credentials["node-1"].stat().st_mode & 0o777 == 0o600


def test_a_token_is_good_once(joined: Joined) -> None:
    """Another host that comes with it is refused, and so is one that has made it up."""
    made = joined.client.http.post("/v1/nodes/tokens", json={"node": "node-9"}).json()
    body = {"token": made["token"], "node": "node-8", "key": PUBLIC_KEY}
    assert joined.client.http.post("/v1/nodes/join", json=body).status_code == 401
    body["node"] = "node-9"
    assert joined.client.http.post("/v1/nodes/join", json=body).status_code == 201
    assert joined.client.http.post("/v1/nodes/join", json=body).status_code == 401
    joined.say("node-9", "revoke")


def test_a_drained_node_is_emptied_and_a_cordoned_one_is_not(joined: Joined) -> None:
    """Calls go on elsewhere; nothing new starts on either, and both take containers again once they are open."""
    busy = joined.busy_node()
    other = next(node for node in NODES if node != busy)
    assert joined.say(busy, "cordon")["state"] == "cordoned"
    assert joined.client.output("calls.echo", value="goes on") == "goes on"
    assert joined.nodes_of_containers() == {busy}
    assert joined.say(busy, "drain")["state"] == "draining"
    wait_until(lambda: busy not in joined.nodes_of_containers(), "the node is empty", 60.0)
    assert joined.client.output("calls.echo", value="again") == "again"
    wait_until(lambda: joined.nodes_of_containers() == {other}, "the other node has it")
    assert joined.say(busy, "uncordon")["state"] == "open"


def test_a_revoked_node_is_gone_and_another_takes_over(joined: Joined) -> None:
    """Its agent is off the bus, has lost its link, and stays so; what it ran counts as lost."""
    busy = joined.busy_node()
    host, gateway = joined.fleet.network.hosts[busy], joined.fleet.network.hosts["gateway"]
    wait_until(lambda: "a gateway has a link" in host.log("agent"), "it has a link")
    joined.say(busy, "revoke")
    wait_until(lambda: "its identity has ended" in gateway.log("gateway"), "its link has ended")
    wait_until(lambda: "the bus is disconnected" in host.log("agent"), "its connection is closed")
    assert joined.node(busy)["status"] == "revoked"
    assert joined.client.output("calls.echo", value="elsewhere") == "elsewhere"
    wait_until(lambda: busy not in joined.nodes_of_containers(), "its containers are lost", 30.0)
    assert "the bus is connected again" not in host.log("agent")
