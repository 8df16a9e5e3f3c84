"""The manifests run: their pods as processes of hosts, with the secrets of docs/kubernetes.md, serve a call."""

from __future__ import annotations

import json
import os
from contextlib import ExitStack
from pathlib import Path

import pytest
import yaml

from tests.command_line import run_command
from tests.hosts.host_fleet import STORE_KEYS, STORE_PORT, HostFleet
from tests.hosts.host_network import host_network
from tests.infra.container_roots import why_no_roots
from tests.infra.manifests import NODES, PLANE, Manifest, combined
from tests.infra.pages import block, run_script
from tests.infra.pod_hosts import PodHosts
from tests.infra.test_compose_page import client_of
from tests.system.support.sample_apps import APPS
from tests.waiting import wait_until

PAGE = "kubernetes.md"
NODE = "node-1"
pytestmark = [pytest.mark.system, pytest.mark.long]


def operated(folder: Path, address: str, ledger: str, bucket: str) -> list[Manifest]:
    """What an operator has made by the page: secrets, maps, and the manifests with values over them.

    The certificate of gateways is of an `address` too, since their names are found nowhere here.
    """
    folder.mkdir()
    script = block(PAGE, "files.sh").replace(
        "--host pilotlight.example.com", f"--host pilotlight.example.com --ip {address}"
    )
    issuer, keeper = run_script(folder, script).split()[1:4:2]
    (folder / "ledger.env").write_text(f"url={ledger}\n")
    (folder / "blobs.env").write_text("".join(f"{name}={value}\n" for name, value in STORE_KEYS.items()))
    made = [each for each in yaml.safe_load_all(run_script(folder, block(PAGE, "secrets.sh"))) if each]
    own = folder / "own"
    own.mkdir()
    maps = {
        ("pilotlight", PLANE): [f"blob-url={bucket}"],
        ("pilotlight-agent", NODES): [f"blob-url={bucket}", "reserve-memory=512"],
        ("pilotlight-node-issuer", PLANE): [f"issuer={issuer}", f"keeper={keeper}"],
    }
    generators = [
        {"name": name, "namespace": namespace, "behavior": "merge", "literals": literals}
        for (name, namespace), literals in maps.items()
    ]
    return [*combined(own, resources=["overlays/cpu"], configMapGenerator=generators), *made]


def test_the_pods_of_the_manifests_serve_calls(tmp_path: Path) -> None:
    """Three servers of the bus, two gateways, duties, a controller, and a node that joins: calls, and a secret."""
    if why := why_no_roots(tmp_path):
        pytest.skip(f"this machine makes no file systems for processes: {why}")
    with host_network(tmp_path) as network, ExitStack() as ending:
        fleet = HostFleet(network, (), (), ending, None, api_tls=False)
        fleet.start_store()
        ledger = fleet.start_database()
        bucket = f"s3://blobs/pods?endpoint=http://{fleet.store.address}:{STORE_PORT}"
        gateway = network.add("pilotlight-gateway-0")
        made = operated(tmp_path / "operator", gateway.address, ledger, bucket)
        pods = PodHosts(network, tmp_path / "pods", made)
        bus = [f"pilotlight-bus-{number}" for number in range(3)]
        for name in bus:
            pods.add("bus", name)
        pods.add("gateway", gateway.name, "pilotlight-gateway")
        others = {"gateway": "pilotlight-gateway-1", "duties": "duties-x", "controller": "controller-x"}
        for component, name in others.items():
            pods.add(component, name)
        node = pods.add("agent", NODE)
        for name in (*bus, gateway.name, *others.values()):
            pods.start(name)
        for name in (*bus, gateway.name, *others.values()):
            pods.until_ready(name)

        shown = [pods.place(name, "state") / "client.json" for name in (gateway.name, others["gateway"])]
        first = next(path.read_text() for path in shown if path.exists())
        assert json.loads(first)["url"] == "https://pilotlight.example.com"
        authority = tmp_path / "operator" / "ca" / "ca.pem"
        client = client_of(first, gateway.address, authority, ending)
        joined = client.http.post("/v1/nodes/tokens", json={"node": NODE, "zone": "eu-1"})
        assert joined.status_code == 201, joined.text
        pods.put("Secret", NODES, "pilotlight-join", **{NODE: joined.json()["token"]})
        pods.start(NODE)
        pods.until_ready(NODE)
        wait_until(lambda: "the agent is up" in node.log("agent"), "the agent is up", 120.0)

        client.deploy(APPS / "calls" / "app.py")
        assert client.output("calls.echo", value="hello") == "hello"
        large = "x" * 2_000_000
        assert client.output("calls.echo", value=large) == large
        env = {**os.environ, "PILOTLIGHT_URL": client.url, "PILOTLIGHT_API_KEY": client.key}
        env["PILOTLIGHT_CA_FILE"] = client.ca_file
        keys = len(client.http.get("/v1/keys").json()["keys"])
        stopped = network.hosts[others["gateway"]]
        stopped.stop()
        pods.empty(stopped.name, "state")
        pods.start(stopped.name)
        pods.until_ready(stopped.name)
        assert len(client.http.get("/v1/keys").json()["keys"]) == keys
        done = run_command(["secret", "set", "token"], env=env, given="kept in the bus\n")
        assert done.returncode == 0, done.stderr
