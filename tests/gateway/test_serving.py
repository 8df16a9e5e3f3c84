"""A gateway as a process, on a real bus: it starts, serves, keeps what it was told, and ends in order."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from shutil import copytree
from zlib import crc32

import httpx
import msgspec

from pilotlight_core.host.signing import Verifier
from pilotlight_core.model.api.call_api import DeployFunction, DeployRequest, DeployResponse
from pilotlight_gateway.http.listening_socket import listen
from pilotlight_gateway.tenancy.bootstrap import read_client_file
from tests.forked_module import ForkedModule
from tests.gateway.world import entry, function
from tests.waiting import until, until_found

CONTENT = b"def hello(name): ..."
WITHIN_S = 90.0
"""For a process to start or to end, on a machine that does much else."""


def changed(path: Path) -> int:
    return path.stat().st_mtime_ns if path.exists() else 0


async def is_ready(client: httpx.AsyncClient) -> bool:
    """Whether the gateway takes calls."""
    return (await client.get("/readyz")).status_code == 200


def region_of(folder: Path) -> str:
    """A region of the test's own: all gateways of one have the same key, blob store and ledger."""
    return f"r{crc32(str(folder).encode()):x}"


def started(log: Path, *flags: str) -> ForkedModule:
    """A process of a gateway."""
    with log.open("wb") as out:
        return ForkedModule(("pilotlight_gateway", *flags), env=os.environ, cwd=log.parent, log=out.fileno())


async def refused(folder: Path, *flags: str, code: int = 1) -> str:
    """What a gateway says that ends at once."""
    log = folder / "refused.log"
    process = started(log, "--port", "0", *flags)
    assert await asyncio.to_thread(process.wait, WITHIN_S) == code
    said = log.read_text()
    assert "Traceback" not in said
    return said


@asynccontextmanager
async def gateway(server_url: str, folder: Path, *flags: str) -> AsyncIterator[httpx.AsyncClient]:
    """A running gateway, and a client with its first key. It must end with 0 when it is told to."""
    client_file = folder / "client.json"
    written = changed(client_file)
    process = started(
        folder / "log", "--nats-url", server_url, "--state-dir", str(folder / "state"), "--port", "0",
        "--bootstrap-client-file", str(client_file), "--region", region_of(folder), *flags,
    )  # fmt: skip
    try:
        async with asyncio.timeout(WITHIN_S):
            await until(lambda: process.poll() is not None or changed(client_file) != written, WITHIN_S)
            found = read_client_file(client_file)
            assert found is not None
            headers = {"authorization": f"Bearer {found.api_key}"}
            async with httpx.AsyncClient(base_url=found.url, headers=headers, timeout=10) as client:
                await until_found(lambda: is_ready(client))
                yield client
        process.send_signal(signal.SIGTERM)
        assert await asyncio.to_thread(process.wait, WITHIN_S) == 0
    finally:
        process.kill()
        await asyncio.to_thread(process.wait, WITHIN_S)


async def test_a_gateway_serves_and_remembers(server_url: str, tmp_path: Path) -> None:
    """Deploy, list, restart: the key still opens it and the app is still there, signed and on disk."""
    request = msgspec.json.encode(
        DeployRequest(functions=(DeployFunction(spec=function()),), files=(entry(CONTENT, "main.py"),))
    )
    with listen("127.0.0.1", 0) as free:
        port = free.getsockname()[1]
    async with gateway(server_url, tmp_path, "--metrics-port", str(port)) as client:
        assert (await client.get("/v1/apps")).json() == {"apps": []}
        sha256 = entry(CONTENT).sha256
        assert (await client.put(f"/v1/blobs/{sha256}", content=CONTENT)).status_code == 201
        answer = await client.post("/v1/apps/shop/deploys", content=request)
        deployed = msgspec.json.decode(answer.content, type=DeployResponse)
        assert deployed.functions[0].version == "shop.hello@v1"
        key = client.headers["authorization"]
        refused = await client.post(deployed.functions[0].endpoint, json={"input": {"name": "x"}, "deadline_ms": 100})
        assert (refused.status_code, refused.json()["code"]) == (408, "deadline_exceeded")  # there is no node
        assert "pilotlight_bus_connected 1.0" in (await client.get(f"http://127.0.0.1:{port}/metrics")).text
        assert (await client.get("/metrics")).status_code == 404

    Verifier.load(tmp_path / "state" / "keys")
    blob = tmp_path / "state" / "blobs" / "default" / sha256[:2] / sha256
    assert blob.read_bytes() == CONTENT
    assert (tmp_path / "state" / "ledger.sqlite").is_file()

    async with gateway(server_url, tmp_path) as client:
        assert client.headers["authorization"] == key
        (app,) = (await client.get("/v1/apps")).json()["apps"]
        assert (app["app"], app["revision"]) == ("shop", 1)
        assert (await client.get("/v1/usage")).json()["lines"] == []
        answer = await client.post("/v1/apps/shop/deploys", content=request)
        again = msgspec.json.decode(answer.content, type=DeployResponse)
        assert [(line.version, line.changed) for line in again.functions] == [("shop.hello@v1", False)]


