"""Stores usage in SQL: one writer folds events, many readers query."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite

from pilotlight_core.host.file_permissions import private_file
from pilotlight_core.model.messages.usage import UsageEvent
from pilotlight_core.model.units import NS_PER_S
from pilotlight_gateway.ledger.ledger_entries import LedgerRows, UsageSum, day_of, entries_of
from pilotlight_gateway.ledger.ledger_tables import USAGE_KEY, call_line, fold_result, folded, lease_line, usage_day
from pilotlight_gateway.ledger.ledger_upgrade import upgrade
from pilotlight_gateway.ledger.price_book import PriceBook

KNOWN_IDS_AT_A_TIME = 500
"""SQLite binds at most 32,766 parameters in a statement, older builds 999."""
BUSY_S = 10
"""Seconds that a process waits for another writer of the SQLite file."""
CALL_KEY = ("tenant", "call", "day", "version", "price", "ppm", "rate")
CALL_COLUMNS = (*CALL_KEY, "app", "function", "ns", "outcome", "batch_size")
"""In the order of the compiled insert."""

FoldResult = Literal["new", "repeated", "unpriced", "misfits"]


@dataclass(frozen=True, kw_only=True)
class FoldReport:
    """Counts of one fold's events, and its last sequence number."""

    seq: int
    new: int
    repeated: int
    unpriced: int
    misfits: int


class Ledger:
    """Usage in SQLite (a file, in WAL mode) or PostgreSQL. Methods block: call them in a thread.

    Opening a ledger upgrades tables of an older release.

    Raises:
        LedgerRefused: the tables are of a newer release, or another process holds the ledger.
    """

    def __init__(self, url: str, book: PriceBook) -> None:
        self.book = book
        self._engine = sa.create_engine(url)
        if self._engine.dialect.name == "sqlite":
            _keep_private(self._engine.url.database)
            sa.event.listen(self._engine, "connect", _prepare_sqlite)
        upgrade(self._engine)

    def close(self) -> None:
        self._engine.dispose()

    def last_seq(self, stream: str) -> int:
        """The sequence number up to which `stream` is folded; 0 if it is not."""
        with self._engine.connect() as connection:
            found = connection.scalar(sa.select(folded.c.seq).where(folded.c.stream == stream))
        return found or 0

    def results(self) -> dict[str, int]:
        """Events folded so far, by result."""
        with self._engine.connect() as connection:
            found = {row.result: row.events for row in connection.execute(sa.select(fold_result))}
        return {result: found.get(result, 0) for result in get_args(FoldResult)}

    def fold(self, stream: str, seq: int, events: Sequence[UsageEvent]) -> FoldReport:
        """Add the events that are new and store `seq`, in one transaction."""
        with self._engine.begin() as connection:
            fresh = _unseen(connection, events)
            entries = entries_of(fresh, self.book)
            if entries.leases:
                connection.execute(sa.insert(lease_line), entries.leases)
            self._add_usage(connection, entries)
            self._add_calls(connection, entries)
            done = FoldReport(
                seq=seq,
                new=len(fresh),
                repeated=len(events) - len(fresh),
                unpriced=entries.unpriced,
                misfits=entries.misfits,
            )
            self._remember(connection, stream, done)
        return done

    def prune(self, before: float) -> int:
        """Delete intervals and receipts that ended before a unix second; returns the number of intervals."""
        with self._engine.begin() as connection:
            gone = connection.execute(sa.delete(lease_line).where(lease_line.c.wall < before)).rowcount
            connection.execute(sa.delete(call_line).where(call_line.c.day < day_of(int(before) * NS_PER_S)))
        return gone

    def read(self, query: sa.Select[Any]) -> list[dict[str, Any]]:
        with self._engine.connect() as connection:
            return [dict(row) for row in connection.execute(query).mappings()]

    def _insert(self, table: sa.Table) -> Any:
        module = postgresql if self._engine.dialect.name == "postgresql" else sqlite
        return module.insert(table)

    def _add_usage(self, connection: sa.Connection, entries: LedgerRows) -> None:
        rows = [_usage_row(key, line) for key, line in entries.usage.items()]
        if not rows:
            return
        insert = self._insert(usage_day)
        grown = {"ns": usage_day.c.ns + insert.excluded.ns, "calls": usage_day.c.calls + insert.excluded.calls}
        connection.execute(insert.on_conflict_do_update(index_elements=USAGE_KEY, set_=grown), rows)

    def _add_calls(self, connection: sa.Connection, entries: LedgerRows) -> None:
        if not entries.calls:
            return
        insert = self._insert(call_line)
        said = insert.excluded.outcome
        grown = {
            "ns": call_line.c.ns + insert.excluded.ns,
            "outcome": sa.case((said != "", said), else_=call_line.c.outcome),
            "batch_size": sa.case(
                (insert.excluded.batch_size > call_line.c.batch_size, insert.excluded.batch_size),
                else_=call_line.c.batch_size,
            ),
        }
        statement = insert.on_conflict_do_update(index_elements=CALL_KEY, set_=grown)
        rows = [(*key, c.app, c.function, c.ns, c.outcome, c.batch_size) for key, c in entries.calls.items()]
        _execute_many(connection, statement, CALL_COLUMNS, rows)

    def _remember(self, connection: sa.Connection, stream: str, done: FoldReport) -> None:
        insert = self._insert(folded).values(stream=stream, seq=done.seq)
        connection.execute(insert.on_conflict_do_update(index_elements=["stream"], set_={"seq": done.seq}))
        add = self._insert(fold_result)
        grown = {"events": fold_result.c.events + add.excluded.events}
        rows = [{"result": result, "events": getattr(done, result)} for result in get_args(FoldResult)]
        connection.execute(add.on_conflict_do_update(index_elements=["result"], set_=grown), rows)


