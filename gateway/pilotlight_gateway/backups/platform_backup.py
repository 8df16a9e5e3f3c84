"""The copy of a whole platform, made while it runs.

    1. the streams: those that name what is in others before those others
    2. the ledger, which has all that was folded of the stream of usage, and what was trimmed from it since
    3. the blobs, which were stored before any record names them
    4. the tenants' keys of blobs, which were made before anything was sealed by them
    5. the keys

So whatever was accepted before the first step is in the copy whole, or was deleted meanwhile. Of what is accepted
during the copy some parts may be in it, and others not: each is repaired, or is as if it had not come.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from pilotlight_core.bus import Bus
from pilotlight_core.host.file_permissions import OWNER_ONLY, private_folder
from pilotlight_gateway.backups.backup_manifest import BackupManifest, BackupPiece, BackupRefused, write_manifest
from pilotlight_gateway.backups.backup_sources import read_sources, refuse_sources, registered_foundations
from pilotlight_gateway.backups.folder_copies import copy_folder
from pilotlight_gateway.backups.ledger_copies import copy_ledger
from pilotlight_gateway.backups.stream_copies import AFTER_BLOBS, copy_stream, streams_of

OTHERS = 0o077
"""What nobody else may do in a backup's folder."""
Report = Callable[[BackupPiece], None]
"""Hears of each piece that is done."""


class PlatformParts(msgspec.Struct, frozen=True, kw_only=True):
    """Where a platform keeps what."""

    ledger_url: str
    blobs: Path | None
    """None: they are in a bucket, which is copied by its own means."""
    keys: Path | None
    """None: they are kept elsewhere."""
    elsewhere: tuple[str, ...] = ()
    """What is copied by other means, in words."""


async def back_up(bus: Bus, parts: PlatformParts, folder: Path, *, release: str, report: Report) -> BackupManifest:
    """Copy a platform into an empty folder.

    Raises:
        BackupRefused: the folder is not empty, a part is not there or is another platform's, or something cannot be
            copied. BusError, OSError.
    """
    names = await streams_of(bus)
    if not names:
        raise BackupRefused("The bus has no streams: it is not that of a platform.")
    found = await read_sources(parts.ledger_url, parts.blobs, parts.keys)
    refuse_sources(await registered_foundations(bus, names), found)
    await asyncio.to_thread(_prepare, folder)
    began_at, done = _now(), list[BackupPiece]()

    def add(piece: BackupPiece | None) -> None:
        if piece is None:
            raise BackupRefused("The ledger, the blobs or the keys have gone while they were copied: try again.")
        done.append(piece)
        report(piece)

    for name in names:
        if name not in AFTER_BLOBS:
            add(await copy_stream(bus, name, folder))
    add(await copy_ledger(parts.ledger_url, folder))
    if parts.blobs is not None:
        add(await asyncio.to_thread(copy_folder, "blobs", parts.blobs, folder))
    for name in AFTER_BLOBS:
        if name in names:
            add(await copy_stream(bus, name, folder))
    if parts.keys is not None:
        add(await asyncio.to_thread(copy_folder, "keys", parts.keys, folder))
    made = BackupManifest(
        release=release, began_at=began_at, ended_at=_now(), pieces=tuple(done), left_out=parts.elsewhere
    )
    await asyncio.to_thread(write_manifest, folder, made)
    return made


def _prepare(folder: Path) -> None:
    present = private_folder(folder, OWNER_ONLY).stat()
    if any(folder.iterdir()):
        raise BackupRefused(f"{folder} is not empty: name a new folder for each backup.")
    if present.st_uid != os.geteuid() or present.st_mode & OTHERS:
        raise BackupRefused(f"{folder} is another user's, or open to others: name a new folder for each backup.")


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")