async def test_a_second_gateway_of_the_same_name_is_refused(server_url: str, tmp_path: Path) -> None:
    """It ends with 1 and says what to do; the first serves on."""
    async with gateway(server_url, tmp_path) as client:
        state, region = str(tmp_path / "state"), region_of(tmp_path)
        said = await refused(tmp_path, "--nats-url", server_url, "--state-dir", state, "--region", region)

        assert "Another gateway named 'gateway' runs" in said
        assert (await client.get("/readyz")).status_code == 200


async def test_a_gateway_with_another_key_store_or_ledger_is_refused(server_url: str, tmp_path: Path) -> None:
    """It ends with what differs and what to do, and leaves no key behind; one that is told to takes the place."""
    state, region = tmp_path / "state", region_of(tmp_path)
    (state / "keys").mkdir(parents=True)

    async def second(folder: str, *flags: str) -> str:
        place = (
            "--nats-url",
            server_url,
            "--name",
            "second",
            "--state-dir",
            str(tmp_path / folder),
            "--region",
            region,
        )
        return await refused(tmp_path, *place, *flags)

    async with gateway(server_url, tmp_path) as client:
        assert "There is no key to sign manifests with" in await second("other")
        assert not list((tmp_path / "other").rglob("manifest_ed25519"))
        copytree(state / "keys", tmp_path / "other" / "keys", dirs_exist_ok=True)
        no_store = await second("other")
        assert "the blob store that this process has (one without a store-id)" in no_store
        assert "same --blob-url" in no_store
        told = await second("other", "--blob-url", f"file://{state / 'blobs'}")
        assert "the ledger that this process has" in told
        assert "--adopt ledger" in told
        assert (await client.get("/readyz")).status_code == 200
    lost = tmp_path / "state" / "keys" / "manifest_ed25519"
    lost.unlink()
    assert "There is no key to sign manifests with" in await second("state")
    async with gateway(server_url, tmp_path, "--adopt", "manifest_key"):
        assert lost.is_file()
    async with gateway(server_url, tmp_path):
        pass


async def test_a_wrong_setting_ends_it_at_once_and_is_named(tmp_path: Path) -> None:
    """A flag beyond its bounds, and a price file that is not there."""
    for flags, code, said in (
        (("--drain-seconds", "-3"), 2, "--drain-seconds"),
        (("--price-file", "/nowhere.toml"), 1, "/nowhere.toml"),
    ):
        assert said in await refused(tmp_path, "--state-dir", str(tmp_path), *flags, code=code)


async def test_a_certificate_that_cannot_be_used_ends_the_start(server_url: str, tmp_path: Path) -> None:
    """With 1, and one line that says which file and what is wrong."""
    files = ("--tls-cert", str(tmp_path / "none.pem"), "--tls-key", str(tmp_path / "none.key"))
    said = await refused(tmp_path, "--nats-url", server_url, "--state-dir", str(tmp_path / "state"), *files)

    assert msgspec.json.decode(said.splitlines()[-1])["error"] == (
        f"--tls-cert: {tmp_path}/none.pem cannot be read: No such file or directory."
    )
