"""Who dials is read once it has greeted, and not before."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from pilotlight_core.links import AcceptedEnds, LinkPort
from pilotlight_core.model.messages.call_messages import Cancel
from pilotlight_core.model.messages.link_messages import LinkHello
from tests.memory_link import MemoryLink

HELLO = LinkHello(link="l1", gateway="gw1", node="n", instance="i")
CANCEL = Cancel(call_id="c1")


class Host:
    """Greets back, but for links of the name "no"."""

    def __init__(self, most: int = 2) -> None:
        self.said: list[Any] = []
        self.ends = AcceptedEnds(self, self.said.extend, most)

    def greeted(self, link: LinkPort, hello: LinkHello) -> None:
        if hello.link == "no":
            link.close("it may not")
        else:
            self.said.append("greeted")
            link.send(hello)

    def closed(self, link: LinkPort) -> None:
        self.said.append("closed")

    def dial(self, *messages: Any) -> MemoryLink:
        link = MemoryLink(self.ends)
        self.ends.opened(link)
        if messages:
            self.ends.received(link, list(messages))
        return link


def test_what_comes_after_a_greeting_is_passed_on() -> None:
    """Until the end, which the greeter hears of."""
    host = Host()
    link = host.dial(HELLO)
    host.ends.received(link, [CANCEL])
    link.close("it broke")

    assert host.said == ["greeted", CANCEL, "closed"]
    assert link.sent == [HELLO]


@pytest.mark.parametrize("messages", [(CANCEL,), (HELLO, CANCEL), (HELLO, HELLO)])
def test_who_begins_otherwise_is_not_read(messages: tuple[Any, ...]) -> None:
    """And the greeter never hears of it."""
    host = Host()
    assert host.dial(*messages).closed
    assert host.said == []


def test_who_was_expected_greets_as_it_was_offered() -> None:
    """And not for another gateway, or by another link's name."""
    for said, closed in ((HELLO, False), (msgspec.structs.replace(HELLO, gateway="gw2"), True)):
        host = Host()
        link = MemoryLink(host.ends)
        host.ends.expect(link, HELLO)
        host.ends.opened(link)
        host.ends.received(link, [said])
        assert bool(link.closed) is closed
        assert host.said == ([] if closed else ["greeted"])


def test_who_is_refused_hears_no_more() -> None:
    """Nor is it read."""
    host = Host()
    link = host.dial(msgspec.structs.replace(HELLO, link="no"))
    assert link.closed
    host.ends.received(link, [CANCEL])
    assert host.said == ["closed"]


def test_ends_are_bounded_tick_and_end_together() -> None:
    """A place is free again when an end has closed."""
    host = Host(most=2)
    first, second, third = host.dial(HELLO), host.dial(), host.dial(HELLO)
    assert [bool(link.closed) for link in (first, second, third)] == [False, False, True]
    first.close("it broke")
    fourth = host.dial(HELLO)

    host.ends.tick()
    assert [link.ticks for link in (second, fourth)] == [1, 1]
    host.ends.close_all("we end")
    assert second.closed
    assert fourth.closed
