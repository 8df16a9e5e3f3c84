"""The ways to other gateways: who may link, and what becomes of what a link has lost."""

from __future__ import annotations

import asyncio
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import pytest

from pilotlight_core.links import TO_PEER, LinkFolder, unix_link
from pilotlight_core.model.messages.link_messages import LINK_VERSION, LinkHello
from pilotlight_core.model.messages.scheduling import Dropped, ToHome, ToOrigin, Withdraw
from pilotlight_gateway.cluster.link_dialer import LinkDialer
from pilotlight_gateway.cluster.peer_links import MOST_PEERS, PeerEnds
from pilotlight_gateway.cluster.router import Outbox
from tests.builders.calls import grant
from tests.gateway.driver_port import MemoryDriverPort
from tests.memory_link import MemoryLink
from tests.waiting import until

HELLO = LinkHello(link="l1", gateway="gw1", node="", instance="gw2")


class Site:
    """One gateway, gw1 unless it is said, that knows gw1, gw2 and gw3."""

    def __init__(self, gateway: str = "gw1") -> None:
        self.port = MemoryDriverPort()
        self.outbox = Outbox(self.port, "r")
        self.read: list[Any] = []
        self.ends = PeerEnds(self.outbox.peers, lambda: ["gw1", "gw2", "gw3"], self.read.extend, gateway=gateway)

    def linked(self) -> MemoryLink:
        """Its link to gw2, greeted."""
        link = MemoryLink(self.ends.dialled)
        self.ends.dialled.begin(link, HELLO)
        self.ends.dialled.received(link, [HELLO])
        return link

    def send(self) -> None:
        self.outbox.add_for_home("gw2", 3, Withdraw("c1"))
        self.outbox.add_grant(grant(1, gateway="gw2"))
        self.outbox.add_dropped(Dropped(call_id="c2", gateway="gw2", code="queue_full", detail="no"))
        self.outbox.flush()


def test_items_go_over_a_link_once_the_other_gateway_has_greeted() -> None:
    """Until then, and to gateways without one, over the bus."""
    site = Site()
    link = MemoryLink(site.ends.dialled)
    site.ends.dialled.begin(link, HELLO)
    site.send()
    assert (link.sent, len(site.port.sent)) == ([HELLO], 3)

    site.ends.dialled.received(link, [HELLO])
    site.send()
    assert len(site.port.sent) == 3
    assert [type(message) for message in link.sent[1:]] == [ToHome, ToOrigin, ToOrigin]
    site.outbox.add_for_home("gw3", 3, Withdraw("c1"))
    site.outbox.flush()
    assert site.port.sent[-1][0] == "pl.r.gw.gw3.home"


def test_what_a_link_may_have_lost_goes_over_the_bus() -> None:
    """As the same items, and a turn is asked for."""
    site = Site()
    link = site.linked()
    site.send()
    link.close("it broke")
    assert not len(site.outbox.peers)
    assert site.port.woken() < site.port.at
    site.outbox.flush()
    assert [message for _, message in site.port.sent] == link.sent[1:]


def test_an_older_link_that_ends_leaves_the_newer_one_alone() -> None:
    """And what was on it is not told again: the newer end is the way, and origins repeat themselves."""
    site = Site()
    older, newer = site.linked(), site.linked()
    older.close("it broke")
    site.send()
    assert len(newer.sent) == 4
    assert not site.port.sent


def test_a_gateway_that_greets_rightly_is_read() -> None:
    """From its greeting on; one that dials again replaces its former end."""
    site = Site("gw2")
    first, second = MemoryLink(site.ends.accepted), MemoryLink(site.ends.accepted)
    for link in (first, second):
        site.ends.accepted.opened(link)
        site.ends.accepted.received(link, [HELLO])
        assert link.sent == [HELLO]
    assert first.closed
    message = ToHome(shard=3, items=(Withdraw("c1"),))
    site.ends.accepted.received(second, [message])
    assert site.read == [message]


@pytest.mark.parametrize(
    "said",
    [
        [ToHome(shard=3, items=())],
        [HELLO, HELLO],
        [msgspec.structs.replace(HELLO, instance="gw3")],
        [msgspec.structs.replace(HELLO, node="n1")],
        [msgspec.structs.replace(HELLO, gateway="gone")],
        [msgspec.structs.replace(HELLO, version=LINK_VERSION + 1)],
    ],
    ids=["no greeting", "two", "another gateway", "an agent", "no member", "another version"],
)
def test_whoever_greets_wrongly_is_not_read(said: list[Any]) -> None:
    """Nor answered."""
    site = Site("gw2")
    link = MemoryLink(site.ends.accepted)
    site.ends.accepted.opened(link)
    site.ends.accepted.received(link, said)
    assert link.closed
    assert (link.sent, site.read) == ([], [])


def test_ends_are_bounded_and_tick() -> None:
    """As many as a machine may have gateways; all end with the gateway."""
    site = Site("gw2")
    links = [MemoryLink(site.ends.accepted) for _ in range(MOST_PEERS + 1)]
    for link in links:
        site.ends.accepted.opened(link)
    assert [bool(link.closed) for link in links] == [False] * MOST_PEERS + [True]
    site.ends.accepted.tick()
    assert links[0].ticks == 1
    site.ends.accepted.close_all("the gateway ends")
    assert all(link.closed for link in links)


def test_what_comes_over_a_link_of_our_own_is_not_read() -> None:
    """The other gateway dials its own direction."""
    site = Site()
    site.ends.dialled.received(site.linked(), [ToOrigin()])
    assert site.read == []


async def test_two_gateways_link_over_real_sockets(short_folder: Path) -> None:
    """One dials, and what it sends arrives; the accepted end lives by the other's dialler."""
    here, there, folder = Site("gw1"), Site("gw2"), LinkFolder(short_folder / "links")
    loop = asyncio.get_running_loop()
    dialer = LinkDialer(
        folder, here.ends.dialled, lambda: [("", "gw2")], gateway="gw1", clock=loop.time, decoder=TO_PEER,
        keeps_unheard=True, accepted=here.ends.accepted,
    )  # fmt: skip
    async with folder.listening("", "gw2", partial(unix_link, there.ends.accepted, TO_PEER, loop)):
        dialing = asyncio.create_task(dialer.run())
        await until(lambda: len(here.outbox.peers) == 1)
        here.send()
        await until(lambda: len(there.read) == 3)
        dialing.cancel()
        await asyncio.gather(dialing, return_exceptions=True)
    assert not here.port.sent[3:]
    assert not len(here.outbox.peers)
