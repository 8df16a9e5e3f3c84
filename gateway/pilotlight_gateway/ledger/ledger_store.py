"""Stores usage in SQL: one writer folds events, many readers query."""

from __future__ import annotations

import sqlite3
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args

import sqlalchemy as sa

from pilotlight_core.host.file_permissions import private_file
from pilotlight_core.model.price_book import PriceBook
from pilotlight_core.model.units import NS_PER_S
from pilotlight_gateway.ledger.bulk_rows import insert_rows, whole_sum
from pilotlight_gateway.ledger.call_receipts import add_receipts, dialect_module, prune_receipts
from pilotlight_gateway.ledger.ledger_corrections import correct
from pilotlight_gateway.ledger.ledger_entries import LedgerRows, day_of, entries_of
from pilotlight_gateway.ledger.ledger_errors import LedgerRefused
from pilotlight_gateway.ledger.ledger_tables import (
    HOUR_KEY,
    USAGE_KEY,
    bound_container,
    closed_period,
    correction_line,
    fold_result,
    folded,
    known_device,
    lease_line,
    ledger_identity,
    pending_reversal,
    quarantine_count,
    quarantined_usage,
    usage_day,
    usage_hour,
    version_tags,
)
from pilotlight_gateway.ledger.ledger_upgrade import upgrade
from pilotlight_gateway.ledger.pending_reversals import keep_pending, take_due
from pilotlight_gateway.ledger.unread_usage import (
    UnreadCount,
    UnreadMessage,
    count_unread,
    drop_unread,
    keep_unread,
    read_again,
)
from pilotlight_gateway.ledger.usage_checks import BoundContainer, UsageFault
from pilotlight_gateway.ledger.usage_delivery import UsageDelivery
from pilotlight_gateway.ledger.usage_intake import (
    QuarantinedUsage,
    SortedUsage,
    quarantined,
    read_bound,
    read_known,
    sort_usage,
    unreadable,
    values_of,
)

KEPT_SECONDS = 100 * 86_400.0
"""Retention of single intervals and receipts."""
KEPT_OF_A_NODE = 1_000
"""Quarantined usage that is kept of each node, the last ones; all of it is counted."""
BUSY_S = 10
"""Seconds that a process waits for another writer of the SQLite file."""
FoldResult = Literal["new", "repeated", "unpriced", "quarantined"]


@dataclass(frozen=True, kw_only=True)
class FoldReport:
    """Counts of one fold's events, and its last sequence number."""

    seq: int
    new: int
    repeated: int
    unpriced: int
    quarantined: int
    unread: int = 0
    """Messages that wait for a release that reads them."""


