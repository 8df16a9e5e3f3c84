"""Offers of links are taken over real connections, and not from everybody."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any, cast

import msgspec
import pytest

from pilotlight_core.links import TO_AGENT, AcceptedEnds, Link, LinkCaller, LinkPort, host_links
from pilotlight_core.links.link_requests import MOST_HEAD_BYTES, NONCE, header_of, link_answer, proof_of_listener
from pilotlight_core.model.messages.call_messages import Cancel
from pilotlight_core.model.messages.link_messages import LINK_VERSION, LinkHello, LinkOffer
from pilotlight_core.model.messages.message import Message
from tests.builders.certificates import a_server, an_authority
from tests.waiting import until

HELLO = LinkHello(link="l1", gateway="gw1", node="n1", instance="i1")
SECRET = "s3cret"
Answer = Callable[["Asked"], Awaitable[None]]


class Asked:
    """A connection at the gateway, whose request was read."""

    def __init__(self, head: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.head, self.reader, self.writer = head, reader, writer
        lines = (line.partition(b": ") for line in head.split(b"\r\n")[1:])
        self.nonce = header_of([(name, value) for name, _, value in lines], NONCE)

    def link(self, *messages: Message, secret: str = SECRET) -> None:
        """Take it for a link, in one write with its first group."""
        payload = msgspec.msgpack.encode((0, messages))
        answer = link_answer(proof_of_listener(secret, HELLO.link, self.nonce))
        self.writer.write(answer + len(payload).to_bytes(4, "big") + payload)


class Agent:
    """What is offered links; it greets back."""

    def __init__(self, *, plain: bool = True, ca_file: str = "") -> None:
        self.read: list[Any] = []
        self.greeted_by: list[LinkHello] = []
        self.ends = AcceptedEnds(self, self.read.extend, 4)
        self.jobs: set[asyncio.Task[None]] = set()
        make = partial(Link, self.ends, TO_AGENT, asyncio.get_running_loop(), keeps_unheard=True)
        self.caller = LinkCaller(
            self.ends, make, self._spawn, node="n1", instance="i1", plain=plain, ca_file=ca_file
        )  # fmt: skip

    def _spawn(self, job: Any) -> None:
        self.jobs.add(asyncio.get_running_loop().create_task(job))

    def greeted(self, link: LinkPort, hello: LinkHello) -> None:
        self.greeted_by.append(hello)
        link.send(hello)

    def closed(self, link: LinkPort) -> None:
        self.read.append("closed")

    async def offered(self, url: str, hello: LinkHello = HELLO, secret: str = SECRET) -> None:
        """An offer comes, and is done with."""
        self.caller.on_offer("", LinkOffer(hello=hello, url=url, secret=secret), "")
        if self.jobs:
            await asyncio.wait(self.jobs)
        for job in self.jobs:
            job.result()


@asynccontextmanager
async def gateway(answer: Answer, tls: ssl.SSLContext | None = None) -> AsyncIterator[str]:
    """Somebody who listens; its URL."""

    served: set[asyncio.Task[None]] = set()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        served.add(cast("asyncio.Task[None]", asyncio.current_task()))
        try:
            await answer(Asked(await reader.readuntil(b"\r\n\r\n"), reader, writer))
        finally:
            writer.close()
            with suppress(OSError):
                await writer.wait_closed()

    async with await asyncio.start_server(serve, "127.0.0.1", 0, ssl=tls) as server:
        scheme, port = "https" if tls else "http", server.sockets[0].getsockname()[1]
        yield f"{scheme}://127.0.0.1:{port}"
        server.close()
        for task in served:
            task.cancel()
        await asyncio.gather(*served, return_exceptions=True)


async def test_who_is_offered_a_link_gets_it() -> None:
    """What the gateway says with its answer is read, and what follows."""
    agent, over = Agent(), asyncio.Event()
    cancel = Cancel(call_id="c1")

    async def answer(asked: Asked) -> None:
        assert asked.head.startswith(b"GET /links/l1 HTTP/1.1\r\n")
        asked.link(HELLO)
        payload = msgspec.msgpack.encode((0, [cancel]))
        asked.writer.write(len(payload).to_bytes(4, "big") + payload)
        await over.wait()

    async with gateway(answer) as url:
        await agent.offered(url)
        await until(lambda: agent.read == [cancel])
        assert agent.greeted_by == [HELLO]
        agent.ends.close_all("over")
        over.set()


async def test_with_tls_the_gateway_s_certificate_is_verified(tmp_path: Path) -> None:
    """By the authorities that the file has when it connects, and no other."""
    authority, stranger = an_authority(tmp_path / "ca"), an_authority(tmp_path / "other")
    files = a_server(tmp_path / "ca")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(files.certificate, files.key)
    over = asyncio.Event()

    async def answer(asked: Asked) -> None:
        asked.link(HELLO)
        await over.wait()

    async with gateway(answer, context) as url:
        file = tmp_path / "believed.pem"
        file.write_bytes(stranger.read_bytes())
        agent = Agent(plain=False, ca_file=str(file))
        await agent.offered(url)
        assert agent.greeted_by == []
        file.write_bytes(stranger.read_bytes() + authority.read_bytes())
        await agent.offered(url)
        await until(lambda: agent.greeted_by)
        agent.ends.close_all("over")
        over.set()


async def _refuses(asked: Asked) -> None:
    asked.writer.write(b"HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n")


async def _knows_another_secret(asked: Asked) -> None:
    asked.link(HELLO, secret="guessed")


async def _never_ends(asked: Asked) -> None:
    asked.writer.write(b"HTTP/1.1 101 Switching Protocols\r\n" + b"x" * MOST_HEAD_BYTES)
    await asked.reader.read()


async def _hangs_up(asked: Asked) -> None:
    asked.writer.close()


async def _is_silent(asked: Asked) -> None:
    await asked.reader.read()


@pytest.mark.parametrize("answer", [_refuses, _knows_another_secret, _never_ends, _hangs_up, _is_silent])
async def test_who_does_not_prove_itself_gets_nothing(answer: Answer, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its connection ends, within a bound, and another offer is taken then."""
    monkeypatch.setattr(host_links, "CALL_S", 0.3)
    agent = Agent()
    async with gateway(answer) as url:
        for _ in range(2):
            await agent.offered(url)
    assert (agent.greeted_by, agent.read) == ([], [])


