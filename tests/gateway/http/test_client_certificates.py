"""Clients of the API that show a certificate: over real sockets, with the whole application behind."""

from __future__ import annotations

import asyncio
import ssl
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import httpx
import pytest

from pilotlight_core.host.certificates.authority import CertificateFiles
from pilotlight_core.host.certificates.server_context import ServerContext
from pilotlight_core.model.api.call_api import KeyRequest
from pilotlight_gateway.http.listening_socket import listen
from pilotlight_gateway.http.server import make_server
from pilotlight_gateway.http.tls_listener import HandshakeBounds, TlsListener
from pilotlight_gateway.tenancy.api_keys import create_key
from tests.builders.certificates import a_client, a_server, an_authority, tls_files, trusting
from tests.gateway.world import World, function
from tests.waiting import until

CALLS = "/v1/functions/shop.hello/calls"
BODY = {"input": {"name": "x"}}


@dataclass
class Served:
    url: str
    authority: Path

    @asynccontextmanager
    async def client(self, shows: CertificateFiles | None, **headers: str) -> AsyncIterator[httpx.AsyncClient]:
        verify = trusting(self.authority, shows)
        async with httpx.AsyncClient(base_url=self.url, verify=verify, trust_env=False, headers=headers) as client:
            yield client


@asynccontextmanager
async def served(world: World, folder: Path) -> AsyncIterator[Served]:
    """The application of `world` with TLS, which takes client certificates of the authority in `folder`."""
    authority = an_authority(folder)
    context = ServerContext(tls_files(a_server(folder), authority), datetime.now(UTC))
    socket = listen("127.0.0.1", 0)
    server = make_server(world.app, graceful_seconds=1, tls=TlsListener(context, HandshakeBounds()))
    async with world.services.workers.running(), asyncio.TaskGroup() as group:
        group.create_task(server.serve(sockets=[socket]))
        await until(lambda: server.started)
        try:
            yield Served(f"https://localhost:{socket.getsockname()[1]}", authority)
        finally:
            server.stop()


async def test_a_mapped_certificate_calls_as_its_tenant_and_no_further(world: World, tmp_path: Path) -> None:
    """Again and again on one connection; what its scopes do not allow is 403; a key beside it counts in its place."""
    world.deploy(function())
    async with served(world, tmp_path) as there:
        asked = KeyRequest(scopes=("invoke",), certificate="reports")
        await create_key(world.registry, "acme", asked, time.time(), by_operator=True)
        async with there.client(a_client(tmp_path, "reports")) as client:
            for _ in range(3):
                answer = await client.post(CALLS, json=BODY)
                assert (answer.status_code, answer.json()["output"]) == (200, {"name": "x"})
            assert (await client.get("/v1/keys")).status_code == 403
            headers = {"authorization": f"Bearer {world.key}"}
            assert (await client.get("/v1/apps", headers=headers)).status_code == 200


async def test_who_is_not_mapped_or_shows_none_is_nobody(world: World, tmp_path: Path) -> None:
    """Though others with the same request were known a moment ago: nothing of a connection is another's."""
    world.deploy(function())
    async with served(world, tmp_path) as there:
        asked = KeyRequest(scopes=("invoke",), certificate="reports")
        await create_key(world.registry, "acme", asked, time.time(), by_operator=True)
        async with (
            there.client(a_client(tmp_path, "reports")) as known,
            there.client(a_client(tmp_path, "stranger")) as unmapped,
            there.client(None) as without,
        ):
            for _ in range(3):
                assert (await known.post(CALLS, json=BODY)).status_code == 200
                refused = await unmapped.post(CALLS, json=BODY)
                assert (refused.status_code, refused.json()["code"]) == (401, "unauthenticated")
                assert "'stranger', is mapped to no tenant" in refused.json()["detail"]
                assert (await without.post(CALLS, json=BODY)).status_code == 401
            assert (await without.get("/healthz")).status_code == 200


@pytest.mark.parametrize("kind", ["another authority", "expired", "a server's"])
async def test_a_certificate_that_proves_nothing_ends_the_connection(world: World, tmp_path: Path, kind: str) -> None:
    """Whatever its name is: before any request is read."""
    async with served(world, tmp_path / "own") as there:
        asked = KeyRequest(certificate="reports")
        await create_key(world.registry, "acme", asked, time.time(), by_operator=True)
        if kind == "another authority":
            an_authority(tmp_path / "other")
            shows = a_client(tmp_path / "other", "reports")
        elif kind == "expired":
            shows = a_client(tmp_path / "own", "reports", age_days=20)
        else:
            shows = a_server(tmp_path / "own", "reports", client=False)
        async with there.client(shows) as client:
            with pytest.raises((httpx.TransportError, ssl.SSLError)):
                await client.get("/healthz")


@pytest.mark.parametrize(
    ("headers", "reads", "changes"),
    [
        ({}, 200, 200),
        ({"sec-fetch-site": "cross-site", "origin": "https://evil.example"}, 401, 401),
        ({"sec-fetch-site": "same-site"}, 401, 401),
        ({"origin": "https://evil.example"}, 200, 401),
    ],
)
async def test_a_strange_page_gets_nothing_of_a_browser_with_a_certificate(
    world: World, tmp_path: Path, headers: dict[str, str], reads: int, changes: int
) -> None:
    """Though the browser shows it whichever page asks. A key of the page's own counts."""
    world.deploy(function())
    async with served(world, tmp_path) as there:
        asked = KeyRequest(scopes=("invoke", "read"), certificate="reports")
        await create_key(world.registry, "acme", asked, time.time(), by_operator=True)
        async with there.client(a_client(tmp_path, "reports"), **headers) as client:
            assert (await client.get("/v1/apps")).status_code == reads
            assert (await client.post(CALLS, json=BODY)).status_code == changes
            key = {"authorization": f"Bearer {world.key}"}
            assert (await client.post(CALLS, json=BODY, headers=key)).status_code == 200


async def test_nobody_becomes_another_by_what_a_proxy_would_forward(world: World, tmp_path: Path) -> None:
    """Not by a certificate in a header, nor by an address: from loopback, which is a named proxy, neither."""
    world.deploy(function())
    async with served(world, tmp_path) as there:
        asked = KeyRequest(scopes=("invoke",), certificate="reports")
        await create_key(world.registry, "acme", asked, time.time(), by_operator=True)
        forwarded = {
            "x-forwarded-client-cert": 'Subject="CN=reports"',
            "x-forwarded-for": "10.0.0.1",
            "x-ssl-client-s-dn": "CN=reports",
            "x-ssl-client-verify": "SUCCESS",
            "forwarded": "for=10.0.0.1;proto=https",
        }
        async with there.client(None, **forwarded) as client:
            assert (await client.post(CALLS, json=BODY)).status_code == 401
