"""Questions to a metadata service: whatever answers, an agent goes on."""

from __future__ import annotations

import pytest

from pilotlight_runtime.node.notices.metadata_client import MOST_BYTES, MetadataClient
from pilotlight_runtime.node.notices.notice_port import NoticesUnread
from tests.runtime.node.notices.metadata_server import Reply, metadata_server


async def test_an_answer_comes_with_its_status_and_headers() -> None:
    """Whatever the status; the question has the headers that it was given."""
    async with metadata_server(lambda _: Reply(text="no", status=404, headers={"ETag": "7"})) as server:
        client = MetadataClient(server.url)
        answer = await client.ask("/a?b=c", {"Metadata": "true"}, method="PUT")
        await client.aclose()

    assert (answer.status, answer.text, answer.headers["etag"]) == (404, "no", "7")
    assert (server.asked[0].method, server.asked[0].path) == ("PUT", "/a?b=c")
    assert server.asked[0].headers["metadata"] == "true"
    assert server.asked[0].headers["accept-encoding"] == "identity"


@pytest.mark.parametrize(
    ("reply", "why"),
    [
        (Reply(text="x" * (MOST_BYTES + 1)), "more than"),
        (Reply(raw=b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nfff\r\nxyz"), "Protocol"),
        (Reply(raw=b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n\xff\xfe"), "Unicode"),
        (Reply(raw=b"SSH-2.0-OpenSSH_9.6\r\n"), "Protocol"),
        (Reply(raw=b"HTTP/1.1 200 OK\r\nContent-Length: 900\r\n\r\nshort"), "Protocol"),
        (Reply(hangs=True), "not answered within"),
    ],
)
async def test_what_cannot_be_read_is_said(reply: Reply, why: str) -> None:
    """Too long, no text, no HTTP, cut off, or nothing at all."""
    async with metadata_server(lambda _: reply) as server:
        client = MetadataClient(server.url)
        with pytest.raises(NoticesUnread, match=why):
            await client.ask("/", {}, within_s=0.3 if reply.hangs else 20.0)
        await client.aclose()


async def test_nobody_there_is_said() -> None:
    """A machine of another provider."""
    async with metadata_server(lambda _: Reply()) as server:
        url = server.url
    client = MetadataClient(url)
    with pytest.raises(NoticesUnread, match="Connect"):
        await client.ask("/", {})
    await client.aclose()


async def test_a_redirect_is_an_answer() -> None:
    """It leads to where somebody else wants it."""
    reply = Reply(status=302, headers={"Location": "http://127.0.0.1:1/"})
    async with metadata_server(lambda _: reply) as server:
        client = MetadataClient(server.url)
        assert (await client.ask("/", {})).status == 302
        await client.aclose()
