"""The way out of a container: libraries find a proxy on loopback, which hands their bytes to the socket of the agent's.

Libraries know proxies by an address alone, not by the path of a socket. A thread of the guest carries the bytes, with
an event loop of its own; it decides nothing, since the proxy behind the socket believes nothing that comes from here.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping
from concurrent.futures import Future
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import asyncio

SOCKET = "proxy.sock"
CHUNK = 64 * 1024
START_S = 10.0
VARIABLES = ("HTTPS_PROXY", "HTTP_PROXY", "https_proxy", "http_proxy")
NO_PROXY = dict.fromkeys(("NO_PROXY", "no_proxy"), "localhost,127.0.0.1,::1")


def proxy_variables(folder: str, own: Mapping[str, str]) -> dict[str, str]:
    """Start the forwarder to the socket in `folder`; the variables by which libraries find it.

    The function's `own` variables stay as they are.
    """
    ready: Future[int] = Future()
    threading.Thread(target=_run, args=(folder, ready), name="pilotlight-proxy", daemon=True).start()
    url = f"http://127.0.0.1:{ready.result(START_S)}"
    return {name: value for name, value in {**dict.fromkeys(VARIABLES, url), **NO_PROXY}.items() if name not in own}


def _run(folder: str, ready: Future[int]) -> None:
    import asyncio  # most functions need no network, and it takes long to import

    try:
        asyncio.run(_serve(folder, ready))
    except BaseException as error:  # noqa: BLE001 - whoever waits gets it
        if not ready.done():
            ready.set_exception(error)


async def _serve(folder: str, ready: Future[int]) -> None:
    import asyncio

    at = os.open(folder, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    path = f"/proc/self/fd/{at}/{SOCKET}"  # outside of sandboxes, paths may be longer than a socket's may
    held: set[object] = set()
    server = await asyncio.start_server(partial(_forward, path, held), "127.0.0.1", 0, limit=CHUNK)
    ready.set_result(server.sockets[0].getsockname()[1])
    await server.serve_forever()


async def _forward(path: str, held: set[object], reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    import asyncio

    task = asyncio.current_task()
    held.add(task)  # asyncio holds it weakly: while it waits for both sides the collector of garbage would take it
    try:
        with suppress(OSError):
            from_proxy, to_proxy = await asyncio.open_unix_connection(path, limit=CHUNK)
            try:
                await asyncio.gather(_carry(reader, to_proxy), _carry(from_proxy, writer))
            finally:
                to_proxy.close()
    finally:
        writer.close()
        held.discard(task)


async def _carry(source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
    while data := await source.read(CHUNK):
        sink.write(data)
        await sink.drain()
    with suppress(OSError):
        sink.write_eof()
