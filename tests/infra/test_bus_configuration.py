"""The bus of the manifests: three servers run by the configuration that they are given, and nobody else is let in."""

from __future__ import annotations

import asyncio
import re
import socket
import subprocess
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from pathlib import Path

import pytest

from pilotlight_core.bus import BusError, bus_users, connect
from pilotlight_core.bus.streams import StreamLimits
from pilotlight_gateway.nodes.node_issuer import make_issuer
from pilotlight_supervisor.embedded_bus import find_nats_server, with_parent
from tests.builders.certificates import a_server, an_authority
from tests.infra.manifests import KUSTOMIZE, PLANE, ROOT, SECRET, Workload, config_maps, environment, overlay, workloads
from tests.waiting import until_found

SERVERS = 3
NAMES = ("clients", "routes", "health")


def bus() -> Workload:
    return workloads(overlay("gpu"))["bus"]


def files() -> dict[str, str]:
    """What is mounted in /etc/nats."""
    maps = config_maps(overlay("gpu"), PLANE)
    (found,) = [data for name, data in maps.items() if name.startswith("pilotlight-bus-")]
    mounted = {mount["mountPath"]: mount.get("subPath", "") for mount in bus().container["volumeMounts"]}
    assert {f"/etc/nats/{name}": name for name in found}.items() <= mounted.items()
    return found


def free_ports(count: int) -> list[int]:
    taken = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [each.getsockname()[1] for each in taken]
    for each in taken:
        each.close()
    return ports


def test_users_are_those_that_the_product_names() -> None:
    """With no node among them: nodes join, so gateways are asked about them."""
    keys = bus_users.AdmissionKeys(issuer="$NODE_ISSUER", keeper="$NODE_KEEPER")
    made = bus_users.authorization(bus_users.everybody(()), lambda user: f"${user.variable}", keys)
    assert files()["users.conf"] == made


def test_a_server_is_as_that_of_one_host() -> None:
    """What `infra/nats.conf` says of storage and bounds is said here too, line by line."""
    lines = {
        line.strip() for line in (ROOT / "infra" / "nats.conf").read_text().partition("authorization")[0].splitlines()
    }
    said = {line for line in lines if line and not line.startswith(("#", "server_name", "listen", "http"))}
    assert said <= {line.strip() for line in files()["nats.conf"].splitlines()}
    assert len(said) > 10


def test_what_is_stored_has_room() -> None:
    """The volume holds what JetStream may write, and some more."""
    (claim,) = bus().manifest["spec"]["volumeClaimTemplates"]
    size = re.fullmatch(r"(\d+)Gi", claim["spec"]["resources"]["requests"]["storage"])
    most = re.search(r"max_file: (\d+)GB", files()["nats.conf"])
    assert size is not None
    assert most is not None
    assert int(size[1]) >= int(most[1]) * 1.2


def test_a_server_has_the_time_to_hand_over() -> None:
    """Its clients go to others, one after the other, before it is killed."""
    said = dict(re.findall(r'^lame_duck_(\w+): "(\d+)s"', files()["nats.conf"], re.MULTILINE))
    assert sum(map(int, said.values())) + 10 <= bus().ends_within_s
    assert bus().container["lifecycle"]["preStop"]["exec"]["command"][-1] == "--signal=ldm=/run/nats/nats.pid"
    assert 'pid_file: "/run/nats/nats.pid"' in files()["nats.conf"]


def test_passwords_are_made_for_this_configuration(tmp_path: Path) -> None:
    """The script makes each that the servers are given, and no other."""
    made = tmp_path / "bus.env"
    setup, own = ROOT / "infra" / "setup" / "bus_passwords.sh", sorted((KUSTOMIZE / "base" / "bus").glob("*.conf"))
    subprocess.run([setup, made, *own], check=True)
    names = {line.partition("=")[0] for line in made.read_text().splitlines()}
    assert names == {name for name in environment(bus().container, given()) if name.startswith("PILOTLIGHT_")}


def given() -> dict[str, dict[str, str]]:
    return config_maps(overlay("gpu"), PLANE)


