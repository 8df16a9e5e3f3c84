"""The name of a ledger that needs no upgrade, read in a moment."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import sqlalchemy as sa

from pilotlight_core.model.price_book import load_prices
from pilotlight_gateway.ledger.ledger_head import identity_at_head
from pilotlight_gateway.ledger.ledger_store import Ledger


@pytest.fixture
def url(tmp_path: Path) -> str:
    """In a folder whose name means something else in a URI."""
    (folder := tmp_path / "a b#d").mkdir()
    return f"sqlite:///{folder / 'ledger.sqlite'}"


def test_a_ledger_of_this_revision_says_its_name(url: str) -> None:
    """The one that it says when it is opened; also while another process writes."""
    ledger = Ledger(url, load_prices())
    name = ledger.identity()
    with sa.create_engine(url).connect() as writer:
        writer.exec_driver_sql("BEGIN IMMEDIATE")
        assert identity_at_head(url) == name
    ledger.close()
    assert identity_at_head(url) == name


@pytest.mark.parametrize(
    "change",
    ["UPDATE alembic_version SET version_num = '0012'", "DROP TABLE alembic_version", "DELETE FROM ledger_identity"],
)
def test_what_is_to_be_upgraded_or_refused_is_left_to_whoever_opens_it(url: str, change: str) -> None:
    """Another revision, or none."""
    Ledger(url, load_prices()).close()
    with sa.create_engine(url).begin() as connection:
        connection.execute(sa.text(change))

    assert identity_at_head(url) is None


def test_nothing_is_made(url: str, tmp_path: Path) -> None:
    """Where there is no ledger, no folder, another database or none that is understood."""
    assert identity_at_head(url) is None
    assert identity_at_head("sqlite:////no/folder/ledger.sqlite") is None
    assert identity_at_head("postgresql://localhost/ledger") is None
    assert identity_at_head("sqlite://") is None
    assert identity_at_head(f"{url}?timeout=5") is None
    (other := tmp_path / "other").write_text("no database, but as long as the head of one is: " + 100 * "x")
    assert identity_at_head(f"sqlite:///{other}") is None
    assert [path.name for path in tmp_path.rglob("*")] == ["a b#d", "other"]


def test_a_gateway_that_starts_loads_no_sqlalchemy(url: str, tmp_path: Path) -> None:
    """Where its ledger is as it should be: that is most of a second of a core."""
    Ledger(url, load_prices()).close()
    program = (
        "import sys; from pilotlight_gateway.own_foundation import FoundationAsk, read\n"
        f"found = read(FoundationAsk(database_url={url!r}, keys_dir={str(tmp_path / 'keys')!r}, may_create_key=True))\n"
        "assert found.ledger and found.manifest_key, found\n"
        "assert 'sqlalchemy' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)