class Ledger:
    """Usage in SQLite (a file, in WAL mode) or PostgreSQL. Methods block: call them in a thread.

    Opening a ledger upgrades tables of an older release.

    Raises:
        LedgerRefused: the tables are of a newer release, another process holds the ledger, or PostgreSQL's driver is
            missing.
    """

    def __init__(self, url: str, book: PriceBook) -> None:
        self.book = book
        self._engine = _engine_of(url)
        upgrade(self._engine)

    def close(self) -> None:
        self._engine.dispose()

    def settle(self) -> None:
        """Have all that was committed on disk: SQLite's last commits may be lost in a power cut until then."""
        if self._engine.dialect.name == "sqlite":
            with self._engine.connect() as connection:
                connection.exec_driver_sql("PRAGMA wal_checkpoint(FULL)").close()

    def identity(self) -> str:
        """What tells this ledger from others."""
        with self._engine.connect() as connection:
            return str(connection.scalar(sa.select(ledger_identity.c.id)))

    def last_seq(self, stream: str) -> int:
        """The sequence number up to which `stream` is folded; 0 if it is not."""
        with self._engine.connect() as connection:
            return self._last_seq(connection, stream)

    def results(self) -> dict[str, int]:
        """Events folded so far, by result."""
        with self._engine.connect() as connection:
            found = {row.result: row.events for row in connection.execute(sa.select(fold_result))}
        return {result: found.get(result, 0) for result in get_args(FoldResult)}

    def fold(self, stream: str, seq: int, deliveries: Sequence[UsageDelivery]) -> FoldReport:
        """Add what is new, put aside what cannot be, and store `seq`, in one transaction."""
        with self._engine.begin() as connection:
            done = self._take(connection, seq, deliveries)
            self._remember(connection, stream, done)
        return done

    def reset_position(self, stream: str, seq: int) -> None:
        """Fold `stream` from behind `seq` on, if more of it is folded: its numbers are given anew from there."""
        with self._engine.begin() as connection:
            behind = sa.update(folded).where(folded.c.stream == stream, folded.c.seq > seq)
            connection.execute(behind.values(seq=seq))

    def fold_unread(self, stream: str, messages: Sequence[UnreadMessage]) -> FoldReport:
        """Fold messages that can be read by now, whose place in the stream is long past, in one transaction."""
        with self._engine.begin() as connection:
            done = self._take(connection, self._last_seq(connection, stream), [each.delivery for each in messages])
            drop_unread(connection, [each.id for each in messages])
            self._remember(connection, stream, done)
        return done

    def give_up_unread(self, stream: str, message: UnreadMessage, reason: UsageFault, why: str) -> FoldReport:
        """Put a kept message into quarantine: no release came that reads it, or the database does not take it."""
        with self._engine.begin() as connection:
            seq = self._last_seq(connection, stream)
            done = FoldReport(seq=seq, new=0, repeated=0, unpriced=0, quarantined=1)
            self._put_aside(connection, [quarantined(message.delivery, reason, why)])
            drop_unread(connection, [message.id])
            self._remember(connection, stream, done)
        return done

    def unread(self, after: int, at: float) -> list[UnreadMessage]:
        """A page of the messages that were kept unread, behind row `after`, tried again at the unix second `at`."""
        with self._engine.connect() as connection:
            return read_again(connection, after, at)

    def unread_count(self) -> UnreadCount:
        with self._engine.connect() as connection:
            return count_unread(connection)

    def fold_around(self, stream: str, seq: int, delivery: UsageDelivery, why: str) -> FoldReport:
        """Put a delivery aside whole that the database does not take, and store `seq`."""
        done = FoldReport(seq=seq, new=0, repeated=0, unpriced=0, quarantined=1)
        with self._engine.begin() as connection:
            self._put_aside(connection, [quarantined(delivery, UsageFault.NOT_STORED, why)])
            self._remember(connection, stream, done)
        return done

    def bound_containers(self, containers: Iterable[str]) -> dict[str, BoundContainer]:
        """Those of `containers` that were ever bound and are not pruned."""
        with self._engine.connect() as connection:
            return read_bound(connection, containers)

    def quarantine(self, *, node: str | None, before: int | None, limit: int) -> list[dict[str, Any]]:
        """The last quarantined usage, of one node or of all, with an id below `before`."""
        query = sa.select(quarantined_usage).order_by(quarantined_usage.c.id.desc()).limit(limit)
        if node is not None:
            query = query.where(quarantined_usage.c.node == node)
        return self.read(query if before is None else query.where(quarantined_usage.c.id < before))

    def quarantine_counts(self) -> list[dict[str, Any]]:
        """How much was ever quarantined, by node and reason."""
        return self.read(sa.select(quarantine_count).order_by(quarantine_count.c.node, quarantine_count.c.reason))

    def prune(self, before: float) -> int:
        """Delete intervals and receipts that ended before a unix second; returns the number of intervals."""
        with self._engine.begin() as connection:
            gone = connection.execute(sa.delete(lease_line).where(lease_line.c.wall < before)).rowcount
            prune_receipts(connection, day_of(int(before) * NS_PER_S))
            connection.execute(sa.delete(bound_container).where(bound_container.c.ended_at < before))
            connection.execute(sa.delete(quarantined_usage).where(quarantined_usage.c.at < before))
            day = day_of(int(before) * NS_PER_S)
            connection.execute(sa.delete(correction_line).where(correction_line.c.day < day))
            connection.execute(sa.delete(pending_reversal).where(pending_reversal.c.hour < day))
        return gone

    def close_days(self, until: str, at: float) -> None:
        """Close all days before `until`, at the unix second `at`: what comes late is booked on the first open day.

        Days that are closed stay so.
        """
        with self._engine.begin() as connection:
            insert = self._insert(closed_period).values(until=until, at=at)
            connection.execute(insert.on_conflict_do_nothing())

    def open_from(self) -> str:
        """The first day that is not closed; "": all are open."""
        with self._engine.connect() as connection:
            return self._open_from(connection)

    def first_day(self) -> str:
        """The first day with usage; "": there is none."""
        with self._engine.connect() as connection:
            return connection.scalar(sa.select(sa.func.min(usage_day.c.day))) or ""

    @contextmanager
    def snapshot(self) -> Iterator[sa.Connection]:
        """A connection whose questions all see the ledger as it is now."""
        is_sqlite = self._engine.dialect.name == "sqlite"
        level = {} if is_sqlite else {"isolation_level": "REPEATABLE READ"}
        with self._engine.connect().execution_options(**level) as connection:
            if is_sqlite:  # Python's driver begins no transaction for a question
                connection.exec_driver_sql("BEGIN").close()
            yield connection
            connection.rollback()

    @property
    def dialect(self) -> str:
        """What the database speaks: `sqlite` or `postgresql`."""
        return self._engine.dialect.name

    def read_parts(self, queries: Iterable[sa.Select[Any]]) -> Iterator[sa.Row[Any]]:
        """The rows of several queries, one after the other, of one snapshot."""
        with self.snapshot() as connection:
            for query in queries:
                yield from connection.execute(query).all()

    def read(self, query: sa.Select[Any]) -> list[dict[str, Any]]:
        with self._engine.connect() as connection:
            return [dict(row) for row in connection.execute(query).mappings()]

    def _take(self, connection: sa.Connection, seq: int, deliveries: Sequence[UsageDelivery]) -> FoldReport:
        found = sort_usage(deliveries, read_known(connection, deliveries))
        firsts = {name: bound.parts[0] for name, bound in found.known.bound.items() if len(bound.parts) > 1}
        open_from = self._open_from(connection)
        most = {name: bound.most_units for name, bound in found.known.bound.items() if bound.max_units}
        entries = entries_of(found.fresh, self.book, open_from, firsts, most)
        insert_rows(connection, lease_line, entries.leases)
        self._add_usage(connection, entries)
        add_receipts(connection, entries)
        if reversals := [*entries.reversals, *take_due(connection, found.fresh, open_from)]:
            corrected = correct(connection, reversals, self.book)
            self._add_usage(connection, corrected.entries)
            add_receipts(connection, corrected.entries)
            keep_pending(connection, corrected.left)
        self._write_bounds(connection, found)
        self._add_tags(connection, found)
        beyond = keep_unread(connection, found.unread) if found.unread else []
        aside = [*found.quarantined, *map(unreadable, beyond)]
        self._put_aside(connection, aside)
        return FoldReport(
            seq=seq,
            new=len(found.fresh),
            repeated=found.repeated,
            unpriced=entries.unpriced,
            quarantined=len(aside),
            unread=len(found.unread) - len(beyond),
        )

    def _open_from(self, connection: sa.Connection) -> str:
        return connection.scalar(sa.select(sa.func.max(closed_period.c.until))) or ""

    def _last_seq(self, connection: sa.Connection, stream: str) -> int:
        return connection.scalar(sa.select(folded.c.seq).where(folded.c.stream == stream)) or 0

    def _insert(self, table: sa.Table) -> Any:
        # The engine has loaded its own; the other is 40 ms of a start and 2 MB.
        return dialect_module(self._engine.dialect.name).insert(table)

    def _add_usage(self, connection: sa.Connection, entries: LedgerRows) -> None:
        for table, names, sums in ((usage_day, USAGE_KEY, entries.usage), (usage_hour, HOUR_KEY, entries.hours)):
            rows = [
                dict(zip(names, key, strict=True)) | {"ns": line.ns, "calls": line.calls} for key, line in sums.items()
            ]
            grown = {name: whole_sum(self._engine.dialect.name, table.name, name) for name in ("ns", "calls")}
            insert_rows(connection, table, rows, keys=names, grown=grown)

    def _add_tags(self, connection: sa.Connection, found: SortedUsage) -> None:
        rows = [{"tenant": tenant, "version": version, "tags": tags} for (tenant, version), tags in found.tags.items()]
        if rows:  # a version is tagged once
            connection.execute(self._insert(version_tags).on_conflict_do_nothing(), rows)

    def _write_bounds(self, connection: sa.Connection, found: SortedUsage) -> None:
        bound = [values_of(found.known.bound[name]) for name in sorted(found.bound)]
        grown = {name: f"excluded.{name}" for name in ("ended_at", "ns", "starts")}
        insert_rows(connection, bound_container, bound, keys=("container",), grown=grown)
        devices = [values_of(found.known.devices[key]) for key in sorted(found.devices)]
        grown = {name: f"excluded.{name}" for name in ("since", "ns")}
        insert_rows(connection, known_device, devices, keys=("node", "device"), grown=grown)

    def _put_aside(self, connection: sa.Connection, found: Sequence[QuarantinedUsage]) -> None:
        if not found:
            return
        of_node = Counter[str]()
        kept: list[dict[str, Any]] = []
        for one in reversed(found):
            of_node[one.node] += 1
            if of_node[one.node] <= KEPT_OF_A_NODE:
                kept.append(one._asdict())
        connection.execute(sa.insert(quarantined_usage), kept[::-1])
        add = self._insert(quarantine_count)
        grown = {"events": quarantine_count.c.events + add.excluded.events}
        counts = Counter((one.node, one.reason) for one in found)
        rows = [{"node": node, "reason": reason, "events": events} for (node, reason), events in counts.items()]
        connection.execute(add.on_conflict_do_update(index_elements=["node", "reason"], set_=grown), rows)
        for node in of_node:
            self._trim_quarantine(connection, node)

    def _trim_quarantine(self, connection: sa.Connection, node: str) -> None:
        ids, of_node = quarantined_usage.c.id, quarantined_usage.c.node == node
        oldest = sa.select(ids).where(of_node).order_by(ids.desc()).offset(KEPT_OF_A_NODE).limit(1)
        if (last := connection.scalar(oldest)) is not None:
            connection.execute(sa.delete(quarantined_usage).where(of_node, ids <= last))

    def _remember(self, connection: sa.Connection, stream: str, done: FoldReport) -> None:
        insert = self._insert(folded).values(stream=stream, seq=done.seq)
        connection.execute(insert.on_conflict_do_update(index_elements=["stream"], set_={"seq": done.seq}))
        add = self._insert(fold_result)
        grown = {"events": fold_result.c.events + add.excluded.events}
        rows = [{"result": result, "events": getattr(done, result)} for result in get_args(FoldResult)]
        connection.execute(add.on_conflict_do_update(index_elements=["result"], set_=grown), rows)


