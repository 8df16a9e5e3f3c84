"""A platform over hosts: each process has the flags and files that an operator gives it, and nothing of another's.

What travels between hosts by the operator's hand is what docs/hosts.md names: passwords of the bus and public keys.
"""

from __future__ import annotations

import json
import os
import shutil
import ssl
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx

from pilotlight_core.bus import bus_users
from pilotlight_core.bus.bus_users import AdmissionKeys, BusUser
from pilotlight_core.host.certificates.authority import (
    AUTHORITY_CERTIFICATE,
    CertificateAsk,
    CertificateFiles,
    issue_certificate,
)
from pilotlight_core.host.signing import PUBLIC
from pilotlight_core.model.api.join_text import JoinText
from pilotlight_core.model.versions.public_keys import public_keys_of
from pilotlight_supervisor.embedded_bus import CLUSTER, CONFIG, ROUTE, bus_token, find_nats_server
from tests.command_line import run_command
from tests.fixtures.postgres import USER, Postgres
from tests.hosts.host_network import HostNetwork, TestHost, host_network, inside
from tests.waiting import wait_until

BUS_PORT, ROUTE_PORT, STORE_PORT, API_PORT, BODY_PORT = 4222, 6222, 5000, 8470, 8471
START_S = 90.0
STORE_KEYS = {"AWS_ACCESS_KEY_ID": "testing", "AWS_SECRET_ACCESS_KEY": "testing", "AWS_DEFAULT_REGION": "us-east-1"}


@dataclass(frozen=True, kw_only=True)
class GatewayClient:
    """What a tenant has of a platform: the address of a gateway, and a key."""

    url: str
    key: str
    http: httpx.Client
    ca_file: str = ""

    @property
    def env(self) -> dict[str, str]:
        """What the SDK and the command line need to find it."""
        given = {"PILOTLIGHT_URL": self.url, "PILOTLIGHT_API_KEY": self.key, "PILOTLIGHT_CA_FILE": self.ca_file}
        return {**os.environ, **given, "NO_COLOR": "1"}

    def deploys(self, path: Path) -> bool:
        """Whether an app can be deployed now."""
        return run_command(["deploy", str(path)], env=self.env).returncode == 0

    def deploy(self, path: Path) -> str:
        """Deploy an app; what was printed."""
        done = run_command(["deploy", str(path)], env=self.env)
        assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
        return done.stdout

    def call(self, ref: str, timeout: float = 60.0, **arguments: Any) -> httpx.Response:
        return self.http.post(f"/v1/functions/{ref}/calls", json={"input": arguments}, timeout=timeout)

    def output(self, ref: str, **arguments: Any) -> Any:
        """What a call that must succeed returns."""
        answer = self.call(ref, **arguments)
        assert answer.status_code == 200, answer.text[:2000]
        return answer.json()["output"]

    def job(self, ref: str, **arguments: Any) -> str:
        """The id of a job that is accepted."""
        headers = {"Prefer": "respond-async"}
        answer = self.http.post(f"/v1/functions/{ref}/calls", json={"input": arguments}, headers=headers)
        assert answer.status_code == 202, answer.text[:2000]
        return str(answer.json()["id"])

    def ended(self, job: str, within_s: float = 60.0) -> dict[str, Any]:
        """The job once it has ended."""

        def look() -> dict[str, Any] | None:
            found: dict[str, Any] = self.http.get(f"/v1/calls/{job}", headers={"Prefer": "wait=5"}).json()
            return found if found.get("state") not in ("queued", "running", None) else None

        return wait_until(look, f"{job} ends", within_s)

    def containers(self, app: str) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.http.get("/v1/containers").json()["containers"]
        return [container for container in found if container["app"] == app]

    def is_ready(self) -> bool:
        """Whether it takes calls."""
        try:
            return self.http.get("/readyz").status_code == 200
        except httpx.TransportError:
            return False

    def lines(self, app: str) -> list[str]:
        """What an app has logged, without stamps."""
        answer = self.http.get(f"/v1/apps/{app}/logs")
        return [json.loads(line)["text"] for line in answer.text.splitlines() if line]


