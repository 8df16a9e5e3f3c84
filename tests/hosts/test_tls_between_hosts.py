"""One of each process over hosts whose bus, API and listener for large bodies speak TLS: nothing goes in clear."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from dataclasses import dataclass

import httpx
import pytest

from pilotlight_core.bus import BusDown, bus_users, connect
from tests.builders.certificates import an_authority
from tests.command_line import run_command
from tests.hosts.host_fleet import API_PORT, BODY_PORT, BUS_PORT, GatewayClient, HostFleet, host_fleet
from tests.system.support.sample_apps import APPS
from tests.waiting import wait_until

pytestmark = pytest.mark.system
LARGE = 10_000_000 - 1_000


@dataclass(frozen=True, kw_only=True)
class SecureFleet:
    fleet: HostFleet
    client: GatewayClient


@pytest.fixture(scope="module")
def secure(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecureFleet]:
    """As docs/hosts.md has it: each got the authority's certificate, and the servers one of their own."""
    authority = tmp_path_factory.mktemp("authority")
    an_authority(authority)
    with host_fleet(tmp_path_factory.mktemp("hosts"), "node-1", authority=authority) as fleet:
        client = fleet.start_one_of_each("node-1")
        client.deploy(APPS / "calls" / "app.py")
        yield SecureFleet(fleet=fleet, client=client)


def test_calls_streams_and_large_bodies(secure: SecureFleet) -> None:
    """A small call, 10 MB both ways, a stream, and a job, whose usage is folded into the ledger."""
    client = secure.client
    assert client.output("calls.echo", value="hello") == "hello"
    large = "x" * LARGE
    assert client.output("calls.echo", value=large) == large
    body, events = {"input": {"upto": 50}}, {"Accept": "text/event-stream"}
    with client.http.stream("POST", "/v1/functions/calls.counts/calls", json=body, headers=events) as stream:
        assert stream.status_code == 200
        assert sum(line == "event: chunk" for line in stream.iter_lines()) == 50
    assert client.ended(client.job("calls.echo", value="y" * 1_000_000))["state"] == "succeeded"
    wait_until(lambda: client.http.get("/v1/usage").json()["lines"], "usage is in the ledger", 60.0)


@pytest.mark.parametrize(("host", "port"), [("gateway", API_PORT), ("gateway", BODY_PORT), ("bus", BUS_PORT)])
def test_who_speaks_plain_gets_nothing(secure: SecureFleet, host: str, port: int) -> None:
    """No answer to a request in clear; the bus ends the connection of who would give his password away."""
    address = secure.fleet.network.hosts[host].address
    with socket.create_connection((address, port), timeout=20) as plain:
        if host == "bus":
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
    secure: SecureFleet, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """What is wrong is said, and the password is not."""
    url = secure.fleet.bus_url(bus_users.OPERATOR)
    stranger = an_authority(tmp_path_factory.mktemp("stranger"))
    for address, ca_file, says in (
        (url, str(stranger), "its certificate is of no authority among those in "),
        (url, "", "its certificate is of no authority among those this machine knows"),
    ):
        with pytest.raises(BusDown, match=says) as caught:
            async with connect(address, name="stranger", timeout=1.0, ca_file=ca_file, makes_streams=False):
                raise AssertionError("it is trusted")
        assert "operator" not in str(caught.value)
    async with connect(url, name="known", ca_file=secure.fleet.ca_file, makes_streams=False) as bus:
        assert bus.connected


def test_a_client_without_the_authority_is_told_so(secure: SecureFleet) -> None:
    """By the command line; nothing was sent. With a file that is none, that is said."""
    env = {**os.environ, "PILOTLIGHT_URL": secure.client.url, "PILOTLIGHT_API_KEY": secure.client.key}

    without = run_command(["app", "list"], env={**env, "PILOTLIGHT_CA_FILE": ""})
    wrong = run_command(["app", "list"], env={**env, "PILOTLIGHT_CA_FILE": "/nowhere/ca.pem"})

    assert without.returncode == wrong.returncode == 1
    assert "is not trusted: its certificate is of no authority among" in without.stderr.replace("\n", " ")
    assert "PILOTLIGHT_CA_FILE" in without.stderr
    assert "/nowhere/ca.pem cannot be read" in wrong.stderr.replace("\n", " ")


def test_a_new_certificate_is_served_without_a_restart(secure: SecureFleet) -> None:
    """An open connection goes on; the next one sees the new certificate."""
    host, client = secure.fleet.network.hosts["gateway"], secure.client
    assert client.http.get("/readyz").status_code == 200
    before = _serial(secure)

    secure.fleet.certificate_of(host)

    wait_until(lambda: _serial(secure) != before, "the new certificate is served", 60.0)
    assert client.http.get("/readyz").status_code == 200
    assert client.output("calls.echo", value="z" * 1_000_000) == "z" * 1_000_000


def _serial(secure: SecureFleet) -> str:
    with (
        httpx.Client(verify=secure.fleet.trusted, trust_env=False) as fresh,
        fresh.stream("GET", f"{secure.client.url}/readyz") as answer,
    ):
        found = answer.extensions["network_stream"].get_extra_info("ssl_object").getpeercert()
    return str(found["serialNumber"])
