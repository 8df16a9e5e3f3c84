"""Connections to the listener for agents become links, over real sockets, on both event loops that processes run on."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import uvloop

from pilotlight_core.host.certificates.server_context import ServerContext
from pilotlight_core.links import TO_AGENT, AcceptedEnds, Link, LinkCaller, LinkPort
from pilotlight_core.links.link_requests import REFUSED_LINK, address_of_link, link_request
from pilotlight_core.model.messages.call_messages import Cancel, Started
from pilotlight_core.model.messages.link_messages import LinkHello, LinkOffer, LinkSwitch
from pilotlight_gateway.bodies.byte_budget import ByteBudget
from pilotlight_gateway.calls.large_bodies import LargeBodies
from pilotlight_gateway.cluster.link_offers import LinkOffers
from pilotlight_gateway.http.listening_socket import listen
from pilotlight_gateway.http.quiet_server import QuietServer
from pilotlight_gateway.listeners import Listener, body_server
from tests.builders.certificates import a_server, an_authority, tls_files
from tests.gateway.cluster.test_link_offers import AGENT, Place
from tests.waiting import until

LOOPS = {"asyncio": asyncio.new_event_loop, "uvloop": uvloop.new_event_loop}


class Agent:
    """n1, which takes what it is offered and greets back."""

    def __init__(self, *, plain: bool, ca_file: str) -> None:
        self.read: list[Any] = []
        self.links: list[LinkPort] = []
        self.ends = AcceptedEnds(self, self.read.extend, 4)
        self._jobs: set[asyncio.Task[None]] = set()
        loop = asyncio.get_running_loop()
        self.caller = LinkCaller(
            self.ends, partial(Link, self.ends, TO_AGENT, loop, keeps_unheard=True),
            lambda job: self._jobs.add(loop.create_task(job)), node="n1", instance="i1", plain=plain, ca_file=ca_file,
        )  # fmt: skip

    def greeted(self, link: LinkPort, hello: LinkHello) -> None:
        self.links.append(link)
        link.send(hello)

    def closed(self, link: LinkPort) -> None:
        self.links.remove(link)


class Site(Place):
    """A gateway that listens, and its agent."""

    def __init__(self, server: QuietServer, agent: Agent, url: str) -> None:
        super().__init__()
        self.server, self.agent, self.url = server, agent, url
        self.offers = LinkOffers(
            self.door, self.ends, self.port, url, region="r", gateway="gw1", identity=self.identities.get
        )

    def offer(self) -> LinkOffer:
        self.tick()
        return self.told()[-1]

    async def link(self) -> LinkOffer:
        """What was offered, once there is a link."""
        offer = self.offer()
        self.agent.caller.on_offer("", offer, "")
        await until(lambda: self.agent.links)
        self.links.switched("n1", LinkSwitch(link=offer.hello.link))
        await until(lambda: self.links.has(*AGENT))
        return offer


@asynccontextmanager
async def site(authority: Path | None) -> AsyncIterator[Site]:
    tls = None
    if authority is not None:
        tls = ServerContext(tls_files(a_server(authority.parent)), datetime.now(UTC))
    listener = Listener(socket=listen("127.0.0.1", 0), tls=tls)
    bodies = LargeBodies(url=listener.url, budget=ByteBudget(limit=10**6))
    agent = Agent(plain=authority is None, ca_file=str(authority or ""))
    place = Site.__new__(Site)
    server = body_server(bodies, listener, _Late(place))
    Site.__init__(place, server, agent, listener.url)
    async with asyncio.TaskGroup() as group:
        group.create_task(server.serve(sockets=[listener.socket]))
        await until(lambda: server.started)
        try:
            yield place
        finally:
            place.ends.close_all("over")
            agent.ends.close_all("over")
            server.stop()


class _Late:
    """The door of a place that is being made."""

    def __init__(self, place: Site) -> None:
        self._place = place

    def claim(self, link: str, nonce: str, proof: str) -> Any:
        return self._place.door.claim(link, nonce, proof)


def run(loop: str, authority: Path | None, test: Callable[[Site], Coroutine[Any, Any, None]]) -> None:
    async def whole() -> None:
        async with asyncio.timeout(30), site(authority) as place:
            await test(place)

    with asyncio.Runner(loop_factory=LOOPS[loop]) as runner:
        runner.run(whole())


@pytest.fixture(params=["plain", "tls"])
def authority(request: pytest.FixtureRequest, tmp_path: Path) -> Path | None:
    return an_authority(tmp_path / "ca") if request.param == "tls" else None


@pytest.mark.parametrize("loop", LOOPS)
def test_frames_go_both_ways_over_a_connection_that_became_a_link(loop: str, authority: Path | None) -> None:
    """Large ones too; its place among the listener's connections is free again, and bodies go on beside it."""

    async def test(place: Site) -> None:
        await place.link()
        assert not place.server.server_state.connections
        (end,) = place.ends._greeted
        cancel, started = Cancel(call_id="c" * 900), Started(call_id="c1", grant_number=1)
        for _ in range(2_000):
            end.send(cancel)
            place.agent.links[0].send(started)
        await until(lambda: len(place.agent.read) == 2_000 and sum(len(group) for _, group in place.read) == 2_000)
        assert place.agent.read == [cancel] * 2_000
        place.ends.close_all("over")
        await until(lambda: not place.agent.links)

    run(loop, authority, test)


