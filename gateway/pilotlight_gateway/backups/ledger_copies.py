"""Copies of the ledger as it is at one instant, beside those who write it: SQLite by its online backup, PostgreSQL by
pg_dump and pg_restore.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import sqlite3
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote

from pilotlight_core.model.price_book import load_prices
from pilotlight_gateway.backups.backup_manifest import BackupPiece, BackupRefused, digest_of, new_file
from pilotlight_gateway.ledger.ledger_store import Ledger

SQLITE, POSTGRESQL = "sqlite", "postgresql"
PREFIX = "sqlite:///"
JOURNALS = ("-wal", "-shm", "-journal")
"""What SQLite may leave beside a ledger."""
VARIABLES = {
    "host": "PGHOST", "hostaddr": "PGHOSTADDR", "port": "PGPORT", "user": "PGUSER", "password": "PGPASSWORD",
    "dbname": "PGDATABASE", "sslmode": "PGSSLMODE", "sslrootcert": "PGSSLROOTCERT", "sslcert": "PGSSLCERT",
    "sslkey": "PGSSLKEY", "options": "PGOPTIONS", "passfile": "PGPASSFILE", "service": "PGSERVICE",
}  # fmt: skip
"""How PostgreSQL's programs are told where to connect: every user of a host can read command lines."""
SAID = 2_000
"""Bytes of what a program said, in the error about it."""
DEBIAN = "/usr/lib/postgresql"
"""Where Debian has the programs of each release, of which some are not on PATH."""


class StreamPosition(NamedTuple):
    """Up to where a stream is folded."""

    stream: str
    seq: int


def file_of(url: str) -> Path | None:
    """The file of a ledger in SQLite; None: it is in PostgreSQL."""
    return Path(url.removeprefix(PREFIX)) if url.startswith(PREFIX) else None


async def copy_ledger(url: str, folder: Path) -> BackupPiece | None:
    """Copy the ledger into a file of `folder`; None: there is none.

    Raises:
        BackupRefused: the database does not let it.
    """
    source = file_of(url)
    path = folder / ("ledger.dump" if source is None else "ledger.sqlite")
    if source is not None and not source.exists():
        return None
    new_file(path).close()
    if source is None:
        await _run("pg_dump", "--format=custom", "--no-owner", f"--file={path}", url=url)
    else:
        await asyncio.to_thread(_copy_sqlite, source, path)
    size, digest = await asyncio.to_thread(digest_of, path)
    name = POSTGRESQL if source is None else SQLITE
    return BackupPiece(kind="ledger", name=name, file=path.name, bytes=size, sha256=digest)


async def restore_ledger(url: str, piece: BackupPiece, folder: Path, position: StreamPosition | None) -> None:
    """Bring the ledger back where there is none, folded up to `position`; in SQLite all of it at once.

    Raises:
        BackupRefused: the database does not take it. LedgerRefused.
    """
    target = file_of(url)
    if target is None:
        words = ("--single-transaction", "--no-owner", "--exit-on-error", "--dbname", "", str(folder / piece.file))
        await _run("pg_restore", *words, url=url)
        if position is not None:
            await asyncio.to_thread(reset_position, url, position)
        return
    await asyncio.to_thread(_restore_sqlite, folder / piece.file, target, position)


def refuse_ledger(url: str, piece: BackupPiece) -> None:
    """Check that there is no ledger yet, and that this kind of database is the copy's. It blocks.

    Raises:
        BackupRefused: it is not so.
    """
    target = file_of(url)
    if (kind := POSTGRESQL if target is None else SQLITE) != piece.name:
        raise BackupRefused(f"The copy of the ledger is of {piece.name}, and --ledger-url is of {kind}.")
    if target is None:
        import psycopg

        try:
            with psycopg.connect(url) as connection:
                asked = "SELECT count(*) FROM pg_tables WHERE schemaname NOT IN ('pg_catalog', 'information_schema')"
                found = connection.execute(asked).fetchone()
        except psycopg.Error as error:
            raise BackupRefused(f"The ledger's database cannot be reached: {error}") from None
        if found is not None and found[0]:
            raise BackupRefused("The ledger's database has tables already: name an empty one in --ledger-url.")
        return
    # SQLite would apply a journal that was left of another ledger to the one that is restored.
    for path in _files_of(target):
        if path.exists():
            raise BackupRefused(f"{path} is there already: a backup is restored into an empty --state-dir only.")


def reset_position(url: str, position: StreamPosition) -> None:
    """Have the duties fold a stream anew from what a copy of it has, which may be less than was folded. It blocks.

    What is folded twice counts once; what the stream has after it is new, though those numbers were folded before.
    """
    ledger = Ledger(url, load_prices())
    try:
        ledger.reset_position(*position)
    finally:
        ledger.close()


def _files_of(ledger: Path) -> list[Path]:
    """What SQLite keeps of it."""
    return [ledger, *(ledger.with_name(ledger.name + ending) for ending in JOURNALS)]


def _restore_sqlite(copy: Path, target: Path, position: StreamPosition | None) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    new = target.with_name(f"{target.name}.new")
    for left in _files_of(new):
        left.unlink(missing_ok=True)
    new_file(new).close()
    shutil.copyfile(copy, new)
    if position is not None:
        reset_position(f"{PREFIX}{new}", position)
    try:
        with closing(sqlite3.connect(new)) as ledger:
            # Whatever was written is in the file itself then, which alone is renamed.
            ledger.execute("PRAGMA journal_mode=DELETE").close()
    except sqlite3.Error as error:
        raise BackupRefused(f"The ledger {new} cannot be written: {error}.") from None
    _sync(new)
    new.rename(target)
    _sync(target.parent)


def _sync(path: Path) -> None:
    opened = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)


def _copy_sqlite(source: Path, path: Path) -> None:
    try:
        with (
            closing(sqlite3.connect(f"file:{quote(str(source))}?mode=ro", uri=True)) as one,
            closing(sqlite3.connect(path)) as copy,
        ):
            one.backup(copy)
            # A copy of a file with a journal beside it has none.
            copy.execute("PRAGMA journal_mode=DELETE").close()
            (found,) = copy.execute("PRAGMA quick_check(1)").fetchone()
    except sqlite3.Error as error:
        raise BackupRefused(f"The ledger {source} cannot be copied: {error}.") from None
    if found != "ok":
        raise BackupRefused(f"The ledger {source} is damaged: {found}.")


async def _run(program: str, *words: str, url: str) -> None:
    path = _program(program)
    child = await asyncio.create_subprocess_exec(
        path, *words, stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.PIPE, env={**os.environ, **_variables(url)},
    )  # fmt: skip
    _, said = await child.communicate()
    if child.returncode:
        raise BackupRefused(f"{program}: {said[-SAID:].decode(errors='replace').strip()}")


def _variables(url: str) -> Mapping[str, str]:
    from psycopg.conninfo import conninfo_to_dict

    return {VARIABLES[name]: str(value) for name, value in conninfo_to_dict(url).items() if name in VARIABLES}


def _program(name: str) -> str:
    found = shutil.which(name) or next((str(path) for path in sorted(Path(DEBIAN).glob(f"*/bin/{name}"))), None)
    if found is None:
        raise BackupRefused(f"{name} is missing, which copies a ledger in PostgreSQL: install postgresql-client.")
    return found