async def test_who_greets_for_another_gateway_is_not_read() -> None:
    """An offer is of one gateway, which the link then is to."""
    agent, ended = Agent(), asyncio.Event()

    async def answer(asked: Asked) -> None:
        asked.link(msgspec.structs.replace(HELLO, gateway="gw2"))
        await asked.reader.read()
        ended.set()

    async with gateway(answer) as url:
        await agent.offered(url)
        await ended.wait()
    assert agent.greeted_by == []


@pytest.mark.parametrize(
    "hello",
    [
        msgspec.structs.replace(HELLO, node="n2"),
        msgspec.structs.replace(HELLO, instance="i0"),
        msgspec.structs.replace(HELLO, version=LINK_VERSION + 1),
    ],
    ids=["another node", "another incarnation", "another version"],
)
async def test_offers_to_others_are_passed_over(hello: LinkHello) -> None:
    """And so is whatever is no offer."""
    agent = Agent()
    agent.caller.on_offer("", Cancel(call_id="c1"), "")
    await agent.offered("http://127.0.0.1:1", hello)
    assert not agent.jobs


@pytest.mark.parametrize("url", ["http://127.0.0.1:1", "ftp://127.0.0.1:1"])
async def test_nothing_goes_in_clear_where_the_bus_does_not(url: str) -> None:
    """Whatever the gateway says of its address."""
    agent = Agent(plain=False)
    await agent.offered(url)
    assert not agent.jobs


async def test_connections_under_way_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """One to each gateway, and not many in all."""
    monkeypatch.setattr(host_links, "MOST_CALLS", 2)
    agent = Agent()
    async with gateway(_is_silent) as url:
        for name in ("gw1", "gw1", "gw2", "gw3"):
            hello = msgspec.structs.replace(HELLO, gateway=name)
            agent.caller.on_offer("", LinkOffer(hello=hello, url=url, secret=SECRET), "")
        assert len(agent.jobs) == 2
        for job in agent.jobs:
            job.cancel()
        await asyncio.wait(agent.jobs)
