"""A ledger in each database that it can be in."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import sqlalchemy as sa

from pilotlight_core.model.price_book import load_prices
from pilotlight_gateway.ledger.ledger_store import Ledger
from pilotlight_gateway.ledger.ledger_tables import metadata

DATABASES = ("sqlite", "postgresql")


@pytest.fixture(scope="session")
def shared_database(new_database: Callable[[], str]) -> Iterator[Callable[[], str]]:
    """Empties a ledger that all tests of PostgreSQL have in turn; returns its URL."""
    url = new_database()
    Ledger(url, load_prices()).close()
    # Without a pool: one of the tests ends all connections.
    engine = sa.create_engine(sa.make_url(url).set(drivername="postgresql+psycopg"), poolclass=sa.NullPool)
    tables = ", ".join(table.name for table in metadata.sorted_tables if table.name != "ledger_identity")

    def empty() -> str:
        with engine.begin() as connection:
            connection.exec_driver_sql(f"TRUNCATE {tables} RESTART IDENTITY")
        return url

    yield empty
    engine.dispose()


@pytest.fixture(params=DATABASES)
def ledger_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Of a database without usage."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'ledger.sqlite'}"
    shared_database: Callable[[], str] = request.getfixturevalue("shared_database")
    return shared_database()


@pytest.fixture
def ledger(ledger_url: str) -> Iterator[Ledger]:
    """A new one."""
    ledger = Ledger(ledger_url, load_prices())
    yield ledger
    ledger.close()
