"""Links over real sockets: who gets in, and what is left in the folder."""

from __future__ import annotations

import asyncio
import os
import socket
import stat
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from pilotlight_core.links import TO_AGENT, TO_GATEWAY, LinkFolder, LinkPort, unix_link, unix_links
from pilotlight_core.model.messages.call_messages import Cancel, Started


class Owner:
    """Writes down what happens."""

    def __init__(self, decoder: Any) -> None:
        self.make = partial(unix_link, self, decoder, asyncio.get_running_loop())
        self.links: list[LinkPort] = []
        self.got: asyncio.Queue[Any] = asyncio.Queue()
        self.over = asyncio.Event()

    def opened(self, link: LinkPort) -> None:
        self.links.append(link)

    def received(self, link: LinkPort, messages: list[Any]) -> None:
        for message in messages:
            self.got.put_nowait(message)

    def closed(self, link: LinkPort) -> None:
        self.over.set()


async def test_both_ends_speak_and_the_end_of_one_is_noticed(short_folder: Path) -> None:
    """The folder is ours alone, and empty again afterwards."""
    agent, gateway = Owner(TO_AGENT), Owner(TO_GATEWAY)
    folder = LinkFolder(short_folder / "links")
    async with folder.listening("n1", "i1", agent.make) as listens:
        assert listens
        link = await folder.dial("n1", "i1", gateway.make)
        link.send(Cancel(call_id="c1"))
        assert await agent.got.get() == Cancel(call_id="c1")
        agent.links[0].send(Started(call_id="c1", grant_number=1))
        assert await gateway.got.get() == Started(call_id="c1", grant_number=1)
        (name,) = folder.names()
        assert stat.S_IMODE((folder.folder / name).stat().st_mode) == 0o600
        assert stat.S_IMODE(folder.folder.stat().st_mode) == 0o700
        link.close("enough")
        await agent.over.wait()
    assert not folder.names()
    with pytest.raises(OSError, match=r"No such file"):
        await folder.dial("n1", "i1", gateway.make)


async def test_another_incarnation_has_another_socket(tmp_path: Path) -> None:
    """And so has another node; no name leads out of the folder."""
    names = {unix_links.name_of(*agent) for agent in (("n", "i"), ("n", "j"), ("ni", ""), ("../..", "/etc"))}

    assert len(names) == 4
    assert not any("/" in name for name in names)


async def test_a_stranger_gets_no_link(short_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever has opened the socket: the kernel says whose process it is."""
    agent, gateway = Owner(TO_AGENT), Owner(TO_GATEWAY)
    folder = LinkFolder(short_folder / "links")
    async with folder.listening("n1", "i1", agent.make):
        monkeypatch.setattr(unix_links, "peer_uid", lambda _: 4_711)
        link = await folder.dial("n1", "i1", gateway.make)
        for _ in range(5):  # turns of the loop, in which the sockets are accepted and closed
            await asyncio.sleep(0)

    assert not link.is_open
    assert not agent.links


async def test_sockets_of_killed_agents_are_removed(short_folder: Path) -> None:
    """Those on which somebody listens stay."""
    folder, agent = LinkFolder(short_folder / "links"), Owner(TO_AGENT)
    folder.folder.mkdir()
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(str(folder.path_of("n1", "old")))
        dead.listen()
    async with folder.listening("n2", "i", agent.make), folder.listening("n1", "new", agent.make):
        assert folder.names() == {unix_links.name_of("n2", "i"), unix_links.name_of("n1", "new")}


async def test_a_path_too_long_for_a_socket_means_the_bus(tmp_path: Path) -> None:
    """The kernel takes 107 bytes."""
    folder = LinkFolder(tmp_path / ("x" * unix_links.PATH_BYTES))

    async with folder.listening("n1", "i1", Owner(TO_AGENT).make) as listens:
        assert not listens
    assert not folder.names()


async def test_a_folder_of_somebody_else_is_not_dialled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Who owns the folder can put any socket there."""
    monkeypatch.setattr(os, "geteuid", lambda: 4_711)

    with pytest.raises(PermissionError):
        await LinkFolder(tmp_path).dial("n1", "i1", Owner(TO_GATEWAY).make)