@pytest.mark.parametrize("loop", LOOPS)
def test_a_server_that_ends_does_not_wait_for_links(loop: str, authority: Path | None) -> None:
    """They go on until who has them ends them: calls may still be answered over them."""

    async def test(place: Site) -> None:
        await place.link()
        place.server.stop()
        await until(lambda: not place.server.servers or not place.server.started or place.server.should_exit)
        (end,) = place.ends._greeted
        end.send(cancel := Cancel(call_id="c1"))
        await until(lambda: place.agent.read == [cancel])

    run(loop, authority, test)


def _altered(request: bytes, offer: LinkOffer) -> dict[str, bytes]:
    proof = request.split(b"pilotlight-proof: ")[1][:64]
    return {
        "another link": request.replace(offer.hello.link.encode(), b"x" * 20, 1),
        "another proof": request.replace(proof, proof[::-1]),
        "no proof": request.replace(b"pilotlight-proof", b"x-proof"),
        "two proofs": request.replace(b"\r\n\r\n", b"\r\npilotlight-proof: " + proof + b"\r\n\r\n"),
        "another method": request.replace(b"GET", b"PUT", 1),
        "another path": request.replace(b"/links/", b"/bodies/", 1),
    }


def test_strangers_are_told_nothing_and_take_no_offer() -> None:
    """Whatever is wrong the answer is the same; who was asked has its link after them."""

    async def test(place: Site) -> None:
        offer = place.offer()
        address = address_of_link(offer.url)
        assert address is not None
        wrong = LinkOffer(hello=offer.hello, url=offer.url, secret="guessed")
        requests = _altered(link_request(wrong, address, "nonce"), offer) | {
            "another secret": link_request(wrong, address, "nonce")
        }
        for what, request in requests.items():
            reader, writer = await asyncio.open_connection(address.host, address.port)
            writer.write(request)
            assert await reader.read() == REFUSED_LINK, what
            writer.close()
            await writer.wait_closed()
        place.agent.caller.on_offer("", offer, "")
        await until(lambda: place.agent.links)

    run("uvloop", None, test)


def test_a_replayed_request_gets_nothing() -> None:
    """A proof that was read on its way is good once."""

    async def test(place: Site) -> None:
        offer = place.offer()
        address = address_of_link(offer.url)
        assert address is not None
        request = link_request(offer, address, "nonce")
        first, its_writer = await asyncio.open_connection(address.host, address.port)
        its_writer.write(request)
        assert (await first.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 101 ")
        second, writer = await asyncio.open_connection(address.host, address.port)
        writer.write(request)
        assert await second.read() == REFUSED_LINK
        for each in (its_writer, writer):
            each.close()
            await each.wait_closed()

    run("uvloop", None, test)


def test_an_upgrade_on_a_used_connection_is_refused_and_other_upgrades_are_passed_over() -> None:
    """What else asks for an upgrade is a request like any other."""

    async def test(place: Site) -> None:
        offer = place.offer()
        address = address_of_link(offer.url)
        assert address is not None
        reader, writer = await asyncio.open_connection(address.host, address.port)
        writer.write(b"GET /bodies/none HTTP/1.1\r\nhost: x\r\nconnection: Upgrade\r\nupgrade: websocket\r\n\r\n")
        assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 404 ")
        writer.write(link_request(offer, address, "nonce"))
        assert await reader.read() == REFUSED_LINK
        writer.close()
        await writer.wait_closed()

    run("uvloop", None, test)


def test_a_connection_that_proves_nothing_is_any_client_s(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is timed until its head is there; what else bounds it does so too."""
    monkeypatch.setattr("pilotlight_gateway.http.server.BoundedProtocol.head_seconds", 0.2)

    async def test(place: Site) -> None:
        address = address_of_link(place.url)
        assert address is not None
        for begun in (b"", b"GET /links/x HTTP/1.1\r\nupgrade: pilotlight-link\r\n"):
            reader, writer = await asyncio.open_connection(address.host, address.port)
            writer.write(begun)
            assert await reader.read() == b""
            writer.close()
            await writer.wait_closed()

    run("uvloop", None, test)
