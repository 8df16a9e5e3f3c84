"""Whether the platform is ready: checked over HTTP, reported in a file."""

from __future__ import annotations

import asyncio
import contextlib
import os
import ssl
from pathlib import Path
from urllib.parse import urlsplit

import msgspec

from pilotlight_core.host.file_permissions import private_file
from pilotlight_supervisor.supervisor import Supervisor

READY_WITHIN_S = 60.0
READY_EVERY_S = 0.03
ANSWER_WITHIN_S = 2.0
GIVE_UP_AFTER = 4
"""Deaths of one process before the platform was ever ready."""


class UpError(RuntimeError):
    """The platform cannot be started; the message says why."""


class ReadyFile(msgspec.Struct, frozen=True, kw_only=True):
    """Rewritten when a pid changes."""

    url: str
    api_key_file: str
    nats_url: str
    state_dir: str
    urls: tuple[str, ...] = ()
    """Of all gateways; `url` is the first."""
    metrics_urls: tuple[str, ...] = ()
    """Of the same, on loopback."""
    metrics_by_process: dict[str, str] = {}
    """The same of every process, by the name that `pids` has: also of the duties, the controller and the agents."""
    dashboard_url: str = ""
    """"": there is none."""
    pids: dict[str, int] = {}


def write_ready(path: Path, ready: ReadyFile) -> None:
    """Write the ready file atomically; only its owner may read it, since the bus's address has a token."""
    temporary = private_file(path.with_name(f".{path.name}.{os.getpid()}"))
    temporary.write_bytes(msgspec.json.encode(ready))
    temporary.rename(path)


async def wait_ready(supervisor: Supervisor, url: str, within_s: float = READY_WITHIN_S) -> None:
    """Wait until the gateway at `url` is ready.

    Raises:
        UpError: with the end of the logs, if a process dies repeatedly, or after `within_s`.
    """
    try:
        async with asyncio.timeout(within_s):
            while await http_status(f"{url}/readyz") != 200:
                for name, statistics in supervisor.statistics().items():
                    if statistics.deaths >= GIVE_UP_AFTER:
                        raise UpError(f"{name} does not start:\n{supervisor.log_tail(name)}")
                await asyncio.sleep(READY_EVERY_S)
    except TimeoutError:
        tails = "\n".join(f"--- {name}\n{supervisor.log_tail(name)[-1000:]}" for name in supervisor.statistics())
        raise UpError(f"The gateway is not ready after {within_s:.0f} s.\n{tails}") from None


async def http_status(url: str) -> int:
    """The status of a GET; 0 without an answer."""
    parts = urlsplit(url)
    host = parts.hostname or ""
    try:
        secure = _unverified() if parts.scheme == "https" else None
        reader, writer = await asyncio.open_connection(host, parts.port or (443 if secure else 80), ssl=secure)
    except OSError:
        return 0
    try:
        async with asyncio.timeout(ANSWER_WITHIN_S):
            writer.write(f"GET {parts.path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n".encode())
            words = (await reader.readline()).split()
        return int(words[1]) if len(words) > 1 and words[1].isdigit() else 0
    except (OSError, TimeoutError):
        return 0
    finally:
        writer.close()
        with contextlib.suppress(OSError):
            await writer.wait_closed()


def _unverified() -> ssl.SSLContext:
    """For a question without secrets, to a process of one's own: its certificate need not name this address."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context