@asynccontextmanager
async def running(folder: Path) -> AsyncIterator[list[dict[str, int]]]:
    """The three servers on loopback, with the rest as the manifests say it; the ports of each."""
    an_authority(folder)
    a_server(folder)
    keys = make_issuer(folder / "issuer.json").public
    numbers = free_ports(SERVERS * len(NAMES))
    ports = [dict(zip(NAMES, numbers[start::SERVERS], strict=True)) for start in range(SERVERS)]
    async with AsyncExitStack() as stack:
        for number in range(SERVERS):
            await stack.enter_async_context(one_server(folder / f"bus-{number}", number, ports, keys))
        yield ports


@asynccontextmanager
async def one_server(
    folder: Path, number: int, ports: list[dict[str, int]], keys: bus_users.AdmissionKeys
) -> AsyncIterator[None]:
    config, variables = written(folder, ports[number]), variables_of(number, ports, keys)
    with (folder / "log").open("wb") as log:
        command = with_parent(find_nats_server(), "--config", config)
        process = await asyncio.create_subprocess_exec(*command, env=variables, stdout=log, stderr=log)
    try:
        yield
    finally:
        assert process.returncode is None, (folder / "log").read_text()
        process.kill()
        await process.wait()


def written(folder: Path, own: dict[str, int]) -> Path:
    """The configuration, with ports and files of this machine in place of the pod's."""
    folder.mkdir()
    text = files()["nats.conf"]
    here = {f"0.0.0.0:{port}": f"127.0.0.1:{own[name]}" for name, port in bus().ports.items()}
    for there, name in (
        ("/etc/nats/tls/tls.crt", "../server.pem"), ("/etc/nats/tls/tls.key", "../server.key"),
        ("/etc/nats/tls/ca.crt", "../ca.pem"), ("/data", "data"), ("/run/nats/nats.pid", "nats.pid"),
    ):  # fmt: skip
        here[there] = str(folder / name)
    for there, replaced in here.items():
        assert f'"{there}"' in text
        text = text.replace(f'"{there}"', f'"{replaced}"')
    (folder / "users.conf").write_text(files()["users.conf"])
    (folder / "nats.conf").write_text(text)
    return folder / "nats.conf"


def variables_of(number: int, ports: list[dict[str, int]], keys: bus_users.AdmissionKeys) -> dict[str, str]:
    """A pod's, with its own name, keys for nodes, and the others where they are."""
    found = environment(bus().container, given())
    found |= {"NODE_ISSUER": keys.issuer, "NODE_KEEPER": keys.keeper, "POD_NAME": f"pilotlight-bus-{number}"}
    for other, each in enumerate(ports):
        place = f"pilotlight-bus-{other}.pilotlight-bus.pilotlight.svc:{bus().ports['routes']}"
        assert place in found[f"ROUTE_{other}"]
        found[f"ROUTE_{other}"] = found[f"ROUTE_{other}"].replace(place, f"127.0.0.1:{each['routes']}")
    return found


async def is_healthy(port: int, path: str) -> bool:
    try:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(f"GET {path} HTTP/1.0\r\n\r\n".encode())
        head = await reader.readline()
        writer.close()
    except OSError:
        return False
    return b" 200 " in head


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_the_servers_run_as_they_are_configured(tmp_path: Path) -> None:
    """Over TLS, as a cluster: probes say so, a gateway's streams have three copies, and strangers stay outside."""
    authority = str(tmp_path / "ca.pem")
    async with running(tmp_path) as ports:
        for own in ports:
            for name in ("startupProbe", "readinessProbe", "livenessProbe"):
                path = bus().container[name]["httpGet"]["path"]
                await until_found(partial(is_healthy, own["health"], path))
        addresses = ",".join(f"tls://gateway:{SECRET}@127.0.0.1:{own['clients']}" for own in ports)
        async with connect(
            addresses, name="gateway", inbox="_GW", ca_file=authority, limits=StreamLimits(replicas=SERVERS), timeout=30
        ) as made:
            assert made.statistics().reconnects == 0
        with pytest.raises(BusError):
            async with connect(addresses.replace(SECRET, "wrong"), name="x", ca_file=authority, timeout=2):
                pass
