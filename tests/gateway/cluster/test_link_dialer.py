"""Dials real sockets of agents, and not those that there are not."""

from __future__ import annotations

import asyncio
from functools import partial
from itertools import pairwise
from pathlib import Path

from pilotlight_core.links import TO_AGENT, AcceptedEnds, Link, LinkFolder, unix_link
from pilotlight_core.model.messages.link_messages import LinkSwitch
from pilotlight_core.model.messages.message import Message
from pilotlight_gateway.cluster.link_dialer import LONGEST_PAUSE_S, LinkDialer
from pilotlight_runtime.calls.gateway_links import MOST_LINKS, GatewayLinks
from tests.gateway.cluster.test_agent_links import Site
from tests.waiting import until


class Agent:
    """An agent that listens, whose bus is the gateway."""

    def __init__(self, site: Site) -> None:
        self.site = site
        self.said = asyncio.Event()
        self.links = GatewayLinks(self, region="r", node="n1", instance="i1")
        self.ended = asyncio.Event()
        self.links.ended = self.ended.set
        self.ends = AcceptedEnds(self.links, lambda _: None, MOST_LINKS)
        self.make = partial(unix_link, self.ends, TO_AGENT, asyncio.get_running_loop(), keeps_unheard=True)

    def publish_nowait(self, _subject: str, message: Message, *, reply: str = "") -> None:
        assert isinstance(message, LinkSwitch)
        self.site.links.switched("n1", message)
        self.said.set()


async def test_an_agent_whose_socket_is_there_is_linked(short_folder: Path) -> None:
    """Once, and until the gateway ends; agents without a socket are not."""
    site, folder = Site(), LinkFolder(short_folder / "links")
    agent = Agent(site)
    dialer = LinkDialer(
        folder, site.ends, lambda: [("n1", "i1"), ("far", "i9")], gateway="gw1", clock=lambda: site.port.at
    )
    async with folder.listening("n1", "i1", agent.make):
        await dialer.open_missing()
        await agent.said.wait()
        await until(lambda: site.links.has("n1", "i1"))
        await dialer.open_missing()
        assert list(site.ends.agents()) == [("n1", "i1")]
        site.ends.close_all("the gateway ends")
        await agent.ended.wait()
    assert agent.links.send("gw1", LinkSwitch(link="")) is False


async def test_where_dialling_fails_it_is_tried_more_and_more_rarely(short_folder: Path) -> None:
    """But not for ever more rarely."""
    site, folder = Site(), LinkFolder(short_folder / "links")
    folder.folder.mkdir()
    folder.path_of("n1", "i1").touch()  # no socket
    asked: list[float] = []

    class Counted(LinkFolder):
        async def dial(self, *_: object) -> Link:
            asked.append(site.port.at)
            raise ConnectionRefusedError

    dialer = LinkDialer(
        Counted(folder.folder), site.ends, lambda: [("n1", "i1")], gateway="gw1", clock=lambda: site.port.at
    )
    for _ in range(400):
        await dialer.open_missing()
        site.port.at += 1.0

    pauses = [later - before for before, later in pairwise(asked)]
    assert pauses[:3] == [1.0, 2.0, 4.0]
    assert max(pauses) == LONGEST_PAUSE_S
