"""A platform's copy brought back where there is none: all is checked before anything is written."""

from __future__ import annotations

import asyncio
from pathlib import Path

from pilotlight_core.bus import Bus, BusError
from pilotlight_core.model.subjects import USAGE_STREAM
from pilotlight_gateway.backups.backup_manifest import BackupManifest, BackupRefused, verify_piece
from pilotlight_gateway.backups.folder_copies import refuse_folder, restore_folder
from pilotlight_gateway.backups.ledger_copies import StreamPosition, refuse_ledger, reset_position, restore_ledger
from pilotlight_gateway.backups.platform_backup import PlatformParts, Report
from pilotlight_gateway.backups.stream_copies import (
    LAST,
    mark_restore,
    refuse_streams,
    remove_restore_mark,
    restore_stream,
)


async def verify_backup(manifest: BackupManifest, folder: Path) -> None:
    """Read every piece whole.

    Raises:
        BackupRefused: one is damaged or missing.
    """
    for piece in manifest.pieces:
        await asyncio.to_thread(verify_piece, folder, piece)


async def refuse_parts(manifest: BackupManifest, parts: PlatformParts, *, keeps_ledger: bool) -> None:
    """Check that nothing is where the ledger, the blobs and the keys go.

    Raises:
        BackupRefused: something is, or a part is to be restored that the backup does not have.
    """
    for piece in manifest.of_kind("ledger"):
        if not keeps_ledger:
            await asyncio.to_thread(refuse_ledger, parts.ledger_url, piece)
    for kind, target in (("blobs", parts.blobs), ("keys", parts.keys)):
        if target is not None and any(piece.kind == kind for piece in manifest.pieces):
            await asyncio.to_thread(refuse_folder, target)
    if manifest.of_kind("blobs") and parts.blobs is None:
        raise BackupRefused(
            "The backup has blobs of a folder, and --blob-url is a bucket: name a folder, or copy them."
        )


async def restore_parts(manifest: BackupManifest, parts: PlatformParts, folder: Path, report: Report) -> None:
    """Bring back the blobs and the keys."""
    for kind, target in (("blobs", parts.blobs), ("keys", parts.keys)):
        for piece in manifest.pieces:
            if piece.kind == kind and target is not None:
                await asyncio.to_thread(restore_folder, piece, folder, target)
                report(piece)


async def refuse_bus(manifest: BackupManifest, bus: Bus) -> None:
    """Check that the bus has none of the streams.

    Raises:
        BackupRefused: it has one. BusError.
    """
    await refuse_streams(bus, [piece.name for piece in manifest.of_kind("stream")])


async def restore_bus(
    manifest: BackupManifest, bus: Bus, folder: Path, *, replicas: int, now: float, report: Report
) -> None:
    """Bring back every stream but the last, with its sequence numbers; leases and shards are nobody's, and `now` makes
    theirs new. No gateway starts on them until `restore_last`.

    Raises:
        BackupRefused: the bus does not take one. BusError.
    """
    await mark_restore(bus)
    for piece in manifest.of_kind("stream"):
        if piece.name != LAST:
            await restore_stream(bus, piece, folder, replicas, now=now)
            report(piece)


async def restore_last(
    manifest: BackupManifest, bus: Bus, folder: Path, *, replicas: int, now: float, report: Report
) -> None:
    """Bring back the last stream, once all else of the platform is there; raises as `restore_bus`."""
    await remove_restore_mark(bus)
    refused: BackupRefused | BusError | None = None
    for piece in manifest.of_kind("stream"):
        if piece.name == LAST:
            try:
                await restore_stream(bus, piece, folder, replicas, now=now)
            except (BackupRefused, BusError) as error:
                refused = error
            else:
                report(piece)
    if refused is not None:
        await mark_restore(bus)
        raise refused


async def restore_money(
    manifest: BackupManifest, parts: PlatformParts, folder: Path, *, keeps_ledger: bool, report: Report
) -> None:
    """Bring back the ledger, unless it was not lost, and have it go on with the usage that the bus has now.

    Raises:
        BackupRefused: the database does not take it. LedgerRefused.
    """
    usage = next((piece for piece in manifest.of_kind("stream") if piece.name == USAGE_STREAM), None)
    position = None if usage is None else StreamPosition(USAGE_STREAM, usage.last_seq)
    if keeps_ledger:
        if position is not None:
            await asyncio.to_thread(reset_position, parts.ledger_url, position)
        return
    for piece in manifest.of_kind("ledger"):
        await restore_ledger(parts.ledger_url, piece, folder, position)
        report(piece)
