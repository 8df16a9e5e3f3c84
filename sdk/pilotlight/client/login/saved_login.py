"""A login in a file that is closed to other users, beside that of the platform's address and key."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

import msgspec

from pilotlight.definitions.errors import Misuse
from pilotlight_core.model.ids import token

LOGIN_FILE = "login.json"


class SavedLogin(msgspec.Struct, frozen=True, kw_only=True):
    """At which platform it counts, and how its token is renewed."""

    id: str
    """Another one for each login."""
    url: str
    """Of the platform: no other one is sent the token."""
    ca_file: str = ""
    """The platform's."""
    issuer_ca_file: str = ""
    """The issuer's."""
    name: str
    """Of the issuer, as the platform calls it."""
    issuer: str
    client_id: str
    token_endpoint: str
    revocation_endpoint: str = ""
    token: str
    """What the platform is sent."""
    refresh_token: str = ""
    id_tokens: bool = False
    expires_at: float = 0.0
    """The unix second, by this machine's clock."""


def absolute_file(path: str) -> str:
    """Return where a file is, from wherever it is read; "": it is none."""
    return str(Path(path).expanduser().absolute()) if path else ""


def load_login(file: Path) -> SavedLogin | None:
    """Return the login in a file; None: there is none.

    Raises:
        Misuse: if it cannot be read.
    """
    try:
        return msgspec.json.decode(file.read_bytes(), type=SavedLogin)
    except FileNotFoundError:
        return None
    except (OSError, msgspec.DecodeError) as error:
        raise Misuse(f"{file} cannot be read: {error}. Remove it with 'pilotlight logout'.") from error


def save_login(file: Path, login: SavedLogin) -> None:
    """Write a login, whole or not at all, for nobody else's eyes."""
    file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    fresh = file.with_name(f".{file.name}.{token()}")
    descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(descriptor, "wb") as out:
            out.write(msgspec.json.format(msgspec.json.encode(login)) + b"\n")
            out.flush()
            os.fsync(out.fileno())
        fresh.replace(file)
    except BaseException:
        with suppress(OSError):
            fresh.unlink()
        raise


def remove_login(file: Path) -> bool:
    """Remove a login, and what a process that was killed has left of one; return whether there was one."""
    for left in file.parent.glob(f".{file.name}.*"):
        left.unlink(missing_ok=True)
    try:
        file.unlink()
    except FileNotFoundError:
        return False
    return True
