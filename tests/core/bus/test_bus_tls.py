"""TLS to the bus: a server that will not have it, or has another name, gets no password."""

from __future__ import annotations

import asyncio
import json
import ssl
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from pilotlight_core.bus import BusDown, connect
from pilotlight_core.bus.bus_tls import PlainBus, bus_context, check_tls_offer, is_in_clear, tls_problem
from pilotlight_core.model.errors import BadInput
from tests.builders.certificates import a_server, an_authority


def test_which_connections_have_tls(tmp_path: Path) -> None:
    """Those to tls://, by an authority of one's own or by those that Python knows; a bus is all one or the other."""
    own = bus_context("tls://a:1,tls://b:2", str(an_authority(tmp_path)))
    public = bus_context("tls://a:1", "")

    assert own is not None and public is not None  # noqa: PT018
    assert len(own.get_ca_certs()) == 1
    assert (own.verify_mode, own.check_hostname) == (ssl.CERT_REQUIRED, True)
    assert (public.verify_mode, public.check_hostname) == (ssl.CERT_REQUIRED, True)
    assert bus_context("nats://a:1,nats://b:2", "") is None
    with pytest.raises(BadInput, match="all at tls://"):
        bus_context("tls://a:1,nats://b:2", "")
    with pytest.raises(BadInput, match=r"--ca-file: .*none\.pem cannot be read: No such file"):
        bus_context("tls://a:1", str(tmp_path / "none.pem"))


@pytest.mark.parametrize(
    ("url", "hosts"),
    [
        ("nats://me:secret@10.0.0.4:4222,nats://bus-2", ["10.0.0.4", "bus-2"]),
        ("nats://me:secret@127.0.0.1:4222,nats://localhost,nats://[::1]:4222", []),
        ("tls://me:secret@10.0.0.4", []),
    ],
)
def test_a_bus_elsewhere_without_tls_is_warned_of(tmp_path: Path, url: str, hosts: list[str]) -> None:
    """Where there is a file of authorities: somebody wanted TLS. The password is not told."""
    with capture_logs() as lines:
        bus_context(url, str(an_authority(tmp_path)))

    assert [line["hosts"] for line in lines] == [hosts] * bool(hosts)
    assert "secret" not in str(lines)


@pytest.mark.parametrize(
    ("url", "ca_file", "in_clear"),
    [
        ("nats://u:p@10.0.0.4,nats://10.0.0.6", "", True),
        ("nats://10.0.0.4", "ca.crt", False),
        ("tls://u:p@10.0.0.4", "", False),
        ("nats://10.0.0.4,tls://10.0.0.6", "", False),
    ],
)
def test_a_bus_that_may_have_tls_is_not_in_clear(url: str, ca_file: str, in_clear: bool) -> None:
    """With a file of authorities a server at nats:// is spoken to in TLS if it asks for that."""
    assert is_in_clear(url, ca_file) is in_clear


def test_a_greeting_without_tls_is_refused() -> None:
    """Also of a server that would take it but does not insist: who stands between could have written that."""
    check_tls_offer({"tls_required": True})
    for info in ({}, {"tls_available": True}, {"tls_required": False}):
        with pytest.raises(PlainBus):
            check_tls_offer(info)
    assert tls_problem(PlainBus("no TLS"), "") == "no TLS"
    assert tls_problem(OSError("refused"), "") == ""


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_a_server_that_takes_tls_out_of_its_greeting_gets_no_password(tmp_path: Path) -> None:
    """The connection is closed before anything was said, and why is told."""
    said = bytearray()

    async def plain(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        info = {"server_id": "x", "max_payload": 1 << 20, "auth_required": True}
        writer.write(b"INFO %s\r\n" % json.dumps(info).encode())
        said.extend(await reader.read())
        writer.close()

    server = await asyncio.start_server(plain, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    with pytest.raises(BusDown, match="the server does not insist on TLS"):
        async with connect(
            f"tls://me:secret@127.0.0.1:{port}", name="x", timeout=1.0, ca_file=str(an_authority(tmp_path))
        ):
            raise AssertionError("it is trusted")
    server.close()
    assert not said


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_a_server_of_another_name_gets_no_password(tmp_path: Path) -> None:
    """Though its certificate is of the authority."""
    an_authority(tmp_path)
    files = a_server(tmp_path, host="other.example.com")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(files.certificate, files.key)
    said = bytearray()

    async def other(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b'INFO {"server_id": "x", "max_payload": 1048576, "tls_required": true}\r\n')
        try:
            await writer.start_tls(context)
            said.extend(await reader.read())
        except OSError:
            pass
        writer.close()

    server = await asyncio.start_server(other, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    with pytest.raises(BusDown, match="its certificate is of another name"):
        async with connect(
            f"tls://me:secret@127.0.0.1:{port}", name="x", timeout=1.0, ca_file=str(tmp_path / "ca.pem")
        ):
            raise AssertionError("it is trusted")
    server.close()
    assert not said
