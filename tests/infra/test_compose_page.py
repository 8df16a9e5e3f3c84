"""docs/compose.md, run as it is written: its files are made, its services started, and a function is called."""

from __future__ import annotations

import json
import os
import re
import shutil
import ssl
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import httpx
import pytest

from tests.command_line import run_command
from tests.hosts.host_fleet import STORE_KEYS, STORE_PORT, GatewayClient, HostFleet
from tests.hosts.host_network import HostNetwork, host_network
from tests.infra.compose_hosts import ComposeHost, compose_file, read_variables
from tests.infra.container_roots import why_no_roots
from tests.infra.manifests import ROOT
from tests.infra.pages import block, run_script
from tests.system.support.sample_apps import APPS
from tests.waiting import wait_until

PAGE = "compose.md"
pytestmark = pytest.mark.system


@pytest.fixture
def network(tmp_path: Path) -> Iterator[HostNetwork]:
    if shutil.which("wget") is None:
        pytest.skip("there is no wget, by which the bus of these files is found healthy")
    if why := why_no_roots(tmp_path):
        pytest.skip(f"this machine makes no file systems for processes: {why}")
    with host_network(tmp_path) as network:
        yield network


def run_block(title: str, host: ComposeHost, stdin: str = "") -> list[str]:
    """What each command of a block prints that Docker is given; all else in it is what is done here."""
    exported: dict[str, str] = {}
    said: list[str] = []
    for line in block(PAGE, title).splitlines():
        if line.startswith("export "):
            exported |= dict(each.split("=", 1) for each in line.removeprefix("export ").split())
        elif line.startswith("docker compose "):
            assert exported["COMPOSE_FILE"] == f"pilotlight/infra/{host.file.name}"
            line, _, source = line.partition(" < ")
            assert source in ("", "/etc/pilotlight/token")
            said.append(host.compose(line, exported["COMPOSE_PROFILES"], stdin if source else ""))
        else:
            assert line == "pilotlight/infra/setup/bus_passwords.sh"
    return said


def client_of(shown: str, address: str, authority: Path | None, ending: ExitStack) -> GatewayClient:
    """By the file that the page has an operator look at; the name of the gateway is found nowhere here."""
    said = json.loads(shown)
    scheme = said["url"].partition("://")[0]
    url, key = f"{scheme}://{address}:8470", said["api_key"]
    trusted = ssl.create_default_context(cafile=str(authority)) if authority else True
    made = httpx.Client(
        base_url=url, headers={"Authorization": f"Bearer {key}"}, timeout=60.0, trust_env=False, verify=trusted
    )
    return GatewayClient(url=url, key=key, http=ending.enter_context(made), ca_file=str(authority or ""))


def test_one_host(network: HostNetwork, tmp_path: Path) -> None:
    """All of them on loopback; a call, from there."""
    host = network.add("host")
    made = tmp_path / "passwords"
    subprocess.run([str(compose_file("setup/bus_passwords.sh")), str(made)], check=True)
    own = ComposeHost(host, compose_file("compose.yaml"), read_variables(made), {})
    *_, last = run_block("one-host.sh", own)
    shown = json.loads(last)
    assert shown["url"] == "http://127.0.0.1:8470"
    reached = {"PILOTLIGHT_URL": shown["url"], "PILOTLIGHT_API_KEY": shown["api_key"]}
    program = str(Path(sys.executable).parent / "pilotlight")
    commands = {"deploy": ["deploy", str(APPS / "calls" / "app.py")], "call": ["call", "calls.echo", "value=hi"]}
    for name, words in commands.items():
        host.start(name, [program, *words], reached)
        process = host.running[name]
        assert process.wait(90.0) == 0, host.log(name)
    assert "hi" in host.log("call")


@pytest.mark.variant
def test_two_hosts(network: HostNetwork, tmp_path: Path) -> None:
    """Over TLS and by a token, with a bucket on a third host; a small call, and one of 2 MB both ways."""
    with ExitStack() as ending:
        fleet = HostFleet(network, (), (), ending, None, api_tls=False)
        fleet.start_store()
        gateway, node = network.add("gw-1"), network.add("node-1")
        bucket = f"s3://blobs/pilotlight?endpoint=http://{fleet.store.address}:{STORE_PORT}"
        made = tmp_path / "operator"
        prepare(made, gateway.address, bucket)
        hosts = {}
        for host in (gateway, node):
            host.names = {"gw-1.example.com": gateway.address}
            folder = made / host.name
            file, variables = compose_file("compose.two-hosts.yaml"), read_variables(folder / ".env")
            hosts[host.name] = ComposeHost(host, file, variables, {"/etc/pilotlight": folder})

        *_, shown, key = run_block("gw-1.sh", hosts["gw-1"])
        assert json.loads(shown)["url"] == "https://gw-1.example.com:8470"
        client = client_of(shown, gateway.address, made / "ca" / "ca.pem", ending)
        (made / "node-1" / "manifest_ed25519.pub").write_text(key)
        run_block("node-1.sh", hosts["node-1"], stdin=f"{token_of(client)}\n")
        wait_until(lambda: "the agent is up" in node.log("agent-cpu"), "the agent is up", 90.0)

        client.deploy(APPS / "calls" / "app.py")
        assert client.output("calls.echo", value="hello") == "hello"
        large = "x" * 2_000_000
        assert client.output("calls.echo", value=large) == large
        assert [each["node"] for each in client.http.get("/v1/nodes").json()["nodes"]] == ["node-1"]


def prepare(folder: Path, address: str, bucket: str) -> None:
    """The page's files, with the address and the bucket that there are here."""
    script = block(PAGE, "files.sh")
    for told, here in (
        ("10.0.0.5", address),
        ("s3://acme-pilotlight?region=eu-central-1", bucket),
        ("=AKIA\n", f"={STORE_KEYS['AWS_ACCESS_KEY_ID']}\n"),
        ("=…\n", f"={STORE_KEYS['AWS_SECRET_ACCESS_KEY']}\n"),
    ):
        assert told in script
        script = script.replace(told, here)
    folder.mkdir()
    run_script(folder, script)
    (owned,) = re.findall(r"`(chown -R 10001 /etc/pilotlight; chmod [^`]+)`", (ROOT / "docs" / PAGE).read_text())
    subprocess.run(["sh", "-ec", owned.replace("/etc/pilotlight", str(folder / "gw-1"))], check=True)
    assert "BUS" not in (folder / "node-1" / ".env").read_text()


def token_of(client: GatewayClient) -> str:
    """As the page makes it."""
    command, _, _ = block(PAGE, "token.sh").partition(" > ")
    env = {**os.environ, "PILOTLIGHT_URL": client.url, "PILOTLIGHT_API_KEY": client.key, "NO_COLOR": "1"}
    done = run_command(command.split()[1:], env={**env, "PILOTLIGHT_CA_FILE": client.ca_file})
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()