def _usage_row(key: tuple[Any, ...], line: UsageSum) -> dict[str, Any]:
    return dict(zip(USAGE_KEY, key, strict=True)) | {"ns": line.ns, "calls": line.calls}


def _execute_many(
    connection: sa.Connection, statement: Any, columns: tuple[str, ...], rows: list[tuple[Any, ...]]
) -> None:
    """Insert thousands of rows as tuples: SQLAlchemy's dictionary per row took most of a fold's time."""
    compiled = statement.compile(dialect=connection.dialect, column_keys=columns)
    if compiled.positional and tuple(compiled.positiontup) == columns:
        connection.exec_driver_sql(compiled.string, rows)
    else:
        connection.execute(statement, [dict(zip(columns, row, strict=True)) for row in rows])


def _unseen(connection: sa.Connection, events: Iterable[UsageEvent]) -> list[UsageEvent]:
    by_id = {event.id: event for event in events}
    ids = list(by_id)
    for start in range(0, len(ids), KNOWN_IDS_AT_A_TIME):
        some = ids[start : start + KNOWN_IDS_AT_A_TIME]
        for known in connection.scalars(sa.select(lease_line.c.id).where(lease_line.c.id.in_(some))):
            del by_id[known]
    return list(by_id.values())


def _keep_private(database: str | None) -> None:
    """Restrict the file, and SQLite's files beside it, to the owner."""
    if database and database != ":memory:":
        for path in (private_file(Path(database)), Path(f"{database}-wal"), Path(f"{database}-shm")):
            if path.exists():
                private_file(path)


def _prepare_sqlite(connection: sqlite3.Connection, _record: Any) -> None:
    connection.execute(f"PRAGMA busy_timeout={BUSY_S * 1_000}").close()
    use_wal(connection)
    # NORMAL may lose the last fold in a power cut; the stream then delivers it again.
    connection.execute("PRAGMA synchronous=NORMAL").close()


def use_wal(connection: sqlite3.Connection, sleep: Callable[[float], object] = time.sleep) -> None:
    """Let reports read while a fold writes.

    If several processes open a new file, SQLite refuses this to all but one at once, so the others retry for `BUSY_S`.
    """
    until = time.monotonic() + BUSY_S
    while True:
        try:
            connection.execute("PRAGMA journal_mode=WAL").close()
            return
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode != sqlite3.SQLITE_BUSY or time.monotonic() > until:
                raise
        sleep(0.01)
