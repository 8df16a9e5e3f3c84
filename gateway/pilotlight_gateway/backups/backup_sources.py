"""Whether what is about to be copied is the platform's: a copy without its ledger, blobs or keys would be none."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Collection, Sequence
from contextlib import closing
from pathlib import Path
from urllib.parse import quote

import msgspec

from pilotlight_core.bus import Bus
from pilotlight_core.bus.streams import bucket_stream
from pilotlight_core.host.blobs.blob_port import STORE_ID
from pilotlight_core.host.foundations import MEND, Foundation
from pilotlight_core.host.signing import PRIVATE, NoKey, Signer
from pilotlight_core.model.subjects import PLATFORM_BUCKET
from pilotlight_gateway.backups.backup_manifest import BackupRefused
from pilotlight_gateway.backups.ledger_copies import file_of

ASKED = "SELECT id FROM ledger_identity"
RIGHT = {
    "manifest_key": "name the platform's folder with --state-dir, or leave the keys out with --no-keys",
    "blob_store": "name the platform's own with --blob-url, or its folder with --state-dir",
    "ledger": "name the platform's own with --ledger-url, or its folder with --state-dir",
}
"""How to name what is the platform's."""


async def registered_foundations(bus: Bus, streams: Collection[str]) -> list[Foundation]:
    """What the gateways of each region have registered; without keys, if each gateway has one of a set of its own.

    Raises:
        BusError.
    """
    if bucket_stream(PLATFORM_BUCKET) not in streams:
        return []
    kv = bus.kv(PLATFORM_BUCKET)
    entries = await kv.entries("foundation.")
    found = [msgspec.msgpack.decode(entry.value, type=Foundation) for entry in entries.values()]
    return [msgspec.structs.replace(one, manifest_key="") for one in found] if await kv.keys("keys.") else found


async def read_sources(ledger_url: str, blobs: Path | None, keys: Path | None) -> Foundation:
    """The names of what is about to be copied.

    Raises:
        BackupRefused: one of them is not there, or cannot be read. OSError.
    """
    ledger = await asyncio.to_thread(_ledger_name, ledger_url)
    store = "" if blobs is None else await asyncio.to_thread(_store_name, blobs)
    key = "" if keys is None else await asyncio.to_thread(_key_name, keys)
    return Foundation(ledger=ledger, blob_store=store, manifest_key=key)


def refuse_sources(registered: Sequence[Foundation], found: Foundation) -> None:
    """Check that what was found is the platform's own.

    Raises:
        BackupRefused: it is not.
    """
    for name, (what, _) in MEND.items():
        ours, theirs = getattr(found, name), {getattr(one, name) for one in registered} - {""}
        if ours and theirs and ours not in theirs:
            raise BackupRefused(
                f"{what} here ({ours}) is not that of the platform ({', '.join(sorted(theirs))}): {RIGHT[name]}."
            )


def _ledger_name(url: str) -> str:
    path = file_of(url)
    if path is None:
        import psycopg

        try:
            with psycopg.connect(url) as connection:
                found = connection.execute(ASKED).fetchone()
        except psycopg.Error as error:
            raise BackupRefused(f"The ledger's database cannot be asked which one it is: {error}") from None
        return _name_in(found, "the database")
    if not path.exists():
        raise BackupRefused(f"There is no ledger at {path}: {RIGHT['ledger']}.")
    try:
        with closing(sqlite3.connect(f"file:{quote(str(path))}?mode=ro", uri=True)) as connection:
            return _name_in(connection.execute(ASKED).fetchone(), str(path))
    except sqlite3.Error as error:
        raise BackupRefused(f"The ledger {path} cannot be asked which one it is: {error}.") from None


def _name_in(row: Sequence[object] | None, where: str) -> str:
    if row is None:
        raise BackupRefused(f"{where} has no ledger: {RIGHT['ledger']}.")
    return str(row[0])


def _store_name(folder: Path) -> str:
    try:
        return (folder / STORE_ID).read_text()
    except (FileNotFoundError, NotADirectoryError):
        raise BackupRefused(f"There is no blob store at {folder}: {RIGHT['blob_store']}.") from None


def _key_name(folder: Path) -> str:
    if not (folder / PRIVATE).is_file():
        raise BackupRefused(f"There are no keys at {folder}: {RIGHT['manifest_key']}.")
    try:
        return Signer.load_or_create(folder, create=False).key_id
    except NoKey as error:
        raise BackupRefused(error.detail) from None
