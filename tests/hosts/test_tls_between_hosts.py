"""The bus, the API and the listener for large bodies speak TLS between hosts: nothing goes in clear."""

from __future__ import annotations

import os
import socket

import httpx
import pytest

from pilotlight_core.bus import BusDown, bus_users, connect
from tests.builders.certificates import an_authority
from tests.command_line import run_command
from tests.hosts.host_fleet import API_PORT, BODY_PORT, BUS_PORT
from tests.hosts.host_world import HostWorld
from tests.waiting import wait_until

pytestmark = pytest.mark.system


@pytest.mark.parametrize(("host", "port"), [("gateway-1", API_PORT), ("gateway-1", BODY_PORT), ("bus-1", BUS_PORT)])
def test_who_speaks_plain_gets_nothing(world: HostWorld, host: str, port: int) -> None:
    """No answer to a request in clear; the bus ends the connection of who would give his password away."""
    address = world.network.hosts[host].address
    with socket.create_connection((address, port), timeout=20) as plain:
        if host == "bus-1":
            assert b'"tls_required":true' in plain.recv(65536)
            plain.sendall(b'CONNECT {"verbose":false,"user":"operator","pass":"x"}\r\nPING\r\n')
        else:
            plain.sendall(b"GET /readyz HTTP/1.1\r\nhost: x\r\n\r\n")
        read = b""
        try:
            while part := plain.recv(65536):
                read += part
        except ConnectionError:
            pass
    assert b"HTTP/1.1" not in read
    assert b"PONG" not in read


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_a_bus_of_another_authority_or_name_is_not_trusted(
    world: HostWorld, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """What is wrong is said, and the password is not."""
    url = world.fleet.bus_url(bus_users.OPERATOR)
    stranger = an_authority(tmp_path_factory.mktemp("stranger"))
    for address, ca_file, says in (
        (url, str(stranger), "its certificate is of no authority among those in "),
        (url, "", "its certificate is of no authority among those this machine knows"),
    ):
        with pytest.raises(BusDown, match=says) as caught:
            async with connect(address, name="stranger", timeout=1.0, ca_file=ca_file, makes_streams=False):
                raise AssertionError("it is trusted")
        assert "operator" not in str(caught.value)
    async with connect(url, name="known", ca_file=world.fleet.ca_file, makes_streams=False) as bus:
        assert bus.connected


def test_a_client_without_the_authority_is_told_so(world: HostWorld) -> None:
    """By the command line; nothing was sent. With a file that is none, that is said."""
    env = {**os.environ, "PILOTLIGHT_URL": world.clients[0].url, "PILOTLIGHT_API_KEY": world.clients[0].key}

    without = run_command(["app", "list"], env={**env, "PILOTLIGHT_CA_FILE": ""})
    wrong = run_command(["app", "list"], env={**env, "PILOTLIGHT_CA_FILE": "/nowhere/ca.pem"})

    assert without.returncode == wrong.returncode == 1
    assert "is not trusted: its certificate is of no authority among" in without.stderr.replace("\n", " ")
    assert "PILOTLIGHT_CA_FILE" in without.stderr
    assert "/nowhere/ca.pem cannot be read" in wrong.stderr.replace("\n", " ")


def test_a_new_certificate_is_served_without_a_restart(world: HostWorld) -> None:
    """An open connection goes on; the next one sees the new certificate."""
    host, client = world.network.hosts["gateway-1"], world.clients[0]
    assert client.http.get("/readyz").status_code == 200
    before = _serial(world)

    world.fleet.certificate_of(host)

    wait_until(lambda: _serial(world) != before, "the new certificate is served", 60.0)
    assert client.http.get("/readyz").status_code == 200
    assert client.output("counted.echo", value="z" * 1_000_000) == "z" * 1_000_000


def _serial(world: HostWorld) -> str:
    with (
        httpx.Client(verify=world.fleet.trusted, trust_env=False) as fresh,
        fresh.stream("GET", f"{world.clients[0].url}/readyz") as answer,
    ):
        found = answer.extensions["network_stream"].get_extra_info("ssl_object").getpeercert()
    return str(found["serialNumber"])
