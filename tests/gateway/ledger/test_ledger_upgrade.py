"""A ledger is upgraded once, whole, by whoever opens it first; one of before there were revisions keeps all it has.

`before_revisions.sql` is a ledger with rows in each table as the last code without revisions made it, and
`before_revisions.json` is what that code read from it.
"""

from __future__ import annotations

import json
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
import sqlalchemy as sa
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory

from pilotlight_core.model.price_book import load_prices
from pilotlight_gateway.ledger.ledger_errors import LedgerRefused
from pilotlight_gateway.ledger.ledger_store import Ledger
from pilotlight_gateway.ledger.ledger_tables import lease_line, metadata, receipt_line
from pilotlight_gateway.ledger.ledger_upgrade import HEAD, SCRIPTS, upgrade
from pilotlight_gateway.ledger.usage_conservation import device_account
from pilotlight_gateway.ledger.usage_queries import receipts, usage_report
from tests.gateway.ledger.metering import SECOND, busy, delivered

HERE = Path(__file__).parent
AT_ONCE = """
import sys
from pilotlight_core.model.price_book import load_prices
from pilotlight_gateway.ledger.ledger_store import Ledger
book = load_prices()
print("ready", flush=True)
sys.stdin.readline()
Ledger(sys.argv[1], book).close()
print("alembic" in sys.modules, flush=True)
"""
NEXT = '''
"""A note on each interval."""
import sqlalchemy as sa
from alembic import op

revision = "9999"
down_revision = "{head}"

def upgrade():
    with op.batch_alter_table("lease_line") as table:
        table.add_column(sa.Column("note", sa.String(20), nullable=False, server_default="none"))
    {then}
'''


SINCE = (
    "bound_container", "call_receipt", "closed_period", "cold_start", "correction_line", "known_device", "nested_call",
    "pending_reversal", "quarantine_count", "quarantined_usage", "receipt_terms", "unread_usage", "version_tags",
)  # fmt: skip
"""Tables that came with later revisions."""
LATER = {
    "lease_line": {
        "wall_ns",
        "purpose",
        "used",
        "memory",
        "region",
        "zone",
        "purchase",
        "core_ppm",
        "core_rate",
        "gib_ppm",
        "gib_rate",
        "holder",
        "policy",
        "booked_from",
        "discount",
    },
    "usage_day": {"discount"},
    "usage_hour": {"discount"},
    "call_line": {"key_id", "tags", "fault", "units"},
}
"""Columns that came with later revisions, of each table. Old rows have nothing there."""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "ledger.sqlite"


@pytest.fixture
def old(path: Path) -> Path:
    """A ledger of before there were revisions."""
    connection = sqlite3.connect(path)
    connection.executescript((HERE / "before_revisions.sql").read_text())
    connection.close()
    return path


@pytest.fixture
def engine(path: Path) -> Iterator[sa.Engine]:
    engine = sa.create_engine(url(path))
    yield engine
    engine.dispose()


def url(path: Path) -> str:
    return f"sqlite:///{path}"


def revisions(path: Path) -> list[tuple[str, ...]]:
    connection = sqlite3.connect(path)
    try:
        return connection.execute("SELECT * FROM alembic_version").fetchall()
    finally:
        connection.close()


def with_next(folder: Path, then: str = "pass") -> Path:
    """Our scripts and one more, which adds a column and goes on with `then`."""
    scripts = shutil.copytree(SCRIPTS, folder / "scripts", ignore=shutil.ignore_patterns("__pycache__"))
    (scripts / "versions" / "r9999_next.py").write_text(NEXT.format(head=HEAD, then=then))
    return scripts


def said_by(ledger: Ledger) -> dict[str, Any]:
    """Everything that can be read of it, as `before_revisions.json` has it."""
    tables = {table.name: ledger.read(sa.select(table)) for table in metadata.sorted_tables}
    return {
        "last_seq": ledger.last_seq("USAGE"),
        "results": ledger.results(),
        "usage": {
            tenant: msgspec.to_builtins(usage_report(ledger, tenant, "2026-09-01", "2026-10-01"))
            for tenant in ("acme", "rival")
        },
        "receipts": {
            call: [
                without(LATER["call_line"] | {"memory", "discount"}, line) | {"cost": str(line["cost"])}
                for line in receipts(ledger, "acme", call)
            ]
            for call in "abc"
        },
        "account": vars(device_account(ledger, "n1", "d0", 0, 16 * SECOND)),
        "rows": {
            name: sorted(list(without(LATER.get(name, set()), row).values()) for row in rows)
            for name, rows in tables.items()
        },
    }