def _engine_of(url: str) -> sa.Engine:
    parsed = sa.make_url(url)
    if parsed.get_backend_name() == "sqlite":
        engine = sa.create_engine(parsed)
        _keep_private(parsed.database)
        sa.event.listen(engine, "connect", _prepare_sqlite)
        return engine
    if parsed.drivername == "postgresql":
        parsed = parsed.set(drivername="postgresql+psycopg")
    try:
        # A server that was started again has closed the connections that the pool still has.
        engine = sa.create_engine(parsed, pool_pre_ping=True)
        sa.event.listen(engine, "connect", _prepare_postgres)
        return engine
    except ModuleNotFoundError as error:
        raise LedgerRefused(f"its driver {error.name} is missing: pip install 'pilotlight[postgres]'") from error


def _keep_private(database: str | None) -> None:
    """Restrict the file, and SQLite's files beside it, to the owner."""
    if database and database != ":memory:":
        for path in (private_file(Path(database)), Path(f"{database}-wal"), Path(f"{database}-shm")):
            if path.exists():
                private_file(path)


def _prepare_postgres(connection: Any, _record: Any) -> None:
    """Read sums as whole numbers, which all of the ledger's are: as decimals they took twice the time."""
    from psycopg.types.numeric import IntLoader

    connection.adapters.register_loader("numeric", IntLoader)


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
