"""The ways to agents, and where they change."""

from __future__ import annotations

from typing import Any

import pytest

from pilotlight_core.bus import BusDown
from pilotlight_core.model.messages.call_messages import Cancel, Run
from pilotlight_core.model.messages.link_messages import LinkHello, LinkSwitch
from pilotlight_gateway.cluster.agent_ends import AgentEnds
from pilotlight_gateway.cluster.agent_links import AgentLinks
from tests.gateway.driver_port import MemoryDriverPort
from tests.memory_link import MemoryLink

CANCEL = Cancel(call_id="c1")


def run() -> Run:
    return Run(
        call_id="c1", tenant="t", version="v", container="c", method="", epoch=1, grant_number=1, gateway="gw1",
        home="gw1", start_within_ms=1.0, timeout_ms=1.0,
    )  # fmt: skip


class Site:
    """A gateway with one agent, n1 as i1."""

    def __init__(self) -> None:
        self.port = MemoryDriverPort()
        self.links = AgentLinks(self.port, "r")
        self.ends = AgentEnds(self.links, self)
        self.read: list[tuple[str, list[Any]]] = []

    def on_link(self, node: str, messages: list[Any]) -> None:
        self.read.append((node, messages))

    def begin(self, name: str = "l1", instance: str = "i1") -> tuple[MemoryLink, LinkHello]:
        link = MemoryLink(self.ends)
        hello = LinkHello(link=name, gateway="gw1", node="n1", instance=instance)
        self.ends.opened(link)
        self.ends.begin(link, hello)
        return link, hello

    def linked(self, name: str = "l1", instance: str = "i1") -> MemoryLink:
        link, hello = self.begin(name, instance)
        self.ends.received(link, [hello])
        self.links.switched("n1", LinkSwitch(link=name))
        return link

    def send(self) -> None:
        self.links.send_run("n1", "i1", run())
        self.links.send_control("n1", CANCEL, reply="unheard")


def test_without_a_link_the_bus_is_the_way() -> None:
    """Which hears if nobody listens."""
    site = Site()
    site.send()

    assert site.port.sent == [("pl.r.node.n1.run.i1", run()), ("pl.r.node.n1.ctl", CANCEL)]
    assert site.port.replies == ["pl.r.gw.gw1.unheard.c1.1", "unheard"]
    site.port.connected = False
    with pytest.raises(BusDown):
        site.send()


def test_a_link_is_held_until_the_agent_says_on_the_bus_that_it_begins() -> None:
    """Then it is the way."""
    site = Site()
    link, hello = site.begin()
    site.ends.received(link, [hello])
    site.send()
    assert (link.held, len(site.port.sent)) == (True, 2)

    site.links.switched("n1", LinkSwitch(link="l1"))
    site.send()
    site.links.flush()
    assert (link.held, len(site.port.sent)) == (False, 2)
    assert link.sent == [hello, run(), CANCEL]
    assert link.flushes == 1


def test_the_agent_s_word_on_the_bus_may_be_faster_than_its_greeting() -> None:
    """They come on different ways."""
    site = Site()
    link, hello = site.begin()
    site.links.switched("n1", LinkSwitch(link="l1"))
    assert not site.links.has("n1", "i1")
    site.ends.received(link, [hello])

    assert site.links.has("n1", "i1")
    assert not link.held


@pytest.mark.parametrize(("node", "name"), [("n2", "l1"), ("n1", "l2")])
def test_no_node_speaks_for_another_s_link(node: str, name: str) -> None:
    """Neither for its begin nor for its end."""
    site = Site()
    link, hello = site.begin()
    site.ends.received(link, [hello])
    site.links.switched(node, LinkSwitch(link=name))
    assert not site.links.has("n1", "i1")

    site.links.switched("n1", LinkSwitch(link="l1"))
    site.links.switched(node, LinkSwitch(link=name, over=True))
    assert site.links.has("n1", "i1")


def test_what_comes_over_a_link_is_of_its_node() -> None:
    """Whatever it says itself; a first word other than the greeting ends it."""
    site = Site()
    link = site.linked()
    site.ends.received(link, ["something"])
    assert site.read == [("n1", ["something"])]

    other, _ = site.begin("l2")
    site.ends.received(other, [LinkHello(link="l2", gateway="gw1", node="n2", instance="i1")])
    assert other.closed


def test_when_the_agent_ends_a_link_the_bus_is_the_way_again() -> None:
    """Nothing more of the link is read: what it had not heard of the agent tells again."""
    site = Site()
    link = site.linked()
    site.links.switched("n1", LinkSwitch(link="l1", over=True))
    site.send()

    assert link.closed
    assert not site.links.has("n1", "i1")
    assert len(site.port.sent) == 2
    assert not list(site.ends.agents())


def test_a_run_for_another_incarnation_does_not_go_over_the_link() -> None:
    """Whose news wait until the link of the old one is read to its end."""
    site = Site()
    link = site.linked(instance="i0")
    assert site.links.is_ahead("n1", "i1")
    assert not site.links.is_ahead("n1", "i0")
    site.links.send_run("n1", "i1", run())
    assert [subject for subject, _ in site.port.sent] == ["pl.r.node.n1.run.i1"]

    link.close("read to its end")
    assert not site.links.is_ahead("n1", "i1")


def test_a_new_link_of_an_agent_takes_the_place_of_the_old_one() -> None:
    """As when it was opened twice."""
    site = Site()
    first, second = site.linked(), site.linked("l2")

    assert first.closed
    assert not second.closed
    assert len(site.links) == 1
