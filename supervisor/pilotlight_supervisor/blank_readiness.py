"""Whether the agents of this machine have the blanks that they keep: without one, a first call waits for imports."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Mapping
from urllib.parse import urlsplit

from pilotlight_supervisor.supervisor import Supervisor

MISSING = "pilotlight_agent_blanks_missing"
BLANKS_WITHIN_S = 20.0
"""Importing torch takes a second or two; in many environments, or on a busy machine, longer."""
LOOK_EVERY_S = 0.1
ANSWER_WITHIN_S = 2.0
MOST_BYTES = 4 * 2**20


async def wait_blanks(supervisor: Supervisor, metrics: Mapping[str, str], within_s: float = BLANKS_WITHIN_S) -> bool:
    """Wait until no agent lacks a blank; False if one still does after `within_s`.

    Args:
        metrics: the address of the metrics of each agent, by its name. One that has died is not waited for.
    """
    left = dict(metrics)
    try:
        async with asyncio.timeout(within_s):
            while True:
                left = {name: url for name, url in left.items() if await _is_awaited(supervisor, name, url)}
                if not left:
                    return True
                await asyncio.sleep(LOOK_EVERY_S)
    except TimeoutError:
        return False


def missing_in(exposition: str) -> int | None:
    """The blanks that an agent lacks by its metrics; None: they do not say."""
    for line in exposition.splitlines():
        name, _, value = line.partition(" ")
        if name == MISSING:
            with contextlib.suppress(ValueError):
                return int(float(value))
    return None


async def _is_awaited(supervisor: Supervisor, name: str, url: str) -> bool:
    known = supervisor.statistics().get(name)
    return known is not None and not known.deaths and missing_in(await _read(url)) != 0


async def _read(url: str) -> str:
    """The body of a GET; "" without an answer."""
    parts = urlsplit(url)
    try:
        reader, writer = await asyncio.open_connection(parts.hostname or "", parts.port or 80)
    except OSError:
        return ""
    try:
        async with asyncio.timeout(ANSWER_WITHIN_S):
            writer.write(f"GET {parts.path} HTTP/1.0\r\nHost: {parts.hostname}\r\n\r\n".encode())
            data = b""
            while len(data) < MOST_BYTES and (piece := await reader.read(MOST_BYTES)):
                data += piece
            return data.decode(errors="replace")
    except (OSError, TimeoutError):
        return ""
    finally:
        writer.close()
        with contextlib.suppress(OSError):
            await writer.wait_closed()
