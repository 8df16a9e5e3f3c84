"""What of a platform is copied, and in which order."""

from __future__ import annotations

from pathlib import Path

import pytest

from pilotlight_core.bus import connect
from pilotlight_core.host.blobs.blob_port import STORE_ID
from pilotlight_core.host.foundations import Foundation, Foundations
from pilotlight_core.host.signing import Signer
from pilotlight_core.model.price_book import load_prices
from pilotlight_core.model.subjects import AUDIT_STREAM, JOB_STREAM
from pilotlight_gateway.backups.backup_manifest import BackupPiece, BackupRefused, read_manifest, verify_piece
from pilotlight_gateway.backups.platform_backup import PlatformParts, back_up
from pilotlight_gateway.backups.stream_copies import AFTER_BLOBS
from pilotlight_gateway.ledger.ledger_store import Ledger
from pilotlight_supervisor.embedded_bus import embedded_nats


def parts_in(folder: Path) -> PlatformParts:
    """Of a platform with a ledger, a blob and a key."""
    for name in ("blobs", "keys"):
        (folder / name).mkdir(parents=True)
        (folder / name / "one").write_bytes(name.encode())
    (folder / "blobs" / STORE_ID).write_text("b")
    Signer.load_or_create(folder / "keys")
    url = f"sqlite:///{folder / 'ledger.sqlite'}"
    Ledger(url, load_prices()).close()
    return PlatformParts(ledger_url=url, blobs=folder / "blobs", keys=folder / "keys", elsewhere=("the moon",))


async def test_all_is_copied_and_what_names_others_first(tmp_path: Path) -> None:
    """Each piece is reported, and whole; what is elsewhere is said. What opens blobs comes after them."""
    parts, copy, reported = parts_in(tmp_path / "state"), tmp_path / "copy", list[BackupPiece]()
    async with embedded_nats(tmp_path / "nats") as server, connect(server.url, name="x") as bus:
        made = await back_up(bus, parts, copy, release="1.0", report=reported.append)

    assert read_manifest(copy) == made
    assert list(made.pieces) == reported
    names = [piece.name for piece in made.pieces]
    assert names[0] == JOB_STREAM
    assert names[-5:] == [AUDIT_STREAM, "sqlite", "blobs", *AFTER_BLOBS, "keys"]
    assert (made.release, made.left_out) == ("1.0", ("the moon",))
    for piece in made.pieces:
        verify_piece(copy, piece)
    assert copy.stat().st_mode & 0o777 == 0o700


async def test_a_folder_that_has_something_is_left_alone(tmp_path: Path) -> None:
    """And a bus without streams is no platform's."""
    parts, copy = parts_in(tmp_path / "state"), tmp_path / "copy"
    async with (
        embedded_nats(tmp_path / "nats") as server,
        connect(server.url, name="x", makes_streams=False) as bus,
    ):
        with pytest.raises(BackupRefused, match="no streams"):
            await back_up(bus, parts, copy, release="1.0", report=lambda _: None)
    async with embedded_nats(tmp_path / "nats") as server, connect(server.url, name="x") as bus:
        copy.mkdir()
        (copy / "mine").write_bytes(b"")
        with pytest.raises(BackupRefused, match="is not empty"):
            await back_up(bus, parts, copy, release="1.0", report=lambda _: None)


async def test_a_folder_that_others_read_is_refused(tmp_path: Path) -> None:
    """Such as an empty one that is shared: it is left as it is, and would have the keys."""
    parts, shared = parts_in(tmp_path / "state"), tmp_path / "shared"
    shared.mkdir()
    shared.chmod(0o1777)
    async with embedded_nats(tmp_path / "nats") as server, connect(server.url, name="x") as bus:
        with pytest.raises(BackupRefused, match="open to others"):
            await back_up(bus, parts, shared, release="1.0", report=lambda _: None)
    assert list(shared.iterdir()) == []


async def test_what_is_another_platforms_is_not_copied(tmp_path: Path) -> None:
    """Neither what is missing where it was looked for; nothing is written then."""
    parts, copy = parts_in(tmp_path / "state"), tmp_path / "copy"
    async with embedded_nats(tmp_path / "nats") as server, connect(server.url, name="x") as bus:
        await Foundations(bus, region="local").register(Foundation(blob_store="b", ledger="other"))
        with pytest.raises(BackupRefused, match=r"the ledger here .* not that of the platform \(other\)"):
            await back_up(bus, parts, copy, release="1.0", report=lambda _: None)
        (tmp_path / "state" / "blobs" / STORE_ID).unlink()
        with pytest.raises(BackupRefused, match=r"no blob store at .*--blob-url"):
            await back_up(bus, parts, copy, release="1.0", report=lambda _: None)
    assert not copy.exists()
