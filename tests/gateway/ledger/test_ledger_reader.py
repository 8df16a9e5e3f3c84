"""A gateway's view of the ledger."""

from __future__ import annotations

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import sqlalchemy as sa

from pilotlight_core.model.errors import Unavailable
from pilotlight_core.model.price_book import load_prices
from pilotlight_gateway.ledger.ledger_reader import LedgerReader
from pilotlight_gateway.ledger.ledger_store import Ledger
from pilotlight_gateway.ledger.usage_queries import device_sums, usage_report, usage_sums
from pilotlight_gateway.ledger.usage_report import GROUPS
from tests.gateway.ledger.metering import SECOND, busy, delivered

PROGRAM = """
import sys
from pilotlight_core.model.price_book import load_prices
from pilotlight_gateway.ledger.ledger_reader import LedgerReader

reader = LedgerReader(sys.argv[1], load_prices())
print("sqlalchemy" in sys.modules)
print(reader.quarantine_counts(), "sqlalchemy" in sys.modules)
reader.close()
"""


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path / 'ledger.sqlite'}"


def test_the_first_question_opens_it(url: str) -> None:
    """Until then nothing of SQLAlchemy is loaded."""
    command = [sys.executable, "-c", PROGRAM, url]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.splitlines() == ["False", "[] True"]


def test_it_says_what_the_ledger_says(url: str) -> None:
    """To all threads that ask at once."""
    ledger, reader = Ledger(url, load_prices()), LedgerReader(url, load_prices())
    ledger.fold("USAGE", 1, delivered([busy(1, 0, ("a", SECOND, "ok"))]))

    with ThreadPoolExecutor(4) as threads:
        found = list(threads.map(lambda _: reader.usage("acme", "2026-01-01", "2027-01-01", GROUPS), range(4)))

    assert found == [usage_report(ledger, "acme", "2026-01-01", "2027-01-01")] * 4
    assert found[0].total.calls == 1
    assert reader.bound_containers(["none"]) == {}
    days = ("2026-09-22", "2026-09-23")
    assert reader.sums("acme", *days, ("state",)) == list(usage_sums(ledger, "acme", *days, ("state",)))
    assert reader.device_sums(*days) == device_sums(ledger, *days)
    assert (reader.late_lines("acme", *days), reader.open_from()) == ([], "")
    assert reader.identity() == ledger.identity()
    assert reader.quarantine(node=None, before=None, limit=1) == []
    reader.close()
    ledger.close()


def test_a_ledger_of_a_newer_release_is_not_read(url: str) -> None:
    """The caller hears why, and that it is not the question's fault."""
    Ledger(url, load_prices()).close()
    with sa.create_engine(url).begin() as connection:
        connection.execute(sa.text("UPDATE alembic_version SET version_num = '9999'"))
    reader = LedgerReader(url, load_prices())

    with pytest.raises(Unavailable, match="revision 9999"):
        reader.quarantine_counts()
    reader.close()


def test_a_database_that_does_not_answer_is_said(tmp_path: Path) -> None:
    """Not where it is; and nobody waits for it at the end."""
    reader = LedgerReader(f"sqlite:///{tmp_path}/none/ledger.sqlite", load_prices())
    with pytest.raises(Unavailable, match="its database does not answer"):
        reader.quarantine_counts()
    reader.close()
