"""Links over Unix sockets: a folder that is the platform's alone, a socket for each agent and gateway of the machine.

A socket's name is a digest of the node's name and its agent's incarnation, of a gateway "" and its process: who looks
for one knows both, and no name leads out of the folder. Both ends ask the kernel who is at the other one: the same
user, or root.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import struct
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import lru_cache
from hashlib import blake2b
from pathlib import Path
from typing import Any, cast

import msgspec
import structlog

from pilotlight_core.links.link import Link, LinkOwner

PATH_BYTES = 107
"""Of a Unix socket: the kernel takes no more."""
SUFFIX = ".link"
CREDENTIALS = struct.Struct("3i")
"""pid, uid and gid."""

log = structlog.get_logger(__name__)


class LinkFolder:
    """The folder of the sockets; agents and gateways of a machine that have the same one link."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder.resolve()

    def path_of(self, node: str, instance: str) -> Path:
        """Where the socket of an agent or gateway is, if it has one."""
        return self.folder / name_of(node, instance)

    def names(self) -> frozenset[str]:
        """Of the sockets that are there; none if the folder is not, or not private to us."""
        try:
            with os.scandir(self.folder) as entries:
                return frozenset(entry.name for entry in entries if entry.name.endswith(SUFFIX))
        except OSError:
            return frozenset()

    @asynccontextmanager
    async def listening(self, node: str, instance: str, make_link: Callable[[], Link]) -> AsyncIterator[bool]:
        """Let (other) gateways link until the block ends; False: they cannot, and use the bus."""
        path = self.path_of(node, instance)
        if len(os.fsencode(path)) > PATH_BYTES:
            log.warning("no links: the path of the socket is too long; gateways use the bus", path=str(path))
            yield False
            return
        self._make_private()
        self._remove_stale()
        server = await asyncio.get_running_loop().create_unix_server(_protocols(make_link), str(path))
        try:
            path.chmod(0o600)
            yield True
        finally:
            server.close()
            path.unlink(missing_ok=True)

    async def dial(self, node: str, instance: str, make_link: Callable[[], Link]) -> Link:
        """A link to an agent or gateway, not greeted yet.

        Raises:
            OSError: if there is none.
        """
        if self.folder.stat().st_uid != os.geteuid():
            raise PermissionError(f"{self.folder} is not ours.")
        path = str(self.path_of(node, instance))
        _, link = await asyncio.get_running_loop().create_unix_connection(_protocols(make_link), path)
        return cast("Link", link)

    def _make_private(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        self.folder.chmod(0o700)

    def _remove_stale(self) -> None:
        """Remove the sockets on which nobody listens any more: their agents were killed."""
        for name in self.names():
            path = self.folder / name
            with socket.socket(socket.AF_UNIX) as probe, contextlib.suppress(OSError):
                probe.settimeout(0)
                try:
                    probe.connect(str(path))
                except ConnectionRefusedError:
                    path.unlink(missing_ok=True)


@lru_cache(16_384)
def name_of(node: str, instance: str) -> str:
    """The name of a socket in the folder."""
    return blake2b(f"{node}\0{instance}".encode(), digest_size=12).hexdigest() + SUFFIX


def unix_link(
    owner: LinkOwner,
    decoder: msgspec.msgpack.Decoder[Any],
    loop: asyncio.AbstractEventLoop,
    *,
    keeps_unheard: bool = False,
) -> Link:
    """One end of a link over a Unix socket; it closes at once if a stranger is at the other one."""
    return Link(owner, decoder, loop, keeps_unheard=keeps_unheard, admits=is_friend)


def is_friend(transport: asyncio.BaseTransport) -> bool:
    """Whether the process at the other end is ours or root's."""
    uid = peer_uid(transport)
    if uid in (0, os.geteuid()):
        return True
    log.error("a stranger at a link", uid=uid)
    return False


def peer_uid(transport: asyncio.BaseTransport) -> int:
    """The user of the process at the other end, as the kernel knows it."""
    number = os.dup(transport.get_extra_info("socket").fileno())
    with socket.socket(fileno=number) as copy:
        found: tuple[int, int, int] = CREDENTIALS.unpack(
            copy.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, CREDENTIALS.size)
        )
    return found[1]


def _protocols(make_link: Callable[[], Link]) -> Callable[[], asyncio.Protocol]:
    """A `Link` is a protocol by its methods: it is compiled, so it inherits from no class of the library."""
    return cast("Callable[[], asyncio.Protocol]", make_link)