class HostFleet:
    """Processes on hosts of one network. Methods return when what they have started is ready."""

    def __init__(
        self,
        network: HostNetwork,
        nodes: tuple[str, ...],
        strays: tuple[str, ...],
        ending: ExitStack,
        authority: Path | None,
        api_tls: bool,
        servers: int = 1,
    ) -> None:
        self.network = network
        self.authority = authority
        self._api_tls = api_tls and authority is not None
        self._ending = ending
        self._nodes, self._strays = nodes, strays
        names = [f"bus-{number}" for number in range(1, servers + 1)] if servers > 1 else ["bus"]
        self.servers = tuple(map(network.add, names))
        self.bus, self.store = self.servers[0], network.add("store")
        self._store_url = f"s3://blobs/hosts?endpoint=http://{self.store.address}:{STORE_PORT}"
        self.ledger_url = ""
        """Of a PostgreSQL; "": gateways have files."""

    def start_bus(self, admission: AdmissionKeys | None = None) -> None:
        """A nats-server with a user for each role and node, as docs/hosts.md has it; with `admission` others join.

        Several are a cluster.
        """
        users = bus_users.authorization(bus_users.everybody((*self._nodes, *self._strays)), self._password, admission)
        for server in self.servers:
            text = CONFIG.format(
                name=server.name, host=server.address, port=BUS_PORT, store=server.folder, authorization=users
            )
            files = self.certificate_of(server, client=True)
            pair = f'cert_file: "{files.certificate}", key_file: "{files.key}"' if files else ""
            if pair:
                text += f"tls {{ {pair} }}\n"
            if len(self.servers) > 1:
                text += self._cluster(server, pair)
            (server.folder / "nats.conf").write_text(text)
            self.start_server(server)

    def start_server(self, server: TestHost) -> None:
        """Its nats-server, with what is in its folder."""
        server.start("nats", [str(find_nats_server()), "-c", str(server.folder / "nats.conf")], {})

    def _password(self, user: BusUser) -> str:
        return f'"{bus_token(self.bus.folder, user.name)}"'

    def _cluster(self, server: TestHost, pair: str) -> str:
        password = bus_token(self.bus.folder, ROUTE)
        addresses = [each.address for each in self.servers if each is not server]
        scheme = "tls" if pair else "nats"
        routes = ", ".join(f'"{scheme}://{ROUTE}:{password}@{address}:{ROUTE_PORT}"' for address in addresses)
        text = CLUSTER.format(host=server.address, port=ROUTE_PORT, user=ROUTE, password=password, routes=routes)
        if not pair:
            return text
        end = text.rindex("}")
        return f'{text[:end]}  tls {{ {pair}, ca_file: "{self.ca_file}", verify: true }}\n{text[end:]}'

    def start_store(self) -> None:
        """An S3 with one bucket."""
        words = ["-m", "moto.server", "-H", self.store.address, "-p", str(STORE_PORT)]
        self.store.start("s3", [sys.executable, *words], STORE_KEYS)
        url = f"http://{self.store.address}:{STORE_PORT}"

        def made() -> bool:
            try:
                return httpx.put(f"{url}/blobs", trust_env=False).status_code == 200
            except httpx.TransportError:
                return False

        wait_until(made, "the store has a bucket", START_S)

    def start_database(self) -> str:
        """A PostgreSQL for the ledger, which gateways and duties on several hosts share; its URL."""
        host = self.network.add("database")
        # Its user must be able to walk there.
        folder = Path(self._ending.enter_context(tempfile.TemporaryDirectory(prefix="plpg", dir="/tmp")))
        server = Postgres(folder, within=inside(host.namespace), address=host.address)
        server.start()
        self._ending.callback(server.stop)
        self.database = server
        self.ledger_url = f"postgresql://{USER}@{host.address}/postgres"
        return self.ledger_url

    def _ledger(self) -> dict[str, str]:
        return {"PILOTLIGHT_LEDGER_URL": self.ledger_url} if self.ledger_url else {}

    def bus_url(self, user: str) -> str:
        scheme, token = "tls" if self.authority else "nats", bus_token(self.bus.folder, user)
        return ",".join(f"{scheme}://{user}:{token}@{server.address}:{BUS_PORT}" for server in self.servers)

    def certificate_of(self, host: TestHost, *, client: bool = False) -> CertificateFiles | None:
        """A new one, of its address; None: the fleet has no TLS."""
        if self.authority is None:
            return None
        ask = CertificateAsk(name=host.name, ips=(host.address,), server=True, client=client, days=1)
        made = issue_certificate(self.authority, ask, at=datetime.now(UTC), replace=True)
        files = replace(made, certificate=host.folder / "tls.pem", key=host.folder / "tls.key")
        made.key.replace(files.key)
        made.certificate.replace(files.certificate)
        return files

    def start_gateway(self, name: str, *flags: str) -> GatewayClient:
        """A gateway on a host of its own, with large bodies at the host's address."""
        host = self.network.hosts.get(name) or self.network.add(name)
        client = host.folder / "client.json"
        words = [
            "--name", name, "--host", host.address, "--port", str(API_PORT), "--internal-host", host.address,
            "--internal-port", str(BODY_PORT), "--blob-url", self._store_url,
            "--bootstrap-client-file", str(client), "--replicas", str(len(self.servers)), *self._secured(host), *flags,
        ]  # fmt: skip
        self._start(host, "gateway", "pilotlight_gateway", bus_users.GATEWAY, *words, env=STORE_KEYS | self._ledger())
        self._until(host, "gateway", lambda: self._is_ready(host))
        return self.client_of(host)

    def _secured(self, host: TestHost) -> tuple[str, ...]:
        files = self.certificate_of(host)
        if files is None:
            return ("--internal-plain",)
        pair = {"cert": files.certificate, "key": files.key}
        listeners = ("tls", "internal-tls") if self._api_tls else ("internal-tls",)
        return tuple(f"--{which}-{part}={path}" for which in listeners for part, path in pair.items())

    def start_duties(self, host: TestHost, name: str = "duties", *flags: str) -> None:
        """Beside a gateway: they share its ledger in SQLite."""
        words = ["--name", name, "--blob-url", self._store_url, *flags]
        self._start(
            host, "duties", "pilotlight_gateway.duties", bus_users.DUTIES, *words, env=STORE_KEYS | self._ledger()
        )

    def start_controller(self, name: str = "controller") -> TestHost:
        host = self.network.hosts.get(name) or self.network.add(name)
        self._start(host, "controller", "pilotlight_autoscaler", bus_users.CONTROLLER, "--name", name)
        return host

    def start_agent(self, node: str, *flags: str) -> TestHost:
        """An agent, which has no address of the store's and no credentials."""
        host = self.network.hosts.get(node) or self.network.add(node)
        words = ["--node", node, "--cpu-slots", "2", "--blanks", "1", "--preimport", "none", "--blob-url", "s3://links"]
        # Tests wait until what is idle has ended; nothing is parked.
        agents = ["--agents-here", str(len(self._nodes)), "--warm-memory", "0"]
        self._start(host, "agent", "pilotlight_runtime", bus_users.agent(node).name, *words, *agents, *flags)
        self._until(host, "agent", lambda: "the agent is up" in host.log("agent"))
        return host

    def start_one_of_each(self, node: str, *flags: str) -> GatewayClient:
        """A gateway (with these flags) and the duties, a controller, and an agent that got the gateway's public key."""
        client = self.start_gateway("gateway", *flags)
        self.start_duties(self.network.hosts["gateway"])
        self.start_controller()
        folder = self.network.add(node).folder
        shutil.copy(self.network.hosts["gateway"].folder / "state" / "keys" / PUBLIC, folder)
        self.start_agent(node, "--trusted-keys", str(folder / PUBLIC))
        return client

    def join(self, node: str, client: GatewayClient, trusted: Path, **labels: str) -> Path:
        """A host joins as a node, as docs/hosts.md has it, and trusts these keys; the file with its credentials."""
        host = self.network.hosts.get(node) or self.network.add(node)
        made = client.http.post("/v1/nodes/tokens", json=labels)
        assert made.status_code == 201, made.text
        text = JoinText(made.json()["token"], public_keys_of(trusted.read_bytes()))
        path = host.folder / "node.json"
        words = ["-m", "pilotlight_runtime.node.node_join", client.url, "--token", "-", "--node", node, "--file"]
        words += [str(path), *(("--ca-file", self.ca_file) if self.authority else ())]
        command = [*inside(host.namespace), sys.executable, *words]
        done = subprocess.run(command, input=f"{text}\n", check=False, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return path

    def start_joined_agent(self, node: str, credentials: Path, *flags: str) -> TestHost:
        """An agent that is given nothing of the bus but its credentials."""
        host, state = self.network.hosts[node], self.network.hosts[node].folder / "state"
        words = ["--credentials", str(credentials), "--cpu-slots", "2", "--blanks", "1", "--preimport", "none"]
        words += [
            "--blob-url",
            "s3://links",
            "--agents-here",
            "2",
            "--warm-memory",
            "0",
            "--state-dir",
            str(state),
            *flags,
        ]
        env = {"PILOTLIGHT_CA_FILE": self.ca_file} if self.authority else {}
        host.start("agent", [sys.executable, "-m", "pilotlight_runtime", *words], env)
        self._until(host, "agent", lambda: "the agent is up" in host.log("agent"))
        return host

    def client_of(self, host: TestHost) -> GatewayClient:
        """Of a gateway that has been started first: it alone has written a key."""
        first = next(each for each in self.network.hosts.values() if (each.folder / "client.json").exists())
        key = json.loads((first.folder / "client.json").read_text())["api_key"]
        url, headers = self._url_of(host), {"Authorization": f"Bearer {key}"}
        made = httpx.Client(base_url=url, headers=headers, timeout=60.0, trust_env=False, verify=self.trusted)
        http = self._ending.enter_context(made)
        return GatewayClient(url=url, key=key, http=http, ca_file=self.ca_file)

    @property
    def ca_file(self) -> str:
        return str(self.authority / AUTHORITY_CERTIFICATE) if self.authority else ""

    @property
    def trusted(self) -> ssl.SSLContext | bool:
        return ssl.create_default_context(cafile=self.ca_file) if self.ca_file else True

    def _url_of(self, host: TestHost) -> str:
        return f"{'https' if self._api_tls else 'http'}://{host.address}:{API_PORT}"

    def _is_ready(self, host: TestHost) -> bool:
        try:
            answer = httpx.get(f"{self._url_of(host)}/readyz", trust_env=False, verify=self.trusted)
            return answer.status_code == 200
        except httpx.TransportError:
            return False

    def _start(
        self, host: TestHost, name: str, module: str, user: str, *words: str, env: dict[str, str] | None = None
    ) -> None:
        # Addresses have passwords, and every user can read command lines.
        whole = {"PILOTLIGHT_NATS_URL": self.bus_url(user), "PILOTLIGHT_CA_FILE": self.ca_file, **(env or {})}
        host.start(name, [sys.executable, "-m", module, "--state-dir", str(host.folder / "state"), *words], whole)

    def _until(self, host: TestHost, name: str, condition: Callable[[], bool]) -> None:
        process = host.running[name]
        wait_until(lambda: process.poll() is not None or condition(), f"{name} on {host.name} is ready", START_S)
        assert process.poll() is None, host.log(name)


@contextmanager
def host_fleet(
    folder: Path,
    *nodes: str,
    strays: tuple[str, ...] = (),
    authority: Path | None = None,
    api_tls: bool = True,
    admission: AdmissionKeys | None = None,
    servers: int = 1,
) -> Iterator[HostFleet]:
    """A network with a bus and a store, each on a host of its own; all else is started by the test.

    Args:
        nodes: agents that share this machine.
        strays: others that the bus knows.
        authority: folder of one, whose certificates the bus and gateways have; None: they all speak plain.
        api_tls: with an authority, whether the API has a certificate; False: as behind a proxy that ends TLS.
        admission: lets nodes join that it does not know.
        servers: of the bus.
    """
    with host_network(folder) as network, ExitStack() as ending:
        fleet = HostFleet(network, nodes, strays, ending, authority, api_tls, servers)
        fleet.start_bus(admission)
        fleet.start_store()
        yield fleet
