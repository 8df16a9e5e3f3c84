"""A ledger in each database that it can be in."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from pilotlight_core.model.price_book import load_prices
from pilotlight_gateway.ledger.ledger_store import Ledger

DATABASES = ("sqlite", "postgresql")


@pytest.fixture(params=DATABASES)
def ledger_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Of an empty database."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'ledger.sqlite'}"
    new_database: Callable[[], str] = request.getfixturevalue("new_database")
    return new_database()


@pytest.fixture
def ledger(ledger_url: str) -> Iterator[Ledger]:
    """A new one."""
    ledger = Ledger(ledger_url, load_prices())
    yield ledger
    ledger.close()
