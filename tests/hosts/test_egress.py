"""Functions that are let out, on a host with a world around it: a web server at a public address, and a network inside.

The addresses and names are of this test's network namespaces alone; all else is as an operator has it.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import pytest

from pilotlight_core.host.certificates.authority import CertificateAsk, issue_certificate
from pilotlight_core.host.signing import PUBLIC
from pilotlight_runtime.egress.pinned_connections import NOT_PUBLIC
from tests.builders.certificates import an_authority
from tests.command_line import run_command
from tests.hosts.host_fleet import GatewayClient, HostFleet, host_fleet
from tests.hosts.host_network import inside, run
from tests.system.support.sample_apps import APPS
from tests.waiting import wait_until

pytestmark = pytest.mark.system
WEB, NODE, NODES_SECOND = "93.184.216.34", "93.184.216.1", "93.184.216.2"
"""Public addresses, which nobody has in these namespaces but them."""
HOST, OTHER, INSIDE, METADATA = "api.example.com", "other.example.com", "inside.example.com", "rebound.example.com"
OWN = "own.example.com"
METRICS_PORT = 9464


@dataclass(frozen=True, kw_only=True)
class Outside:
    fleet: HostFleet
    client: GatewayClient
    authority: str
    """Of the web server."""

    def fetch(self, host: str, path: str = "/") -> str:
        return str(self.client.output("network.fetch", url=f"https://{host}{path}", authority=self.authority))

    def allow(self, *targets: str) -> httpx.Response:
        return self.client.http.patch("/v1/tenants/default", json={"network": targets})


def start_web(fleet: HostFleet, folder: Path) -> str:
    """A web server at its public address, with a certificate of both names; its authority."""
    authority = an_authority(folder)
    host = fleet.network.add("web")
    run(*inside(host.namespace), "ip", "address", "add", f"{WEB}/24", "dev", "eth0")
    ask = CertificateAsk(name="web", hosts=(HOST, OTHER, INSIDE), server=True, days=1)
    files = issue_certificate(folder, ask, at=datetime.now(UTC))
    host.start("web", [sys.executable, "-m", "tests.hosts.web_server", WEB, str(files.certificate), str(files.key)],
               {"PYTHONPATH": str(Path(__file__).parents[2])})  # fmt: skip
    return authority.read_text()


@pytest.fixture(scope="module")
def outside(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Outside]:
    """Names are the operator's word on the node: public ones, one of the network inside, and one of the metadata."""
    with host_fleet(tmp_path_factory.mktemp("hosts"), "node-1") as fleet:
        authority = start_web(fleet, tmp_path_factory.mktemp("authority"))
        client = fleet.start_gateway("gateway")
        fleet.start_duties(fleet.network.hosts["gateway"])
        fleet.start_controller()
        node = fleet.network.add("node-1")
        node.names.update({HOST: WEB, OTHER: WEB, INSIDE: fleet.bus.address, METADATA: "169.254.169.254"})
        node.names[OWN] = NODES_SECOND
        for address in (NODE, NODES_SECOND):
            run(*inside(node.namespace), "ip", "address", "add", f"{address}/24", "dev", "eth0")
        shutil.copy(fleet.network.hosts["gateway"].folder / "state" / "keys" / PUBLIC, node.folder)
        fleet.start_agent("node-1", "--trusted-keys", str(node.folder / PUBLIC), "--metrics-host", node.address,
                          "--metrics-port", str(METRICS_PORT))  # fmt: skip
        outside = Outside(fleet=fleet, client=client, authority=authority)
        assert outside.allow("*.example.com:443").status_code == 200
        client.deploy(APPS / "network" / "app.py")
        yield outside


def test_what_is_named_is_reached(outside: Outside) -> None:
    """By a library that knows nothing of it; the sandbox has no other network than before."""
    assert outside.fetch(HOST) == f"hello from {HOST}"
    assert outside.client.output("network.interfaces") == ["lo"]
    assert outside.client.output("network.connect", address=WEB, port=443) != "connected"
    assert outside.client.output("network.connect", address=NODE, port=METRICS_PORT) != "connected"


def test_what_is_not_named_is_not_reached(outside: Outside) -> None:
    """Neither itself, nor by a redirect, nor by its address."""
    refused = f"{OTHER}:443 is not in network= of this function"
    assert refused in outside.fetch(OTHER)
    assert refused in outside.fetch(HOST, f"/to/{OTHER}")
    assert "name the host, not an address of it" in outside.fetch(WEB)