def without(later: set[str], row: dict[str, Any]) -> dict[str, Any]:
    """A row as it was before there were these columns, in which it has nothing."""
    assert not any(row[name] for name in later)
    return {name: value for name, value in row.items() if name not in later}


def test_a_ledger_of_before_revisions_keeps_all_it_has(old: Path) -> None:
    """Every row is there, every report says the same, and it has a revision now."""
    ledger = Ledger(url(old), load_prices())

    said = json.loads(json.dumps(said_by(ledger)))

    assert said["rows"].pop("ledger_identity") == [[ledger.identity()]]
    ledger.close()
    expected = json.loads((HERE / "before_revisions.json").read_text())
    expected["results"]["quarantined"] = expected["results"].pop("misfits")
    expected["rows"]["fold_result"] = sorted(
        ["quarantined" if name == "misfits" else name, events] for name, events in expected["rows"]["fold_result"]
    )
    assert all(expected["rows"].values())
    days = expected["rows"]["usage_day"]
    expected["rows"]["usage_hour"] = [[*row[:9], "", "", "", "", 0, *row[9:]] for row in days]
    assert said == expected | {"rows": expected["rows"] | {name: [] for name in SINCE}}
    assert revisions(old) == [(HEAD,)]


def test_a_ledger_of_before_revisions_is_folded_into_as_before(old: Path) -> None:
    """What it has already is repeated, what follows is new."""
    ledger = Ledger(url(old), load_prices())
    known = busy(6, 6 * SECOND, ("c", 9 * SECOND, "failed"))

    folded = ledger.fold("USAGE", 43, delivered([known, busy(8, 16 * SECOND, ("c", SECOND, "ok"))]))

    assert (folded.new, folded.repeated) == (1, 1)
    assert sum(line["ns"] for line in receipts(ledger, "acme", "c")) == 10 * SECOND
    ledger.close()


def test_a_making_that_was_cut_off_is_finished(old: Path) -> None:
    """Tables of before revisions were made one by one; what is missing comes, what is there stays."""
    connection = sqlite3.connect(old)
    connection.executescript("DROP TABLE usage_day; DROP INDEX call_line_day")
    connection.close()

    ledger = Ledger(url(old), load_prices())

    assert usage_report(ledger, "acme", "2026-09-01", "2026-10-01").lines == ()
    assert len(receipts(ledger, "acme", "c")) == 2
    ledger.close()


