"""A copy is checked whole before any of it is brought back, and goes into empty places only."""

from __future__ import annotations

import time
from pathlib import Path

import msgspec
import pytest

from pilotlight_core.bus import BusIncomplete, connect
from pilotlight_core.model.price_book import load_prices
from pilotlight_core.model.subjects import TENANCY_BUCKET, USAGE_STREAM
from pilotlight_gateway.backups.backup_manifest import BackupManifest, BackupPiece, BackupRefused
from pilotlight_gateway.backups.platform_backup import PlatformParts, back_up
from pilotlight_gateway.backups.platform_restore import (
    refuse_bus,
    refuse_parts,
    restore_bus,
    restore_last,
    restore_money,
    restore_parts,
    verify_backup,
)
from pilotlight_gateway.ledger.ledger_store import Ledger
from pilotlight_supervisor.embedded_bus import embedded_nats
from tests.gateway.backups.test_platform_backup import parts_in


def target(folder: Path) -> PlatformParts:
    return PlatformParts(
        ledger_url=f"sqlite:///{folder / 'ledger.sqlite'}", blobs=folder / "blobs", keys=folder / "keys"
    )


async def copied(folder: Path, *, folded: int = 0) -> BackupManifest:
    """A platform with a key on its bus, and so much usage folded."""
    parts = parts_in(folder / "state")
    if folded:
        ledger = Ledger(parts.ledger_url, load_prices())
        ledger.fold(USAGE_STREAM, folded, [])
        ledger.close()
    async with embedded_nats(folder / "nats") as server, connect(server.url, name="x") as bus:
        await bus.kv(TENANCY_BUCKET).put("tenant.acme", b"1")
        return await back_up(bus, parts, folder / "copy", release="1.0", report=lambda _: None)


async def test_a_platform_comes_back(tmp_path: Path) -> None:
    """Records, ledger, blobs and keys, each told of; the ledger goes on with what the stream of usage has."""
    manifest, told = await copied(tmp_path, folded=12), list[BackupPiece]()
    copy, parts = tmp_path / "copy", target(tmp_path / "new")
    await verify_backup(manifest, copy)
    await refuse_parts(manifest, parts, keeps_ledger=False)
    async with (
        embedded_nats(tmp_path / "other") as server,
        connect(server.url, name="x", makes_streams=False) as bus,
    ):
        await refuse_bus(manifest, bus)
        await restore_bus(manifest, bus, copy, replicas=1, now=time.time(), report=told.append)
        with pytest.raises(BackupRefused, match=r"RESTORING.*give nats-server an empty folder"):
            await refuse_bus(manifest, bus)
        with pytest.raises(BusIncomplete, match="did not come to its end"):  # a gateway of whichever host
            async with connect(server.url, name="gateway"):
                raise AssertionError("it starts on a part of a platform")
        await restore_last(manifest, bus, copy, replicas=1, now=time.time(), report=told.append)
        assert (await bus.kv(TENANCY_BUCKET).get("tenant.acme")) is not None
        async with connect(server.url, name="gateway"):
            assert "RESTORING" not in await bus.jetstream.names()
        with pytest.raises(BackupRefused, match="already"):
            await refuse_bus(manifest, bus)
    await restore_parts(manifest, parts, copy, told.append)
    await restore_money(manifest, parts, copy, keeps_ledger=False, report=told.append)

    assert {piece.file for piece in told} == {piece.file for piece in manifest.pieces}
    for name in ("blobs", "keys"):
        assert (tmp_path / "new" / name / "one").read_text() == name
    ledger = Ledger(parts.ledger_url, load_prices())
    assert ledger.last_seq(USAGE_STREAM) == 0
    ledger.close()
    with pytest.raises(BackupRefused, match="already"):
        await refuse_parts(manifest, parts, keeps_ledger=False)


async def test_a_ledger_that_was_not_lost_stays(tmp_path: Path) -> None:
    """It folds again from where the restored stream ends, which is before what it had folded."""
    manifest = await copied(tmp_path)
    parts = target(tmp_path / "new")
    (tmp_path / "new").mkdir()
    ledger = Ledger(parts.ledger_url, load_prices())
    ledger.fold(USAGE_STREAM, 99, [])
    await refuse_parts(manifest, parts, keeps_ledger=True)

    await restore_money(manifest, parts, tmp_path / "copy", keeps_ledger=True, report=lambda _: None)

    assert ledger.last_seq(USAGE_STREAM) == 0
    ledger.close()


async def test_a_damaged_copy_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    """Whichever piece it is; and blobs of a folder go into no bucket."""
    manifest = await copied(tmp_path)
    parts = msgspec.structs.replace(target(tmp_path / "new"), blobs=None)
    with pytest.raises(BackupRefused, match="is a bucket"):
        await refuse_parts(manifest, parts, keeps_ledger=False)
    (tmp_path / "copy" / manifest.pieces[-1].file).write_bytes(b"")

    with pytest.raises(BackupRefused, match="damaged"):
        await verify_backup(manifest, tmp_path / "copy")
