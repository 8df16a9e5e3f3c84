"""`pilotlight restore FOLDER`: a platform's copy, where there is none; it is started afterwards."""

from __future__ import annotations

import pilotlight_core.lean_libraries  # isort: skip # noqa: F401 - before what would import it whole

import asyncio
import sys
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from pilotlight_core.bus import Bus, connect
from pilotlight_gateway.backups.backup_manifest import BackupManifest, BackupRefused, read_manifest
from pilotlight_gateway.backups.platform_restore import (
    refuse_bus,
    refuse_parts,
    restore_bus,
    restore_last,
    restore_money,
    restore_parts,
    verify_backup,
)
from pilotlight_supervisor.backup_command import report, run
from pilotlight_supervisor.backup_settings import BackupSettings, describe_size
from pilotlight_supervisor.embedded_bus import choose_ports, embedded_nats
from pilotlight_supervisor.readiness import UpError
from pilotlight_supervisor.restore_mark import begin_restore, end_restore, incomplete_restore
from pilotlight_supervisor.up import locked


def main(arguments: Sequence[str] | None = None) -> int:
    return run("restore", _restore, _summary, arguments)


async def _restore(settings: BackupSettings, folder: Path) -> BackupManifest:
    manifest = read_manifest(folder)
    await verify_backup(manifest, folder)
    if settings.check:
        return manifest
    if why := incomplete_restore(settings.state_dir):
        raise BackupRefused(why)
    parts = settings.parts
    await refuse_parts(manifest, parts, keeps_ledger=settings.keep_ledger)
    async with _bus(settings) as (bus, replicas):
        await refuse_bus(manifest, bus)
        await asyncio.to_thread(begin_restore, settings.state_dir, folder)
        now = time.time()
        await restore_bus(manifest, bus, folder, replicas=replicas, now=now, report=report)
        await restore_parts(manifest, parts, folder, report)
        await restore_money(manifest, parts, folder, keeps_ledger=settings.keep_ledger, report=report)
        await restore_last(manifest, bus, folder, replicas=replicas, now=now, report=report)
    await asyncio.to_thread(end_restore, settings.state_dir)
    return manifest


@asynccontextmanager
async def _bus(settings: BackupSettings) -> AsyncIterator[tuple[Bus, int]]:
    """The bus, and on how many servers each stream is kept; if none is named, one of our own in the state folder.

    Raises:
        BackupRefused: the folder is another platform's, or has one.
    """
    if settings.nats_url:
        async with connect(settings.nats_url, name="restore", ca_file=settings.ca_file, makes_streams=False) as bus:
            yield bus, settings.replicas
        return
    if (settings.bus_folder / "jetstream").exists():
        raise BackupRefused(f"{settings.bus_folder} has streams already: restore into an empty --state-dir.")
    try:
        with locked(settings.state_dir):
            choose_ports(settings.bus_folder, 1)
            async with (
                embedded_nats(settings.bus_folder) as server,
                connect(server.url, name="restore", makes_streams=False) as bus,
            ):
                yield bus, 1
    except UpError as error:
        raise BackupRefused(str(error)) from None


def _summary(manifest: BackupManifest, folder: Path, settings: BackupSettings) -> str:
    if settings.check:
        return f"{folder} is whole: {len(manifest.pieces)} pieces, {describe_size(manifest.bytes)}.\n"
    left_out = "".join(f"Not restored: {each}.\n" for each in manifest.left_out)
    return (
        f"The platform is as it was at {manifest.began_at}, or a little later. Start it.\n{left_out}"
        "Keys that were revoked since are valid again, and tenants that were erased since are there: revoke and erase "
        "them again before anybody else reaches the platform.\n"
    )


if __name__ == "__main__":
    sys.exit(main())