def test_the_network_inside_is_not_reached_by_a_name_of_outside(outside: Outside) -> None:
    """Whoever answers for the name: neither the bus nor the metadata service is a tenant's to talk to."""
    for name in (INSIDE, METADATA, OWN, "nobody.example.com"):
        assert f"{name} {NOT_PUBLIC}" in outside.fetch(name)
    for target in ("GET http://169.254.169.254/", "CONNECT 2852039166:80", f"CONNECT {INSIDE}:4222"):
        said = f"{target} HTTP/1.1\r\nHost: 169.254.169.254\r\n\r\n"
        assert outside.client.output("network.say", text=said).startswith("HTTP/1.1 403")
    assert outside.fetch(HOST) == f"hello from {HOST}"


def test_without_network_there_is_none(outside: Outside) -> None:
    """Also on a node whose other containers have one."""
    *found, error = outside.client.output("network.alone", url=f"https://{HOST}/", authority=outside.authority)
    assert found == []
    assert "hello" not in error


def test_a_deploy_beyond_what_is_allowed_is_refused(outside: Outside, tmp_path: Path) -> None:
    """By name, with what an operator would have to do; it is in the audit log who allowed what."""
    app = tmp_path / "greedy.py"
    app.write_text(
        "from pilotlight import gpu_function\n\n\n"
        "@gpu_function(network=['evil.example.org:443'])\ndef leak() -> None:\n    pass\n"
    )
    env = {"PILOTLIGHT_URL": outside.client.url, "PILOTLIGHT_API_KEY": outside.client.key, "NO_COLOR": "1"}
    done = run_command(["deploy", str(app)], env=env)
    assert done.returncode != 0
    for part in ("leak: network= asks for evil.example.org:443", "pilotlight tenant set default", "--network"):
        assert part in " ".join(done.stderr.split())
    entries: list[dict[str, Any]] = outside.client.http.get("/v1/audit").json()["entries"]
    assert ["*.example.com:443"] in [entry.get("told", {}).get("network") for entry in entries]


def test_bytes_are_counted_by_function(outside: Outside) -> None:
    """Where an operator scrapes the agent."""
    outside.fetch(HOST)
    node = outside.fleet.network.hosts["node-1"]

    def counted() -> dict[str, float]:
        text = httpx.get(f"http://{node.address}:{METRICS_PORT}/metrics", trust_env=False).text
        lines = [line.rpartition(" ") for line in text.splitlines() if line.startswith("pilotlight_agent_egress_")]
        return {name: float(value) for name, _, value in lines if 'function="default:network.fetch"' in name}

    found = wait_until(lambda: (now := counted()) and all(now.values()) and now, "bytes are counted", 60.0)
    assert len(found) == 4


def test_what_is_taken_from_the_tenant_is_gone(outside: Outside) -> None:
    """Its containers end, and later ones are let out to what is left; given back, it is there again."""
    outside.fetch(HOST)
    assert outside.allow(f"{INSIDE}:443").status_code == 200
    refused = f"{HOST}:443 is not in network= of this function"
    wait_until(lambda: refused in outside.fetch(HOST), "it is gone", 60.0)
    assert NOT_PUBLIC in outside.fetch(INSIDE)
    assert outside.allow("*.example.com:443").status_code == 200

    def given_back() -> bool:
        """Containers keep the network with which they have started, so those that have less are ended."""
        for container in outside.client.containers("network"):
            outside.client.http.post(f"/v1/containers/{container['id']}/stop", json={"grace_s": 0})
        return outside.fetch(HOST) == f"hello from {HOST}"

    wait_until(given_back, "it is there again", 60.0)


def test_kill_9_of_the_proxy_and_of_the_agent(outside: Outside) -> None:
    """The proxy is started again, and containers go on; with its agent all of it is gone."""
    node = outside.fleet.network.hosts["node-1"]
    outside.fetch(HOST)

    def proxies() -> list[int]:
        pids = [int(path.name) for path in Path("/proc").iterdir() if path.name.isdigit()]
        return [pid for pid in pids if parent_of(pid) == agent and b"pilotlight_runtime.egress" in command_of(pid)]

    agent = node.running["agent"].pid
    (proxy,) = proxies()
    os.kill(proxy, 9)
    wait_until(lambda: outside.fetch(HOST) == f"hello from {HOST}", "another one serves", 60.0)
    (proxy,) = proxies()

    sockets = partial((node.folder / "state").rglob, "proxy.sock")
    before = set(sockets())
    node.kill("agent")
    wait_until(lambda: not command_of(proxy), "the proxy has died with its agent", 60.0)
    outside.fleet.start_agent("node-1", "--trusted-keys", str(node.folder / PUBLIC))
    wait_until(lambda: outside.fetch(HOST) == f"hello from {HOST}", "another agent serves", 60.0)
    assert before
    wait_until(lambda: not before & set(sockets()), "nothing is left of the containers of before", 60.0)


def parent_of(pid: int) -> int:
    try:
        return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    except OSError:
        return 0


def command_of(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""
