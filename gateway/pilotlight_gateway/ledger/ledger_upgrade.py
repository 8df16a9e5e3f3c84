"""Upgrades a ledger's tables to this code's revision, which the table `alembic_version` holds.

The first process that opens the ledger upgrades it; others wait. The first script keeps the tables of a ledger without
revision, and gives them the first number. A new ledger gets the tables of `HEAD` at once, as the scripts would make
them, since alembic takes 0.2 s and 10 MB.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import sqlalchemy as sa

from pilotlight_core.model.ids import token
from pilotlight_gateway.ledger.ledger_errors import LedgerRefused
from pilotlight_gateway.ledger.ledger_head import HEAD as HEAD
from pilotlight_gateway.ledger.ledger_tables import ledger_identity, metadata

SCRIPTS = Path(__file__).with_name("migrations")
VIEW = SCRIPTS / "receipt_line_0013.sql"
"""Of all receipts, as of `HEAD`."""
LOCK_WAIT_S = 60.0
LOCK = 0x6C656467  # "ledg": PostgreSQL's advisory locks are numbers
WRITTEN_BY = sa.table("alembic_version", sa.column("version_num", sa.String))


def upgrade(engine: sa.Engine, *, scripts: Path = SCRIPTS, head: str = HEAD, wait_s: float = LOCK_WAIT_S) -> None:
    """Run the missing revisions up to `head` in one transaction. Blocks: call it in a thread.

    Args:
        engine: SQLite or PostgreSQL, both of which roll back changes of tables.
        scripts: the folder with alembic's `env.py` and `versions/`.
        wait_s: seconds to wait for another upgrade.

    Raises:
        LedgerRefused: a newer release has upgraded the ledger, or another process has held it for `wait_s`.
    """
    with engine.connect() as connection:
        if _revision(connection) == head:
            return
    with engine.connect() as connection, _locked(connection, wait_s):
        found = _revision(connection)  # the previous holder of the lock may have upgraded
        if found is None and (scripts, head) == (SCRIPTS, HEAD) and not sa.inspect(connection).get_table_names():
            _create(connection)
        elif found != head:
            _run(connection, scripts, found, head)


def _revision(connection: sa.Connection) -> str | None:
    if not sa.inspect(connection).has_table(WRITTEN_BY.name):
        return None
    return connection.scalar(sa.select(WRITTEN_BY.c.version_num))


def _create(connection: sa.Connection) -> None:
    """Make a new ledger. `metadata` has the tables of `HEAD`: a test holds that the scripts make the same."""
    metadata.create_all(connection)
    connection.execute(sa.text(VIEW.read_text()))
    connection.execute(sa.insert(ledger_identity).values(id=token()))
    connection.exec_driver_sql("CREATE TABLE alembic_version (version_num VARCHAR(32) NOT NULL PRIMARY KEY)")
    connection.execute(sa.insert(WRITTEN_BY).values(version_num=HEAD))


def _run(connection: sa.Connection, scripts: Path, found: str | None, head: str) -> None:
    logging.getLogger("alembic.runtime.plugins").setLevel(logging.WARNING)  # it logs every plugin
    from alembic import command
    from alembic.config import Config
    from alembic.script import ScriptDirectory

    config = Config(attributes={"connection": connection})
    config.set_main_option("script_location", str(scripts).replace("%", "%%"))
    config.set_main_option("path_separator", "os")
    known = {script.revision for script in ScriptDirectory.from_config(config).walk_revisions()}
    if found is not None and found not in known:
        where = connection.engine.url.render_as_string(hide_password=True)
        raise LedgerRefused(
            f"the ledger {where} has revision {found}, and this release of Pilotlight knows none after {head}: a newer "
            "release has upgraded it. Start that release or a later one, or restore the ledger from before the upgrade."
        )
    command.upgrade(config, head)


@contextmanager
def _locked(connection: sa.Connection, wait_s: float) -> Iterator[None]:
    """Hold the ledger's lock for a transaction, which a failed block rolls back.

    Raises:
        LedgerRefused: another process has held the lock for `wait_s`.
    """
    wait = _wait_postgresql if connection.dialect.name == "postgresql" else _wait_sqlite
    try:
        wait(connection, round(wait_s * 1_000))
    except sa.exc.OperationalError as error:
        where = connection.engine.url.render_as_string(hide_password=True)
        raise LedgerRefused(
            f"the ledger {where} must be upgraded, and another process has held it for {wait_s:g} s. Start again when "
            f"that one is done, or end it if it hangs. The database says: {error.orig}"
        ) from error
    yield
    connection.commit()


def _wait_postgresql(connection: sa.Connection, ms: int) -> None:
    connection.exec_driver_sql(f"SET LOCAL lock_timeout = {ms}")
    connection.execute(sa.select(sa.func.pg_advisory_xact_lock(LOCK)))


def _wait_sqlite(connection: sa.Connection, ms: int) -> None:
    # Python's driver begins no transaction before a change of tables, and keeps one that was begun explicitly.
    usual = connection.exec_driver_sql("PRAGMA busy_timeout").scalar_one()
    connection.exec_driver_sql(f"PRAGMA busy_timeout = {ms}")
    try:
        connection.exec_driver_sql("BEGIN IMMEDIATE")
    finally:
        connection.exec_driver_sql(f"PRAGMA busy_timeout = {usual}")
