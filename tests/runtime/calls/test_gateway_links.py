"""The agent's ends of links: who may link, what goes where, and what is told again."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from pilotlight_core.bus import BusDown
from pilotlight_core.links import AcceptedEnds
from pilotlight_core.model.messages.call_messages import Cancel, Ended, Outcome, Started
from pilotlight_core.model.messages.link_messages import LinkHello, LinkSwitch
from pilotlight_core.model.messages.message import Message
from pilotlight_runtime.calls.gateway_links import MOST_LINKS, GatewayLinks
from tests.memory_link import MemoryLink

HELLO = LinkHello(link="l1", gateway="gw1", node="n", instance="i")


class Agent:
    """The ends of one agent, and its bus."""

    def __init__(self) -> None:
        self.down = False
        self.said: list[tuple[str, Message]] = []
        self.again: list[tuple[str, list[Message]]] = []
        self.got: list[Any] = []
        self.credits = 0
        self.links = GatewayLinks(self, region="r", node="n", instance="i")
        self.links.resend = lambda gateway, messages: self.again.append((gateway, messages))
        self.links.ended = self.publish_credits
        self.ends = AcceptedEnds(self.links, self.got.extend, MOST_LINKS)

    def publish_nowait(self, subject: str, message: Message, *, reply: str = "") -> None:
        if self.down:
            raise BusDown("down")
        self.said.append((subject, message))

    def publish_credits(self) -> None:
        self.credits += 1

    def link(self, hello: LinkHello = HELLO) -> MemoryLink:
        link = MemoryLink(self.ends)
        self.ends.opened(link)
        self.ends.received(link, [hello])
        return link


def ended(call: str = "c1") -> Ended:
    return Ended(call_id=call, grant_number=1, container="c", outcome=Outcome.OK)


def test_a_gateway_that_greets_hears_all_over_its_link() -> None:
    """The bus says where that begins; others are not told over it."""
    agent = Agent()
    link = agent.link()

    assert agent.said == [("pl.r.gw.gw1.reply.n", LinkSwitch(link="l1"))]
    assert agent.links.send("gw1", ended())
    assert not agent.links.send("gw2", ended())
    agent.links.send_all(Started(call_id="c2", grant_number=1))
    assert link.sent == [HELLO, ended(), Started(call_id="c2", grant_number=1)]
    agent.ends.received(link, [Cancel(call_id="c1")])
    assert agent.got == [Cancel(call_id="c1")]


@pytest.mark.parametrize("change", [{"node": "m"}, {"instance": "j"}, {"version": 2}])
def test_who_wants_another_agent_or_speaks_otherwise_gets_no_link(change: dict[str, Any]) -> None:
    """It goes on over the bus."""
    agent = Agent()
    link = agent.link(msgspec.structs.replace(HELLO, **change))

    assert link.closed
    assert not agent.said
    assert not agent.links.send("gw1", ended())


def test_who_does_not_greet_first_gets_no_link() -> None:
    """Nothing of it is read."""
    agent, link = Agent(), None
    link = MemoryLink(agent.ends)
    agent.ends.opened(link)
    agent.ends.received(link, [Cancel(call_id="c1")])

    assert link.closed
    assert not agent.got


def test_without_a_bus_there_is_no_way_to_say_where_a_link_begins() -> None:
    """So there is none."""
    agent = Agent()
    agent.down = True

    assert agent.link().closed
    assert not len(agent.links)


def test_what_a_broken_link_may_have_lost_is_told_again_after_the_bus_says_so() -> None:
    """And before the credits that follow."""
    agent = Agent()
    link = agent.link()
    agent.links.send("gw1", ended())
    link.close("it broke")

    assert agent.said[-1] == ("pl.r.gw.gw1.reply.n", LinkSwitch(link="l1", over=True))
    assert agent.again == [("gw1", [HELLO, ended()])]
    assert agent.credits == 1
    assert not agent.links.send("gw1", ended())


def test_a_second_link_of_a_gateway_takes_the_place_of_the_first() -> None:
    """In order: the first is over before the second begins."""
    agent = Agent()
    first = agent.link()
    second = agent.link(msgspec.structs.replace(HELLO, link="l2"))

    assert first.closed
    assert not second.closed
    switches = [(message.link, message.over) for _, message in agent.said if isinstance(message, LinkSwitch)]
    assert switches == [("l1", False), ("l1", True), ("l2", False)]
    assert len(agent.links) == 1


def test_a_link_that_ends_as_it_greets_is_over() -> None:
    """The other end may be gone, or full, by the first message."""
    agent = Agent()
    link = MemoryLink(agent.ends)
    link.breaks_at_send = True
    agent.ends.opened(link)
    agent.ends.received(link, [HELLO])

    assert not len(agent.links)
    assert agent.said[-1][1] == LinkSwitch(link="l1", over=True)


def test_links_are_bounded() -> None:
    """Each costs a file and a buffer."""
    agent = Agent()
    for number in range(MOST_LINKS):
        agent.link(msgspec.structs.replace(HELLO, gateway=f"gw{number}"))

    assert agent.link(msgspec.structs.replace(HELLO, gateway="one more")).closed
    agent.ends.close_all("the agent ends")
    assert not len(agent.links)
