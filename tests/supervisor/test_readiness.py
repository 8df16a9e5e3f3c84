"""Readiness over HTTP, and the ready file."""

from __future__ import annotations

import asyncio
import json
import ssl
from pathlib import Path

import pytest

from pilotlight_supervisor.free_ports import free_port
from pilotlight_supervisor.readiness import ReadyFile, UpError, http_status, wait_ready, write_ready
from pilotlight_supervisor.supervisor import ManagedProcess, Supervisor
from tests.builders.certificates import a_server, an_authority


@pytest.mark.parametrize(
    ("answer", "status"),
    [(b"HTTP/1.1 200 OK\r\n\r\n", 200), (b"HTTP/1.1 503 no\r\n", 503), (b"", 0), (b"nonsense\r\n", 0), (b"a b c\n", 0)],
)
async def test_only_an_http_answer_counts(answer: bytes, status: int) -> None:
    """The status of what answers; 0 for silence and nonsense."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        assert (await reader.readline()).startswith(b"GET /readyz HTTP/1.1")
        writer.write(answer)
        writer.close()

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]

        assert await http_status(f"http://127.0.0.1:{port}/readyz") == status


async def test_an_https_platform_is_asked_too(tmp_path: Path) -> None:
    """Whoever signed its certificate, and whatever that names."""
    an_authority(tmp_path)
    files = a_server(tmp_path, host="gw-1.example.com")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(files.certificate, files.key)

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readline()
        writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
        writer.close()

    async with await asyncio.start_server(serve, "127.0.0.1", 0, ssl=context) as server:
        assert await http_status(f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}/readyz") == 200


async def test_nobody_is_no_answer() -> None:
    """A closed port is 0."""
    assert await http_status(f"http://127.0.0.1:{free_port()}/readyz") == 0


async def test_waiting_ends_with_the_logs(tmp_path: Path) -> None:
    """When it takes too long, the message has the end of every part's output."""
    part = ManagedProcess(name="gateway", rank=0, command=("/bin/sh", "-c", "echo it hangs; exec sleep 1000"))
    supervisor = Supervisor([part], tmp_path)
    await supervisor.start()
    try:
        with pytest.raises(UpError, match=r"(?s)not ready after .* gateway\nit hangs"):
            await wait_ready(supervisor, f"http://127.0.0.1:{free_port()}", within_s=0.5)
    finally:
        await supervisor.stop()


def test_the_ready_file_is_whole(tmp_path: Path) -> None:
    """It is replaced at once, so that a reader never sees half of it."""
    path = tmp_path / "ready.json"
    for pid in (1, 2):
        write_ready(path, ReadyFile(url="u", api_key_file="f", nats_url="n", state_dir="s", pids={"gateway": pid}))

        assert json.loads(path.read_text())["pids"] == {"gateway": pid}
        assert path.stat().st_mode & 0o777 == 0o600
    assert list(tmp_path.iterdir()) == [path]
