"""An HTTP client that nobody needs is not made."""

from __future__ import annotations

import asyncio
import ssl
import subprocess
import sys
from pathlib import Path

import httpx
import pytest

from pilotlight_core.host.http_client import HttpClient, NoHttpClient
from tests.builders.certificates import a_server, an_authority

PROGRAM = """
import asyncio, sys
from pilotlight_core.host.http_client import HttpClient

client = HttpClient(connections=1, timeout=(1.0, 2.0, 3.0, 4.0))
print("httpx" in sys.modules)
made = asyncio.run(client.get())
print("httpx" in sys.modules, "trio" in sys.modules, "click" in sys.modules, *made.timeout.as_dict().values())
"""


def test_httpx_is_loaded_with_the_first_client_alone() -> None:
    """Without what its command line and another event loop would bring."""
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.splitlines() == ["False", "True False False 1.0 2.0 3.0 4.0"]


async def test_all_who_ask_get_one_client() -> None:
    """Also those who ask at the same time; none is left open."""
    own = HttpClient(connections=2)
    first, second = await asyncio.gather(own.get(), own.get())
    assert first is second is await own.get()

    await own.aclose()
    with pytest.raises(RuntimeError, match="closed"):
        await first.get("http://127.0.0.1:1/")
    await HttpClient(connections=2).aclose()


async def test_options_are_the_clients() -> None:
    """As httpx takes them."""
    own = HttpClient(connections=2, trust_env=False, timeout=5.0)
    client = await own.get()
    assert (client.trust_env, client.timeout) == (False, httpx.Timeout(5.0))
    await own.aclose()


async def test_a_client_that_cannot_be_made_is_an_error_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever comes later may get one."""
    own = HttpClient(connections=1)
    with monkeypatch.context() as broken:
        broken.setattr(own, "_make", lambda: (_ for _ in ()).throw(OSError(24, "Too many open files")))
        with pytest.raises(NoHttpClient, match="Too many"):
            await own.get()
    assert await own.get() is not None
    await own.aclose()


async def test_authorities_of_ones_own_count_beside_the_public_ones(tmp_path: Path) -> None:
    """Without them their servers are refused; a file that has none is an error of the client's."""
    authority, files = an_authority(tmp_path), a_server(tmp_path)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(files.certificate, files.key)

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 204 No Content\r\nconnection: close\r\n\r\n")
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=context)
    url = f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}/"
    with_it, without = HttpClient(connections=1, ca_file=str(authority)), HttpClient(connections=1)

    assert (await (await with_it.get()).get(url)).status_code == 204
    with pytest.raises(httpx.ConnectError, match="certificate"):
        await (await without.get()).get(url)
    with pytest.raises(NoHttpClient, match="--ca-file"):
        await HttpClient(connections=1, ca_file=str(tmp_path / "none")).get()
    for each in (with_it, without):
        await each.aclose()
    server.close()
