"""Where the platform is that is copied: a folder, or addresses."""

from __future__ import annotations

from pathlib import Path

import pytest

from pilotlight_gateway.backups.backup_manifest import BackupPiece, BackupRefused
from pilotlight_supervisor.backup_settings import BackupSettings, describe_piece, describe_size
from pilotlight_supervisor.embedded_bus import choose_ports


def test_a_state_folder_has_all(tmp_path: Path) -> None:
    """The bus by its port and the operator's password, and the rest below."""
    ports = choose_ports(tmp_path / "nats", 1)
    settings = BackupSettings(state_dir=tmp_path)

    assert settings.bus_url.startswith("nats://operator:")
    assert settings.bus_url.endswith(f":{ports[0]}")
    parts = settings.parts
    assert (parts.blobs, parts.keys, parts.elsewhere) == (tmp_path / "blobs", tmp_path / "keys", ())
    assert parts.ledger_url == f"sqlite:///{tmp_path / 'ledger.sqlite'}"


def test_addresses_name_the_parts_of_several_hosts(tmp_path: Path) -> None:
    """What is in a bucket or kept elsewhere is said to be left out, without the bucket's options."""
    settings = BackupSettings(
        state_dir=tmp_path, nats_url="nats://bus", ledger_url="postgresql://db/ledger",
        blob_url="s3://bucket/prefix?endpoint=http://s3", keys=False,
    )  # fmt: skip

    assert settings.bus_url == "nats://bus"
    parts = settings.parts
    assert (parts.ledger_url, parts.blobs, parts.keys) == ("postgresql://db/ledger", None, None)
    assert "s3://bucket/prefix:" in parts.elsewhere[0]
    assert "the keys" in parts.elsewhere[1]
    assert BackupSettings(blob_url="file:///var/blobs").parts.blobs == Path("/var/blobs")


def test_what_is_no_platform_is_named(tmp_path: Path) -> None:
    """Another folder, and another kind of store."""
    with pytest.raises(BackupRefused, match="is no platform's folder"):
        _ = BackupSettings(state_dir=tmp_path).bus_url
    with pytest.raises(BackupRefused, match="--blob-url"):
        _ = BackupSettings(blob_url="ftp://x").parts


def test_pieces_are_described_for_people() -> None:
    """With their names, what is in them, and their size."""
    stream = BackupPiece(kind="stream", name="USAGE", file="f", bytes=1_234_567, sha256="", entries=12)
    ledger = BackupPiece(kind="ledger", name="sqlite", file="f", bytes=999, sha256="")

    assert describe_piece(stream).split() == ["USAGE", "12", "messages", "1.2", "MB"]
    assert describe_piece(ledger).split() == ["ledger", "sqlite", "999", "B"]
    assert describe_size(5 * 10**15) == "5000.0 TB"
