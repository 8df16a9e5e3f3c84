"""The link into the dashboard has a code, where one can be had, and never the key."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from pilotlight_supervisor import dashboard_link
from pilotlight_supervisor.dashboard_link import login_link

KEY = "pl_live_key"
MADE = json.dumps(
    {"tenant": "t", "key": "k", "scopes": ["admin"], "expires_at": 1.0, "token": "", "code": "pl_login_x"}
).encode()


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@asynccontextmanager
async def answering(status: int, body: bytes = b"{}") -> AsyncIterator[tuple[str, list[bytes]]]:
    """A server with one answer, and the heads of what it was asked."""
    heads: list[bytes] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heads.append(await reader.readuntil(b"\r\n\r\n"))
        writer.write(b"HTTP/1.1 %d X\r\nconnection: close\r\ncontent-length: %d\r\n\r\n%b" % (status, len(body), body))
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}", heads


@pytest.fixture
def client_file(tmp_path: Path) -> Path:
    """As a platform writes it."""
    path = tmp_path / "client.json"
    path.write_text(json.dumps({"url": "u", "api_key": KEY}))
    return path


async def test_the_code_is_made_with_the_key_and_stands_for_it(client_file: Path) -> None:
    """The link is shown; the key is not in it."""
    async with answering(200) as (dashboard, _), answering(201, MADE) as (gateway, heads):
        link = await login_link(dashboard, gateway, client_file)
    assert link == f"{dashboard}/ui/login?code=pl_login_x"
    assert heads[0].startswith(b"POST /v1/sessions ")
    assert f"authorization: Bearer {KEY}".encode() in heads[0]


@pytest.mark.parametrize("status", [403, 503])
async def test_where_no_code_is_made_the_link_asks_for_a_key(client_file: Path, status: int) -> None:
    """Also where the file is gone, or the gateway."""
    async with answering(200) as (dashboard, _), answering(status) as (gateway, _):
        assert await login_link(dashboard, gateway, client_file) == f"{dashboard}/ui/login"
        assert await login_link(dashboard, gateway, client_file.parent / "none") == f"{dashboard}/ui/login"
        assert await login_link(dashboard, "http://127.0.0.1:9", client_file) == f"{dashboard}/ui/login"


async def test_a_dashboard_that_does_not_answer_has_no_link(client_file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """After a while."""
    monkeypatch.setattr(dashboard_link, "ANSWERS_WITHIN_S", 0.05)
    assert await login_link("http://127.0.0.1:9", "http://127.0.0.1:9", client_file) == ""
