"""Whom a long-running client believes follows the file of authorities, without a new start."""

from __future__ import annotations

import asyncio
import ssl
from functools import partial
from pathlib import Path

import pytest
import uvloop
from structlog.testing import capture_logs

from pilotlight_core.authorities import trust_authorities
from pilotlight_core.model.errors import BadInput
from pilotlight_core.trusted_context import TrustedContext
from tests.builders.certificates import a_server, an_authority


def believing(file: Path) -> TrustedContext:
    return TrustedContext(partial(trust_authorities, str(file), "--ca-file"), str(file))


def put(file: Path, *parts: str) -> None:
    """In its place, as whoever renews a file does."""
    fresh = file.with_name(".fresh")
    fresh.write_text("".join(parts))
    fresh.rename(file)


async def ended(context: ssl.SSLContext, port: int) -> str:
    """How a new connection to the server ended."""
    try:
        async with asyncio.timeout(20):
            reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=context)
            said = (await reader.read()).decode()
            writer.close()
    except ssl.SSLCertVerificationError:
        return "refused"
    return said


@pytest.mark.parametrize("loop", [asyncio.new_event_loop, uvloop.new_event_loop])
def test_new_connections_go_by_the_file_as_it_is(tmp_path: Path, loop: type[asyncio.AbstractEventLoop]) -> None:
    """An authority that was added counts, one that was taken out does not, and a file of nonsense changes nothing."""
    old, new, file = an_authority(tmp_path / "old"), an_authority(tmp_path / "new"), tmp_path / "ca.pem"
    files = a_server(tmp_path / "new")
    serving = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    serving.load_cert_chain(files.certificate, files.key)

    async def serve(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"served")
        writer.close()

    async def try_all() -> list[str]:
        server = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=serving)
        port = server.sockets[0].getsockname()[1]
        put(file, old.read_text())
        context, found = believing(file), list[str]()
        found.append(await ended(context, port))
        for parts in ([old.read_text(), new.read_text()], ["nonsense"], [old.read_text()]):
            put(file, *parts)
            found.append(await ended(context, port))
        server.close()
        return found

    with asyncio.Runner(loop_factory=loop) as runner, capture_logs() as logs:
        assert runner.run(try_all()) == ["refused", "served", "served", "refused"]
    assert [one["event"] for one in logs] == [
        "other authorities are believed", "the new authorities cannot be used", "other authorities are believed",
    ]  # fmt: skip


def test_what_is_asked_for_once_is_asked_for_again(tmp_path: Path) -> None:
    """Protocols stay those that were set; a file that stays wrong is logged once, and an error at the start."""
    file = tmp_path / "ca.pem"
    with pytest.raises(BadInput, match="--ca-file"):
        believing(file)
    put(file, an_authority(tmp_path / "a").read_text())
    context = believing(file)
    context.set_alpn_protocols(["http/1.1"])
    assert not context.refresh()
    put(file, "nonsense")
    with capture_logs() as logs:
        assert [context.refresh(), context.refresh()] == [False, False]
    assert len(logs) == 1
    put(file, an_authority(tmp_path / "b").read_text())
    assert context.refresh()
    assert context.wrap_bio(ssl.MemoryBIO(), ssl.MemoryBIO(), server_hostname="a") is not None
