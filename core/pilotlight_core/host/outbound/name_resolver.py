"""Resolves names of tenants with the system's resolver, in threads.

A lookup cannot be cancelled: a silent name server holds a thread until the system's timeout. So a tenant gets only a
few threads.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any
from weakref import WeakValueDictionary

THREADS = 256
THREADS_PER_TENANT = 8

Resolve = Callable[[str, str, int], Awaitable[Sequence[str]]]
"""The port: (tenant, host, port) to addresses; raises OSError."""
Lookup = Callable[[str, int], Sequence[tuple[Any, ...]]]
"""(host, port) to the result of `socket.getaddrinfo`; blocks."""


def _lookup(host: str, port: int) -> Sequence[tuple[Any, ...]]:
    return socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)


class DnsResolver:
    """Resolves names on behalf of tenants."""

    def __init__(self, lookup: Lookup = _lookup) -> None:
        self._lookup = lookup
        self._threads = ThreadPoolExecutor(THREADS, "names")
        self._slots: WeakValueDictionary[str, asyncio.Semaphore] = WeakValueDictionary()

    async def addresses(self, tenant: str, host: str, port: int) -> Sequence[str]:
        """The addresses of a name, in order. Waits while the tenant's threads are in use.

        Raises:
            OSError: the name has no address.
        """
        slots = self._slots.get(tenant)
        if slots is None:
            slots = self._slots[tenant] = asyncio.Semaphore(THREADS_PER_TENANT)
        await slots.acquire()
        loop = asyncio.get_running_loop()

        def done(_: Future[Any]) -> None:
            with contextlib.suppress(RuntimeError):  # the loop has ended
                loop.call_soon_threadsafe(slots.release)

        try:
            asked = self._threads.submit(self._lookup, host, port)
        except BaseException:
            slots.release()
            raise
        asked.add_done_callback(done)
        found = await asyncio.wrap_future(asked)
        return list(dict.fromkeys(str(entry[4][0]) for entry in found))

    def close(self) -> None:
        self._threads.shutdown(wait=False, cancel_futures=True)


@dataclass(kw_only=True)
class ScriptedNames:
    """The fake of a name server for tests: each name has answers, which are given in turn; the last one stays."""

    answers: dict[str, list[Sequence[str]]]
    asked: list[tuple[str, str]] = field(default_factory=list)

    async def addresses(self, tenant: str, host: str, port: int) -> Sequence[str]:  # noqa: ARG002 - the port's
        self.asked.append((tenant, host))
        known = self.answers.get(host)
        if not known:
            raise OSError("no such name")
        return known.pop(0) if len(known) > 1 else known[0]
