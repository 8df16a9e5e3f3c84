"""`pilotlight backup`, as a program."""

from __future__ import annotations

import asyncio
import sqlite3
import tarfile
from pathlib import Path

import msgspec
import pytest
from sqlalchemy.exc import SQLAlchemyError

from pilotlight_core.bus import connect
from pilotlight_core.host.blobs.blob_port import STORE_ID
from pilotlight_core.host.signing import Signer
from pilotlight_core.model.price_book import load_prices
from pilotlight_core.model.subjects import TENANCY_BUCKET
from pilotlight_gateway.backups.backup_manifest import BackupManifest
from pilotlight_gateway.ledger.ledger_store import Ledger
from pilotlight_supervisor import backup_command
from pilotlight_supervisor.backup_settings import BackupSettings
from pilotlight_supervisor.embedded_bus import choose_ports, embedded_nats


async def copied(state: Path, *words: str) -> int:
    """The exit code of copying a platform with one record, a ledger, a key and no blob yet."""
    Signer.load_or_create(state / "keys")
    (state / "keys" / "private").write_text("k")
    (state / "blobs").mkdir()
    (state / "blobs" / STORE_ID).write_text("b")
    Ledger(f"sqlite:///{state / 'ledger.sqlite'}", load_prices()).close()
    choose_ports(state / "nats", 1)
    async with embedded_nats(state / "nats") as server:
        async with connect(server.url, name="x") as bus:
            await bus.kv(TENANCY_BUCKET).put("tenant.acme", b"1")
        return await asyncio.to_thread(backup_command.main, [*words, f"--state-dir={state}"])


async def test_what_was_copied_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A line for each piece as it is done, and of the keys that they have to be kept."""
    code = await copied(tmp_path / "state", str(tmp_path / "copy"))

    out, error = capsys.readouterr()
    assert code == 0
    assert "KV_TENANCY" in error
    assert f"{tmp_path / 'copy' / 'backup.json'}: " in out
    assert "private keys" in out


async def test_json_is_the_manifest(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Without the keys, if they are kept elsewhere."""
    code = await copied(tmp_path / "state", str(tmp_path / "copy"), "--json", "--no-keys")

    told = msgspec.json.decode(capsys.readouterr().out)
    assert code == 0
    assert {piece["kind"] for piece in told["pieces"]} == {"stream", "ledger", "blobs"}
    assert told["left_out"] == ["the keys: they are kept elsewhere"]


def test_what_cannot_be_done_is_an_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """In a line, with the exit code of its kind."""
    assert backup_command.main([str(tmp_path / "copy"), f"--state-dir={tmp_path}"]) == 1
    assert "error: " in capsys.readouterr().err
    assert backup_command.main([str(tmp_path / "copy"), "--colour=red"]) == 2
    assert "--colour" in capsys.readouterr().err
    assert not (tmp_path / "copy").exists()


@pytest.mark.parametrize("error", [tarfile.ReadError("torn"), sqlite3.DatabaseError("torn"), SQLAlchemyError("torn")])
def test_damage_that_libraries_find_is_an_error(
    error: Exception, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """In a line too."""

    async def fail(_: BackupSettings, __: Path) -> BackupManifest:
        raise error

    assert backup_command.run("backup", fail, lambda *_: "", [str(tmp_path)]) == 1
    assert capsys.readouterr().err == "error: torn\n"
