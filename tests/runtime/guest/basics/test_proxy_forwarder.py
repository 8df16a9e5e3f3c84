"""The forwarder of a guest, as libraries find it: in front of the real proxy, with scripted names."""

from __future__ import annotations

import asyncio
import gc
import os
import subprocess
import sys
from pathlib import Path

import pytest

from pilotlight_runtime.guest.basics.proxy_forwarder import NO_PROXY, VARIABLES, proxy_variables
from tests.runtime.egress.proxy_world import HOST, OTHER, PUBLIC, proxy_world
from tests.variants import with_variants

CLIENTS = {
    "urllib": "import urllib.request; found = urllib.request.urlopen(url).read().decode()",
    "requests": "import requests; found = requests.get(url).text",
    "httpx": "import httpx; found = httpx.get(url).text",
    "aiohttp": """
import aiohttp, asyncio
async def get():
    async with aiohttp.ClientSession(trust_env=True) as session, session.get(url) as answer:
        return await answer.text()
found = asyncio.run(get())
""",
}
PROGRAM = """
import os, sys
from pilotlight_runtime.guest.basics.proxy_forwarder import proxy_variables
os.environ.update(proxy_variables(sys.argv[1], {{}}))
url = sys.argv[2]
try:
    {code}
except Exception as error:
    found = repr(error)
print(found)
"""


async def run(client: str, folder: Path, url: str, authority: Path) -> str:
    """What a client has got, in a process that has started a forwarder."""
    code = CLIENTS[client].strip().replace("\n", "\n    ")
    trusted = {"SSL_CERT_FILE": str(authority), "REQUESTS_CA_BUNDLE": str(authority)}
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", PROGRAM.format(code=code), str(folder), url,
        env={**os.environ, **trusted, "PYTHONPATH": os.pathsep.join(sys.path)}, stdout=subprocess.PIPE,
    )  # fmt: skip
    text, _ = await process.communicate()
    return text.decode().strip()


@pytest.mark.parametrize("client", with_variants(sorted(CLIENTS), 2))
async def test_libraries_work_unmodified(client: str, tmp_path: Path, anyio_backend: str) -> None:
    """They reach what is named, over TLS and in clear, say why they do not reach others, and follow no redirect there.

    aiohttp asks for proxies of the environment only if it is told to (`trust_env`).
    """
    async with proxy_world(tmp_path) as world:
        tls, clear, moved = await world.server(HOST), await world.server(), await world.server()
        moved.location = f"https://{OTHER}:{tls.port}/"
        places = (f"{HOST}:{tls.port}", f"http://{HOST}:{clear.port}", f"http://{HOST}:{moved.port}")
        folder, authority = world.way("c1", *places), tmp_path / "authority" / "ca.pem"

        assert await run(client, folder, f"https://{HOST}:{tls.port}/", authority) == "hello"
        assert await run(client, folder, f"http://{HOST}:{clear.port}/", authority) == "hello"
        for url in (f"https://{OTHER}:{tls.port}/", f"http://{HOST}:{moved.port}/"):
            if client != "httpx" or url.startswith("https:"):  # httpx follows redirects only if it is told to
                assert "is not in network= of this function" in await run(client, folder, url, authority)
        assert {host for _, host in world.names.asked} == {HOST}


async def test_bytes_go_both_ways_and_end(tmp_path: Path, anyio_backend: str) -> None:
    """Each side ends when it likes; what is not there ends the connection."""
    async with proxy_world(tmp_path) as world:
        server = await world.server()
        folder = world.way("c1", f"tcp://{HOST}:{server.port}")
        found = await asyncio.to_thread(proxy_variables, str(folder), {})
        port = int(found["HTTPS_PROXY"].rpartition(":")[2])

        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(f"CONNECT {HOST}:{server.port} HTTP/1.1\r\n\r\nGET / HTTP/1.1\r\n\r\n".encode())
        writer.write_eof()
        assert (await reader.read()).endswith(b"hello")
        writer.close()

        world.proxy.close("c1")
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        assert await reader.read() == b""
        writer.close()


async def test_the_collector_of_garbage_ends_no_connection(tmp_path: Path, anyio_backend: str) -> None:
    """Nobody but the forwarder holds a connection whose client has said all, and waits for the answer."""
    asked, collected = asyncio.Event(), asyncio.Event()

    async def answer_late(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()
        asked.set()
        await collected.wait()
        writer.write(b"hello")
        writer.close()

    async with proxy_world(tmp_path) as world:
        listening = await asyncio.start_server(answer_late, PUBLIC, 0)
        world.listening.append(listening)
        place = f"{HOST}:{listening.sockets[0].getsockname()[1]}"
        found = await asyncio.to_thread(proxy_variables, str(world.way("c1", f"tcp://{place}")), {})
        reader, writer = await asyncio.open_connection("127.0.0.1", int(found["HTTPS_PROXY"].rpartition(":")[2]))
        writer.write(f"CONNECT {place} HTTP/1.1\r\n\r\n".encode())
        writer.write_eof()
        await asked.wait()
        gc.collect()
        collected.set()
        assert (await reader.read()).endswith(b"hello")
        writer.close()


def test_variables(tmp_path: Path) -> None:
    """All spellings; what the function sets itself stays as it is. Without a folder the start fails."""
    found = proxy_variables(str(tmp_path), {"HTTP_PROXY": "http://mine:1"})
    assert set(found) == {*VARIABLES, *NO_PROXY} - {"HTTP_PROXY"}
    assert found["https_proxy"].startswith("http://127.0.0.1:")
    assert "localhost" in found["NO_PROXY"]
    with pytest.raises(FileNotFoundError):
        proxy_variables(str(tmp_path / "none"), {})
