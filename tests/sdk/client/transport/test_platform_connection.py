"""What a connection makes of its requests: what was never sent, what may have been, and whose error it is."""

from __future__ import annotations

import asyncio
import os
import socket
import ssl
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from pilotlight.client import shared_portal
from pilotlight.client.login.saved_login import remove_login, save_login
from pilotlight.client.transport import platform_connection
from pilotlight.client.transport.config import ClientConfig, make_config
from pilotlight.client.transport.platform_connection import PIECE_BYTES, PlatformConnection
from pilotlight.definitions.errors import BadInput, Misuse, PilotlightError, UnknownCall, Unreachable
from tests.builders.certificates import a_server, an_authority
from tests.sdk.client.login.test_saved_login import LOGIN
from tests.sdk.scripted import KEY, Answer, ScriptedPlatform, answer, problem

Serve = Callable[[socket.socket], None]


@contextmanager
def listening(serve: Serve) -> Iterator[str]:
    """A server that does what `serve` says with each connection; its address."""

    def accept() -> None:
        with suppress(OSError):
            while True:
                made, _ = listener.accept()
                threading.Thread(target=run, args=(made,), daemon=True).start()

    def run(made: socket.socket) -> None:
        with made, suppress(OSError):
            serve(made)

    with socket.create_server(("127.0.0.1", 0)) as listener:
        threading.Thread(target=accept, daemon=True).start()
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        finally:
            listener.shutdown(socket.SHUT_RDWR)


def read_head(made: socket.socket) -> bytes:
    """A request without its body."""
    head = b""
    while b"\r\n\r\n" not in head:
        if not (piece := made.recv(65536)):
            raise ConnectionResetError
        head += piece
    return head


def fetched(url: str, method: str = "POST", path: str = "/x", **how: Any) -> bytes:
    """What a connection of its own fetches."""

    async def fetch() -> bytes:
        made = PlatformConnection(ClientConfig(url=url, api_key=KEY))
        try:
            return await made.fetch(method, path, **how)
        finally:
            await made.aclose()

    return shared_portal().run(fetch())


