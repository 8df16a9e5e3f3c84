"""Links are offered to those of other hosts, and kept by those whom the bus still knows."""

from __future__ import annotations

import asyncio
from itertools import pairwise
from typing import Any, cast

import pytest

from pilotlight_core.model.messages.link_messages import LinkHello, LinkOffer
from pilotlight_gateway.cluster import link_offers
from pilotlight_gateway.cluster.agent_links import AgentKey
from pilotlight_gateway.cluster.link_door import LinkDoor
from pilotlight_gateway.cluster.link_offers import LONGEST_PAUSE_S, UNHEARD_S, LinkOffers
from tests.gateway.cluster.test_agent_links import Site
from tests.memory_link import MemoryLink

AGENT = ("n1", "i1")


class Wire:
    """A transport that takes whatever is written."""

    def __init__(self) -> None:
        self.aborted = False

    def set_protocol(self, protocol: Any) -> None: ...

    def write(self, data: bytes) -> None: ...

    def get_write_buffer_size(self) -> int:
        return 0

    def pause_reading(self) -> None: ...

    def resume_reading(self) -> None: ...

    def abort(self) -> None:
        self.aborted = True


class Place(Site):
    """A gateway that offers links, to n1 first of all."""

    def __init__(self) -> None:
        super().__init__()
        self.door = LinkDoor(self.port.clock)
        self.identities: dict[AgentKey, object] = {AGENT: 1.0}
        self.living = [AGENT]
        self.offers = LinkOffers(
            self.door, self.ends, self.port, "https://gw-1:8471", region="r", gateway="gw1",
            identity=self.identities.get,
        )  # fmt: skip

    def tick(self, seconds: int = 1) -> None:
        for _ in range(seconds):
            self.offers.tick(self.living, self.living)
            self.port.at += 1.0

    def told(self) -> list[LinkOffer]:
        return self.port.told(LinkOffer)

    def come(self, hello: LinkHello | None = None) -> Wire:
        """Who was asked comes."""
        wire, hello = Wire(), hello or self.told()[-1].hello
        self.offers._opened(hello, self.identities.get(AGENT), cast("asyncio.Transport", wire))
        return wire


async def test_who_is_of_another_host_is_offered_a_link() -> None:
    """On its own subject, until it has come: then it is greeted, and has one."""
    place = Place()
    place.tick()
    (offer,) = place.told()
    assert [subject for subject, _ in place.port.sent] == ["pl.r.node.n1.link.i1"]
    assert (offer.url, offer.hello.gateway, offer.hello.node, offer.hello.instance) == (
        "https://gw-1:8471", "gw1", "n1", "i1",
    )  # fmt: skip
    assert len(place.door) == 1
    wire = place.come()
    assert list(place.ends.agents()) == [AGENT]
    place.tick(100)
    assert (len(place.told()), wire.aborted) == (1, False)


async def test_who_does_not_come_is_asked_more_and_more_rarely() -> None:
    """Each time with another secret; not for ever more rarely, and who had a good link is asked at once."""
    place, asked = Place(), list[float]()
    for _ in range(400):
        before = len(place.told())
        place.tick()
        asked += [place.port.at] * (len(place.told()) - before)
    pauses = [later - before for before, later in pairwise(asked)]
    assert pauses[:3] == [1.0, 2.0, 4.0]
    assert max(pauses) == LONGEST_PAUSE_S
    assert len({offer.secret for offer in place.told()}) == len(asked)

    place.come()
    place.tick(70)
    place.ends.close_all("it broke")
    asked.clear()
    for _ in range(4):
        before = len(place.told())
        place.tick()
        asked += [place.port.at] * (len(place.told()) - before)
    assert [later - before for before, later in pairwise(asked)] == [1.0, 2.0]


@pytest.mark.parametrize("instance", ["a b", "x" * 1024, "a.b", "*", ">", "", "i1\n"])
async def test_who_calls_itself_what_is_no_part_of_a_subject_is_offered_none(instance: str) -> None:
    """And others are, as before: what a node says of itself harms nobody else."""
    place, evil = Place(), ("n0", instance)
    place.living = [evil, AGENT]
    place.identities[evil] = 1.0
    place.tick(3)
    assert {offer.hello.node for offer in place.told()} == {"n1"}


