"""Creates the first key, when a platform starts."""

from __future__ import annotations

import os
import time
from pathlib import Path

import msgspec

from pilotlight_core.model.api.call_api import KeyRequest
from pilotlight_core.model.tenancy import TenantRecord
from pilotlight_gateway.tenancy.api_keys import create_key, parse_key
from pilotlight_gateway.tenancy.registry_port import RegistryPort

TENANT = "default"
TIER = "enterprise"
"""The operator's tier, without limits."""
SCOPES = ("admin", "operator")


class ClientFile(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The content of `client.json`: what a client needs."""

    url: str
    api_key: str
    ca_file: str = ""
    """Of an https:// address, if its authority is not a public one."""


async def bootstrap(
    registry: RegistryPort, path: Path, url: str, copy: Path, ca_file: str = "", *, once: bool = False
) -> bool:
    """Ensure that the client file at `path` has a valid key of the tenant `default`, with all scopes.

    Returns whether a key was created; a valid one is kept. `copy` belongs to this platform alone, while another one may
    write to `path`. With `once` no key is created, and no file written, where the platform has had a key.
    """
    first = TenantRecord(name=TENANT, created_at=time.time(), tier=TIER)
    await registry.change_tenant(TENANT, lambda present: present or first)
    found = [present for file in (path, copy) if (present := read_client_file(file)) is not None]
    good = [present.api_key for present in found if await _is_good(registry, present.api_key)]
    if once and not good and any(registry.keys()):
        return False
    if not good:
        asked = KeyRequest(scopes=SCOPES, label="bootstrap")
        made = await create_key(registry, TENANT, asked, time.time(), by_operator=True)
    content = ClientFile(url=url, api_key=good[0] if good else made.key, ca_file=ca_file)
    for file in (copy, path):
        if read_client_file(file) != content:
            write_client_file(file, content)
    return not good


async def _is_good(registry: RegistryPort, text: str) -> bool:
    key = parse_key(text)
    record = await registry.key(key.id) if key is not None else None
    if key is None or record is None or record.revoked or not key.opens(record):
        return False
    if not set(SCOPES) <= set(record.scopes):
        return False
    return record.expires_at is None or record.expires_at > time.time()


def read_client_file(path: Path) -> ClientFile | None:
    """None if the file is missing or malformed."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=ClientFile)
    except (OSError, msgspec.DecodeError):
        return None


def write_client_file(path: Path, content: ClientFile) -> None:
    """Replace the file atomically, readable only by its owner."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    with os.fdopen(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
        file.write(msgspec.json.encode(content) + b"\n")
    temporary.rename(path)
