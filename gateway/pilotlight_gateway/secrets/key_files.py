"""The platform's key in a file, which gateways share."""

from __future__ import annotations

import asyncio
import hashlib
import os
from pathlib import Path

from pilotlight_core.host.file_permissions import OWNER_ONLY, private_folder, why_open
from pilotlight_core.model.ids import token
from pilotlight_gateway.secrets.platform_keys import KEY_BYTES, NoPlatformKey, data_key_context, open_bytes, seal_bytes

KEY_FILE = "secrets_aes256"


class FilePlatformKey:
    """A key of 32 bytes in a file that only its owner reads."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._key = b""

    async def identity(self, *, create: bool) -> str:
        key = await self._load(create=create)
        return f"file:{hashlib.sha256(b'pilotlight platform key' + key).hexdigest()[:16]}"

    async def seal(self, tenant: str, data_key: bytes) -> bytes:
        return await asyncio.to_thread(seal_bytes, await self._load(), data_key, data_key_context(tenant))

    async def open(self, tenant: str, sealed: bytes) -> bytes:
        try:
            return await asyncio.to_thread(open_bytes, await self._load(), sealed, data_key_context(tenant))
        except ValueError:
            raise NoPlatformKey(f"the key in {self._path} did not seal the data key of {tenant}") from None

    async def _load(self, *, create: bool = False) -> bytes:
        if not self._key:
            self._key = await asyncio.to_thread(_read_key, self._path, create=create)
        return self._key


def _read_key(path: Path, *, create: bool) -> bytes:
    """The key in a file. Of two processes that create one, both get the first."""
    try:
        if create and not path.exists():
            _create(path)
        why = why_open(path)
        key = bytes.fromhex(path.read_text().strip())
    except FileNotFoundError:
        raise NoPlatformKey(
            f"there is no key of secrets at {path}, and this platform has one: copy another gateway's here, or name "
            "one for all with --secrets-key"
        ) from None
    except (OSError, ValueError) as error:
        raise NoPlatformKey(f"{path} cannot be read as the key of secrets: {error}") from None
    if why:
        raise NoPlatformKey(f"the key of secrets is not used: {why}")
    if len(key) != KEY_BYTES:
        raise NoPlatformKey(f"{path} is no key of secrets: expected {2 * KEY_BYTES} hexadecimal digits")
    return key


def _create(path: Path) -> None:
    """Write a new key, and to the disk before anything is sealed by it."""
    folder = private_folder(path.parent, OWNER_ONLY)
    fresh = path.with_name(f".{path.name}.{token(8)}")
    descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    try:
        with os.fdopen(descriptor, "w") as file:
            file.write(os.urandom(KEY_BYTES).hex() + "\n")
            file.flush()
            os.fsync(file.fileno())
        path.hardlink_to(fresh)  # the first one wins
        folder_descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(folder_descriptor)
        finally:
            os.close(folder_descriptor)
    except FileExistsError:
        pass
    finally:
        fresh.unlink(missing_ok=True)