async def test_another_name_each_second_brings_no_more_offers() -> None:
    """A node is offered a link as rarely as one that does not come."""
    place = Place()
    for number in range(60):
        agent = ("n1", f"i{number}")
        place.identities[agent], place.living = 1.0, [agent]
        place.tick()
    assert len(place.told()) == 6


async def test_offers_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """In a second, and in all."""
    monkeypatch.setattr(link_offers, "OFFERS_AT_ONCE", 2)
    monkeypatch.setattr(link_offers, "MOST_HOST_LINKS", 3)
    place = Place()
    place.living = [(f"n{number}", "i1") for number in range(5)]
    place.identities.update(dict.fromkeys(place.living, 1.0))
    place.tick()
    assert len(place.told()) == 2
    for number in range(3):
        link = MemoryLink(place.ends)
        place.ends.begin(link, LinkHello(link=f"l{number}", gateway="gw1", node=f"n{number}", instance="i1"))
    place.tick(10)
    assert len(place.told()) == 2


async def test_nobody_is_offered_a_link_without_an_identity_or_a_bus() -> None:
    """Nor is a door opened for them."""
    place = Place()
    del place.identities[AGENT]
    place.tick()
    place.identities[AGENT], place.port.connected = 1.0, False
    place.tick()
    assert (place.told(), len(place.door)) == ([], 0)


async def test_a_second_connection_is_closed() -> None:
    """One link is enough, on whichever way it came."""
    place = Place()
    place.tick()
    link = MemoryLink(place.ends)
    place.ends.begin(link, LinkHello(link="l9", gateway="gw1", node="n1", instance="i1"))
    assert place.come().aborted
    assert not link.closed


async def test_whose_identity_has_ended_loses_its_link() -> None:
    """At the next beat; so does who has the node's name by another token. An offer from before is worth nothing."""
    place = Place()
    place.tick()
    wire, hello = place.come(), place.told()[0].hello
    place.identities[AGENT] = 2.0
    place.tick()
    assert wire.aborted
    assert not list(place.ends.agents())
    late = Wire()
    place.offers._opened(hello, 1.0, cast("asyncio.Transport", late))
    assert late.aborted
    del place.identities[AGENT]
    assert place.come(hello).aborted


async def test_who_is_not_heard_on_the_bus_loses_its_link() -> None:
    """But not at once while it is this gateway that hears nobody, or has just begun to hear again."""
    place = Place()
    place.tick()
    wire = place.come()
    place.port.connected, place.living = False, []
    place.tick(int(UNHEARD_S))
    assert not wire.aborted
    place.port.connected = True
    place.tick(int(UNHEARD_S) - 1)
    assert not wire.aborted
    place.living = [AGENT]
    place.tick(10)
    assert not wire.aborted
    place.living = []
    place.tick()
    assert wire.aborted


async def test_without_a_bus_links_end_after_as_long_as_a_revocation_may_take() -> None:
    """A gateway that hears nothing does not hear of it. Times without the bus are not added up."""
    place = Place()
    place.tick()
    wire, ended = place.come(), []
    for seconds in (int(UNHEARD_S), int(UNHEARD_S), int(UNHEARD_S) + 1):
        place.port.connected = False
        place.tick(seconds)
        ended.append(wire.aborted)
        place.port.connected = True
        place.tick()
    assert ended == [False, False, True]
    assert not list(place.ends.agents())


async def test_links_are_counted_by_their_way() -> None:
    """And so is what goes over them."""
    place = Place()
    place.tick()
    place.come()
    assert place.links.standing() == {"machine": 0, "hosts": 0}
    (link,) = place.ends._begun
    place.ends.received(link, [place.told()[0].hello])
    place.links._come_halfway(place.ends._begun[link][0])
    assert place.links.standing() == {"machine": 0, "hosts": 1}
    place.send()
    assert place.links.runs == {"machine": 0, "hosts": 1, "bus": 0}
