"""The ledger is copied beside those who write it, and goes on with a stream that is shorter than what was folded."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from pilotlight_core.model.price_book import load_prices
from pilotlight_gateway.backups.backup_manifest import BackupPiece, BackupRefused
from pilotlight_gateway.backups.ledger_copies import (
    StreamPosition,
    copy_ledger,
    refuse_ledger,
    reset_position,
    restore_ledger,
)
from pilotlight_gateway.ledger.ledger_store import Ledger
from pilotlight_gateway.ledger.ledger_tables import lease_line
from tests.gateway.ledger.metering import SECOND, busy, delivered


@pytest.fixture(params=["sqlite", "postgresql"])
def urls(request: pytest.FixtureRequest, tmp_path: Path) -> list[str]:
    """Of three ledgers that are not there yet."""
    if request.param == "sqlite":
        return [f"sqlite:///{tmp_path / name / 'ledger.sqlite'}" for name in ("one", "other", "third")]
    make: Callable[[], str] = request.getfixturevalue("new_database")
    return [make() for _ in range(3)]


def lines(ledger: Ledger) -> int:
    return len(ledger.read(lease_line.select()))


async def test_a_ledger_comes_back_as_it_was(urls: list[str], tmp_path: Path) -> None:
    """While it is open, and written to; where one is already, nothing is touched."""
    one, other, _ = urls
    (tmp_path / "one").mkdir()
    ledger = Ledger(one, load_prices())
    ledger.fold("USAGE", 5, delivered([busy(1, 0, ("call_a", SECOND, "ok"))]))

    piece = await copy_ledger(one, tmp_path)
    assert piece is not None
    ledger.fold("USAGE", 9, delivered([busy(2, SECOND, ("call_b", SECOND, "ok"))]))
    refuse_ledger(other, piece)
    await restore_ledger(other, piece, tmp_path, StreamPosition("USAGE", 7))

    found = Ledger(other, load_prices())
    assert (lines(found), found.last_seq("USAGE"), found.identity()) == (1, 5, ledger.identity())
    with pytest.raises(BackupRefused, match="already"):
        refuse_ledger(other, piece)
    found.close()
    ledger.close()


async def test_usage_is_folded_again_from_where_a_restored_stream_ends(urls: list[str], tmp_path: Path) -> None:
    """What it has then is new, though its numbers are folded; a stream that is longer changes nothing."""
    (tmp_path / "one").mkdir()
    ledger = Ledger(urls[0], load_prices())
    ledger.fold("USAGE", 9, delivered([busy(1, 0, ("call_a", SECOND, "ok"))]))

    reset_position(urls[0], StreamPosition("USAGE", 20))
    assert ledger.last_seq("USAGE") == 9
    reset_position(urls[0], StreamPosition("USAGE", 5))
    assert ledger.last_seq("USAGE") == 5
    again = ledger.fold("USAGE", 6, delivered([busy(1, 0, ("call_a", SECOND, "ok"))]))
    assert (again.new, again.repeated) == (0, 1)
    ledger.close()


async def test_a_ledger_that_is_not_there_is_not_copied(tmp_path: Path) -> None:
    """Before the duties have made it; a database that does not answer is named."""
    assert await copy_ledger(f"sqlite:///{tmp_path / 'ledger.sqlite'}", tmp_path) is None
    with pytest.raises(BackupRefused, match=r"pg_dump: .*connection"):
        await copy_ledger(f"postgresql://user:secret@/db?host={tmp_path}", tmp_path)


async def test_a_copy_of_another_kind_of_database_is_refused(urls: list[str], tmp_path: Path) -> None:
    """A dump is no file of SQLite's."""
    (tmp_path / "one").mkdir()
    Ledger(urls[0], load_prices()).close()
    piece = await copy_ledger(urls[0], tmp_path)
    assert piece is not None
    swapped = msgspec.structs.replace(piece, name="sqlite" if piece.name == "postgresql" else "postgresql")

    with pytest.raises(BackupRefused, match="is of"):
        await asyncio.to_thread(refuse_ledger, urls[1], swapped)


@pytest.mark.parametrize("ending", ["", "-wal", "-shm", "-journal"])
async def test_a_journal_of_another_ledger_is_refused(tmp_path: Path, ending: str) -> None:
    """SQLite would write what is in it into the ledger that is restored."""
    url = f"sqlite:///{tmp_path / 'ledger.sqlite'}"
    (tmp_path / f"ledger.sqlite{ending}").write_bytes(b"")
    piece = BackupPiece(kind="ledger", name="sqlite", file="ledger.sqlite", bytes=0, sha256="")

    with pytest.raises(BackupRefused, match=f"ledger.sqlite{ending} is there already"):
        refuse_ledger(url, piece)


async def test_a_ledger_is_there_with_its_position_or_not_at_all(tmp_path: Path) -> None:
    """It is made beside its place, where the rest of an earlier attempt does not matter, and leaves no journal."""
    state, new = tmp_path / "state", tmp_path / "new"
    state.mkdir()
    new.mkdir()
    ledger = Ledger(f"sqlite:///{state / 'ledger.sqlite'}", load_prices())
    ledger.fold("USAGE", 9, delivered([busy(1, 0, ("call_a", SECOND, "ok"))]))
    ledger.close()
    piece = await copy_ledger(f"sqlite:///{state / 'ledger.sqlite'}", tmp_path)
    assert piece is not None
    for ending in ("", "-wal", "-shm"):
        (new / f"ledger.sqlite.new{ending}").write_bytes(b"torn")
    url = f"sqlite:///{new / 'ledger.sqlite'}"
    (tmp_path / "damaged").write_bytes(b"no ledger")
    with pytest.raises(Exception, match="not a database"):
        await restore_ledger(url, msgspec.structs.replace(piece, file="damaged"), tmp_path, StreamPosition("USAGE", 5))
    assert not (new / "ledger.sqlite").exists()

    await restore_ledger(url, piece, tmp_path, StreamPosition("USAGE", 5))

    assert [path.name for path in new.iterdir()] == ["ledger.sqlite"]
    assert (new / "ledger.sqlite").stat().st_mode & 0o777 == 0o600
    found = Ledger(url, load_prices())
    assert (lines(found), found.last_seq("USAGE")) == (1, 5)
    found.close()