@pytest.mark.parametrize("origin", ["new", "by_scripts", "before_revisions"])
def test_scripts_and_models_agree(origin: str, path: Path, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    """A new ledger, an empty database and an old one become what `ledger_tables.py` says; `HEAD` is the last script."""
    if origin == "before_revisions":
        request.getfixturevalue("old")
    engine = request.getfixturevalue("engine")
    upgrade(engine, scripts=shutil.copytree(SCRIPTS, tmp_path / "scripts") if origin == "by_scripts" else SCRIPTS)

    with engine.connect() as connection:
        context = MigrationContext.configure(connection, opts={"compare_type": True, "compare_server_default": True})
        assert compare_metadata(context, metadata) == []
        lines = connection.execute(sa.select(sa.text("*")).select_from(receipt_line)).keys()
    assert list(lines) == [column.name for column in receipt_line.columns]
    assert ScriptDirectory(str(SCRIPTS)).get_heads() == [HEAD]
    assert revisions(path) == [(HEAD,)]


@pytest.mark.parametrize("origin", ["new", "by_scripts"])
def test_postgresql_gets_the_same(origin: str, new_database: Callable[[], str], tmp_path: Path) -> None:
    """At once and by the scripts, in one transaction; a ledger is opened and folded into."""
    where = new_database()
    engine = sa.create_engine(sa.make_url(where).set(drivername="postgresql+psycopg"))
    upgrade(engine, scripts=shutil.copytree(SCRIPTS, tmp_path / "scripts") if origin == "by_scripts" else SCRIPTS)

    with engine.connect() as connection:
        context = MigrationContext.configure(connection, opts={"compare_type": True, "compare_server_default": True})
        assert compare_metadata(context, metadata) == []
    engine.dispose()
    ledger = Ledger(where, load_prices())
    assert ledger.fold("USAGE", 1, delivered([busy(1, 0, ("c", SECOND, "ok"))])).new == 1
    assert len(receipts(ledger, "acme", "c")) == 1
    ledger.close()


def test_a_new_ledger_is_what_the_scripts_make(tmp_path: Path) -> None:
    """Tables, their columns and keys, indexes and views; it has an identity of its own."""
    made = {}
    for name, scripts in (("at_once", SCRIPTS), ("by_scripts", shutil.copytree(SCRIPTS, tmp_path / "scripts"))):
        engine = sa.create_engine(url(tmp_path / name))
        upgrade(engine, scripts=scripts)
        inspector = sa.inspect(engine)
        made[name] = {
            table: (
                [(column["name"], str(column["type"]), column["nullable"], column["default"]) for column in columns],
                inspector.get_pk_constraint(table)["constrained_columns"],
                sorted(str(index["column_names"]) for index in inspector.get_indexes(table)),
            )
            for table in [*inspector.get_table_names(), *inspector.get_view_names()]
            for columns in [inspector.get_columns(table)]
        }
        with engine.connect() as connection:
            assert connection.scalar(sa.text("SELECT count(*) FROM ledger_identity WHERE length(id) = 20")) == 1
        engine.dispose()
    assert made["at_once"] == made["by_scripts"]


def test_a_next_revision_finds_the_rows_there(old: Path, engine: sa.Engine, tmp_path: Path) -> None:
    """From before revisions over the first to the next, in one go."""
    upgrade(engine, scripts=with_next(tmp_path), head="9999")

    with engine.connect() as connection:
        notes = connection.exec_driver_sql("SELECT id, note FROM lease_line ORDER BY id").all()
    assert notes == [(f"node-1.s0.{number}", "none") for number in range(1, 8)]
    assert revisions(old) == [("9999",)]


def test_a_revision_that_fails_leaves_nothing(old: Path, engine: sa.Engine, tmp_path: Path) -> None:
    """Neither its part nor that of the ones before it: the ledger is as it was, and the release before can open it."""
    scripts = with_next(tmp_path, then="raise RuntimeError('half way')")

    with pytest.raises(RuntimeError, match="half way"):
        upgrade(engine, scripts=scripts, head="9999")

    inspector = sa.inspect(engine)
    assert not inspector.has_table("alembic_version")
    assert [column["name"] for column in inspector.get_columns("lease_line")] == [
        column.name for column in lease_line.columns if column.name not in LATER["lease_line"]
    ]


def test_a_newer_ledger_is_refused(old: Path, engine: sa.Engine, tmp_path: Path) -> None:
    """By name and revision, with what to do, and nothing about it changes."""
    upgrade(engine, scripts=with_next(tmp_path), head="9999")

    with pytest.raises(LedgerRefused, match=rf"{old} has revision 9999, .* none after {HEAD}: .* Start that release"):
        Ledger(url(old), load_prices())

    assert revisions(old) == [("9999",)]


def test_the_wait_for_another_that_upgrades_is_bounded(path: Path, engine: sa.Engine) -> None:
    """Who holds the ledger too long is named as the reason."""
    holder = sqlite3.connect(path, isolation_level=None)
    holder.execute("BEGIN IMMEDIATE")

    with pytest.raises(LedgerRefused, match=r"must be upgraded, .* held it for 0\.05 s"):
        upgrade(engine, wait_s=0.05)

    holder.rollback()
    upgrade(engine, wait_s=0.05)
    holder.close()
    assert revisions(path) == [(HEAD,)]


def test_of_processes_that_open_a_new_ledger_at_once_one_upgrades_it(path: Path) -> None:
    """The others wait for it, have nothing to do and find a ledger that works."""
    opening = [
        subprocess.Popen(
            [sys.executable, "-c", AT_ONCE, url(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        for _ in range(3)
    ]
    for process in opening:
        assert process.stdout
        assert process.stdout.readline() == "ready\n"

    for process in opening:
        assert process.stdin
        process.stdin.write("\n")
        process.stdin.flush()
    said = sorted(process.communicate()[0] for process in opening)

    assert [process.returncode for process in opening] == [0, 0, 0]
    assert said == 3 * ["False\n"]
    assert revisions(path) == [(HEAD,)]


def test_opening_an_upgraded_ledger_does_not_import_alembic(path: Path) -> None:
    """That would make each start of a gateway 0.2 s longer."""
    Ledger(url(path), load_prices()).close()

    opened = subprocess.run(
        [sys.executable, "-c", AT_ONCE, url(path)], input="\n", stdout=subprocess.PIPE, text=True, check=True
    )

    assert opened.stdout == "ready\nFalse\n"
