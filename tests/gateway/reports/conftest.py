"""The seeded month, folded once."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from pilotlight_gateway.ledger.ledger_store import Ledger
from tests.gateway.reports.seeded_month import fold_month


@pytest.fixture(scope="session")
def month(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ledger]:
    """A ledger with November of three tenants."""
    ledger = fold_month(f"sqlite:///{tmp_path_factory.mktemp('month') / 'ledger.sqlite'}")
    yield ledger
    ledger.close()
