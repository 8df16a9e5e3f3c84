"""The file in which clients find a platform's address and key: the user's one, and a copy of each platform."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable
from pathlib import Path
from urllib.parse import urlsplit

import msgspec

from pilotlight_supervisor.readiness import http_status

NAME = "client.json"
LOOPBACK = ("127.0.0.1", "localhost", "::1")


class NamedPlatform(msgspec.Struct, frozen=True, kw_only=True):
    """What a client file says, as far as it says anything."""

    url: str = ""
    api_key: str = ""


async def choose_client_file(
    named: str, state: Path, url: str, status: Callable[[str], Awaitable[int]] = http_status
) -> Path:
    """The client file that the platform of a state folder writes; it will answer at `url`.

    A named one, else the user's, unless that speaks to another platform: to one on another machine, or to one that
    answers on this. Then the platform has only its copy in its state folder. `status` is that of a GET, 0 for none.
    """
    if named:
        return _absolute(named)
    path = users_file()
    present, own = _read(path), _read(state / NAME)
    if present.url in ("", url) or (own.api_key and own.api_key == present.api_key):
        return path
    elsewhere = urlsplit(present.url).hostname not in LOOPBACK
    return (state / NAME).resolve() if elsewhere or await status(f"{present.url}/readyz") else path


def users_file() -> Path:
    """Where the SDK looks: in $PILOTLIGHT_HOME, or in the home folder."""
    return _absolute(os.environ.get("PILOTLIGHT_HOME") or "~/.pilotlight") / NAME


def _absolute(path: str) -> Path:
    return Path(path).expanduser().resolve()


def _read(path: Path) -> NamedPlatform:
    try:
        return msgspec.json.decode(path.read_bytes(), type=NamedPlatform)
    except (OSError, msgspec.DecodeError):
        return NamedPlatform()