def test_a_refused_connection_is_unreachable() -> None:
    """The request was never sent and may be repeated."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    with pytest.raises(Unreachable, match=f"^Nothing answers at http://127.0.0.1:{port}: Connection refused"):
        fetched(f"http://127.0.0.1:{port}")


@pytest.mark.parametrize("said", [b"", b"HTTP/1.1 200 OK\r\ncontent-len", b"no HTTP at all\r\n\r\n"])
def test_a_request_that_arrived_may_have_been_carried_out(said: bytes) -> None:
    """However its connection ends, it is not sent again."""
    arrived: list[bytes] = []

    def serve(made: socket.socket) -> None:
        arrived.append(read_head(made))
        made.sendall(said)

    with listening(serve) as url, pytest.raises(UnknownCall, match="may have been carried out"):
        fetched(url)
    assert len(arrived) == 1


def test_a_silent_platform_is_given_up() -> None:
    """The request has a time without bytes."""
    left = threading.Event()

    def serve(made: socket.socket) -> None:
        read_head(made)
        while made.recv(65536):
            pass
        left.set()

    with listening(serve) as url:
        with pytest.raises(UnknownCall, match="silent for too long"):
            fetched(url, timeout=0.05)
        assert left.wait(10)


@pytest.mark.skipif(not hasattr(socket, "TCP_USER_TIMEOUT"), reason="a socket option of Linux")
def test_a_platform_that_reads_nothing_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """Unacknowledged bytes have a time limit."""
    monkeypatch.setattr(platform_connection, "WRITE_S", 0.2)
    tried = threading.Event()

    def serve(_: socket.socket) -> None:
        tried.wait(60)

    with listening(serve) as url:
        with pytest.raises(UnknownCall, match="may have been carried out"):
            fetched(url, content=bytes(32 * 2**20))
        tried.set()


def test_a_large_body_arrives_whole(platform: ScriptedPlatform) -> None:
    """It is sent in pieces, with its length."""
    platform.will("POST", "/x", answer({}))
    body = os.urandom(3 * PIECE_BYTES + 1)
    fetched(platform.url, content=body)
    (request,) = platform.requests
    assert request.body == body
    assert request.headers["content-length"] == str(len(body))
    assert "transfer-encoding" not in request.headers


def test_a_request_has_no_content_type_of_its_own() -> None:
    """The caller's headers describe a body, and without a body there is nothing to describe."""
    heads: list[bytes] = []

    def serve(made: socket.socket) -> None:
        heads.append(read_head(made).lower())
        made.sendall(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n")

    with listening(serve) as url:
        fetched(url)
        fetched(url, headers={"Content-Type": "text/plain"}, content=b"x")
    assert [head.count(b"content-type:") for head in heads] == [0, 1]


def test_an_error_of_the_bodys_source_is_raised(platform: ScriptedPlatform) -> None:
    """It is not reported as one of the connection, which would be retried."""
    platform.will("POST", "/x", answer({}))

    async def source() -> AsyncIterator[bytes]:
        yield b"x"
        raise Misuse("The file has changed.")

    with pytest.raises(Misuse, match="The file has changed"):
        fetched(platform.url, content=source())


def test_a_refusal_has_its_retry_headers(platform: ScriptedPlatform) -> None:
    """The error has the values of the headers."""
    platform.will("POST", "/x", problem("queue_full", headers={"retry-after": "7", "x-should-retry": "false"}))
    with pytest.raises(PilotlightError) as caught:
        fetched(platform.url)
    assert (caught.value.retry_after, caught.value.more["should_retry"]) == (7.0, False)


def test_an_answer_with_a_broken_encoding_is_an_error(platform: ScriptedPlatform) -> None:
    """It is not sent again."""
    platform.will("POST", "/x", Answer(headers={"content-encoding": "gzip"}, pieces=[b"no gzip"]))
    with pytest.raises(BadInput, match="failed"):
        fetched(platform.url)


def test_requests_reuse_connections(platform: ScriptedPlatform) -> None:
    """Hundreds at a time have one each, and requests in turn share one."""
    ports: list[int] = []
    busy = threading.Barrier(100)

    def serve(made: socket.socket) -> None:
        ports.append(made.getpeername()[1])
        while b"GET" in read_head(made):
            busy.wait(30)
            made.sendall(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n")

    async def main() -> None:
        made = PlatformConnection(make_config(url, KEY))
        for _ in range(2):
            await asyncio.gather(*(made.fetch("GET", "/") for _ in range(100)))
        await made.aclose()
        await made.aclose()

    with listening(serve) as url:
        shared_portal().run(main())
    assert len(set(ports)) == len(ports) == 100


@pytest.mark.filterwarnings("ignore:(BasicAuth|The 'proxy_auth' parameter) is deprecated")  # by httpx-aiohttp
def test_a_proxy_stands_before_other_machines_only(monkeypatch: pytest.MonkeyPatch, platform: ScriptedPlatform) -> None:
    """The environment names the proxy, which is not used for this machine."""
    heads: list[bytes] = []

    def serve(made: socket.socket) -> None:
        heads.append(read_head(made))
        made.sendall(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nhi")

    platform.will("GET", "/x", answer("here"))
    with listening(serve) as proxy:
        for name in ("no_proxy", "NO_PROXY", "HTTP_PROXY", "http_proxy", "all_proxy", "ALL_PROXY"):
            monkeypatch.delenv(name, raising=False)
        monkeypatch.setenv("http_proxy", proxy.replace("://", "://ada:secret@"))
        assert fetched("http://pilotlight.example:81", "GET") == b"hi"
        assert fetched(platform.url, "GET") == b'"here"'
        for excepted in ("pilotlight.example", "pilotlight.example:81"):
            monkeypatch.setenv("no_proxy", excepted)
            with pytest.raises(Unreachable):
                fetched("http://pilotlight.example:81", "GET")
    assert len(heads) == 1
    assert heads[0].startswith(b"GET http://pilotlight.example:81/x HTTP/1.1\r\n")
    assert b"proxy-authorization: basic" in heads[0].lower()


def test_an_https_platform_is_believed_by_its_authority_alone(tmp_path: Path, platform: ScriptedPlatform) -> None:
    """Otherwise nothing is sent, and it is said what is wrong: the certificate, no TLS at all, or no such file."""
    authority, files = an_authority(tmp_path / "ca"), a_server(tmp_path / "ca")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(files.certificate, files.key)
    heads: list[bytes] = []

    def serve(made: socket.socket) -> None:
        with context.wrap_socket(made, server_side=True) as secure:
            heads.append(read_head(secure))
            secure.sendall(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\nconnection: close\r\n\r\nhi")

    def get(url: str, ca_file: str) -> bytes:
        made = PlatformConnection(make_config(url.replace("http://", "https://"), KEY, ca_file))
        return shared_portal().run(made.fetch("GET", "/x"))

    with listening(serve) as url:
        assert get(url, str(authority)) == b"hi"
        with pytest.raises(
            Unreachable, match=r"is not trusted: its certificate is of no authority among .*PILOTLIGHT_CA"
        ):
            get(url, "")
        with pytest.raises(Unreachable, match=r"no authority among those in .*stranger"):
            get(url, str(an_authority(tmp_path / "stranger")))
        with pytest.raises(Misuse, match=r"PILOTLIGHT_CA_FILE: .*none cannot be read"):
            get(url, str(tmp_path / "none"))
        assert len(heads) == 1
    with pytest.raises(Unreachable, match="There is no TLS at https://"):
        get(platform.url, str(authority))


FORK = """
import os, sys
from pilotlight.client import default_client, shared_portal
def apps():
    return shared_portal().run(default_client().platform.list_apps())
apps()
if not (child := os.fork()):
    apps()
    sys.exit(0)
assert os.waitpid(child, 0)[1] == 0
apps()
"""


def test_a_forked_child_leaves_the_parents_connections_alone(platform: ScriptedPlatform) -> None:
    """A child that ends in order warns of no open session."""
    platform.will("GET", "/v1/apps", answer({"apps": []}))
    command = [sys.executable, "-c", FORK]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")
    assert len(platform.requests) == 3


async def test_a_login_is_sent_in_the_place_of_a_key(platform: ScriptedPlatform, tmp_path: Path) -> None:
    """The one that the file has when the request is made; without one nothing is sent."""
    platform.will("GET", "/v1/apps", answer({"apps": []}))
    file = tmp_path / "login.json"
    save_login(file, replace(LOGIN, url=platform.url, token="t1", expires_at=4e9))
    connection = PlatformConnection(ClientConfig(url=platform.url, api_key="", login_file=str(file), login="l1"))
    await connection.fetch("GET", "/v1/apps")
    assert await connection.bearer() == "t1"
    await connection.aclose()
    remove_login(file)
    again = PlatformConnection(ClientConfig(url=platform.url, api_key="", login_file=str(file), login="l1"))
    with pytest.raises(PilotlightError, match="logged in"):
        await again.fetch("GET", "/v1/apps")
    assert [request.headers["authorization"] for request in platform.requests] == ["Bearer t1"]


async def test_a_login_elsewhere_is_not_sent_here(platform: ScriptedPlatform, tmp_path: Path) -> None:
    """Two platforms, one file: a client that was made for the first one sends it nothing of the second one."""
    file = tmp_path / "login.json"
    save_login(file, replace(LOGIN, url=platform.url, token="of-this-one", expires_at=0.0))
    connection = PlatformConnection(ClientConfig(url=platform.url, api_key="", login_file=str(file), login="l1"))
    save_login(file, replace(LOGIN, id="l2", url="https://other.example.com", token="of-the-other", expires_at=4e9))
    with pytest.raises(PilotlightError, match="logged in at"):
        await connection.fetch("GET", "/v1/apps")
    await connection.aclose()
    assert platform.requests == []


async def test_without_a_key_none_is_sent(platform: ScriptedPlatform) -> None:
    """To operations that are open."""
    platform.will("GET", "/v1/logins", answer({"logins": []}))
    connection = PlatformConnection(make_config(platform.url, ""))
    await connection.fetch("GET", "/v1/logins")
    await connection.aclose()
    assert "authorization" not in platform.requests[0].headers
