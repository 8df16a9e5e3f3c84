"""The key and the ledger of a gateway, read by another process."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
import sqlalchemy as sa

from pilotlight_core.host.key_sets import sign_keys
from pilotlight_core.host.signing import PRIVATE, NoKey, Signer, Verifier
from pilotlight_core.model.price_book import load_prices
from pilotlight_gateway import own_foundation as module
from pilotlight_gateway.ledger.ledger_errors import LedgerRefused
from pilotlight_gateway.ledger.ledger_store import Ledger
from pilotlight_gateway.own_foundation import FoundationAsk, OwnFoundation, own_foundation, read


def ask(folder: Path, *, may_create: bool = True) -> FoundationAsk:
    url = f"sqlite:///{folder / 'ledger.sqlite'}"
    return FoundationAsk(database_url=url, keys_dir=str(folder / "keys"), may_create_key=may_create)


async def test_key_and_ledger_are_made_and_stay(tmp_path: Path) -> None:
    """The process names what it finds, and what it has made."""
    made = await own_foundation(ask(tmp_path))

    ledger = Ledger(ask(tmp_path).database_url, load_prices())
    assert made.ledger == ledger.identity()
    ledger.close()
    assert made.manifest_key == Verifier.load(tmp_path / "keys").key_id
    assert read(ask(tmp_path, may_create=False)) == made


async def test_a_key_is_not_made_where_the_platform_has_one(tmp_path: Path) -> None:
    """Nor is a damaged one replaced."""
    with pytest.raises(NoKey, match="no key to sign"):
        await own_foundation(ask(tmp_path, may_create=False))

    (tmp_path / "keys" / PRIVATE).write_text("nonsense")
    assert "not a private key" in read(ask(tmp_path)).no_key


async def test_a_key_counts_only_if_the_operators_set_has_it(tmp_path: Path) -> None:
    """It is made, so that it can be vouched for; a set that was changed counts for nothing."""
    operator, other = Signer.load_or_create(tmp_path / "operator"), Signer.load_or_create(tmp_path / "other")
    without = msgspec.structs.replace(ask(tmp_path), key_set=sign_keys(operator, [other.public], 1))
    with pytest.raises(NoKey, match=r"Nobody vouches for this gateway's key .* that has .*manifest_ed25519\.pub too"):
        await own_foundation(without)

    own = Signer.load_or_create(tmp_path / "keys", create=False)
    both = sign_keys(operator, [other.public, own.public], 2)
    assert (await own_foundation(msgspec.structs.replace(without, key_set=both))).manifest_key == own.key_id
    changed = msgspec.structs.replace(both, signature=bytes(64))
    assert "is not signed by" in read(msgspec.structs.replace(without, key_set=changed)).no_key


async def test_a_refused_ledger_is_an_error_with_its_reason(tmp_path: Path) -> None:
    """Of a newer release, or one that cannot be reached."""
    Ledger(ask(tmp_path).database_url, load_prices()).close()
    with sa.create_engine(ask(tmp_path).database_url).begin() as connection:
        connection.execute(sa.text("UPDATE alembic_version SET version_num = '9999'"))
    with pytest.raises(LedgerRefused, match="revision 9999"):
        await own_foundation(ask(tmp_path))

    away = FoundationAsk(database_url=f"sqlite:///{tmp_path}/no/folder.sqlite", keys_dir="", may_create_key=True)
    assert read(away) == OwnFoundation(refused=read(away).refused)
    assert "cannot be opened: " in read(away).refused


async def test_a_reader_that_dies_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What it has said before is above in the log."""
    monkeypatch.setattr(module, "COMMAND", ("sh", "-c", "cat > /dev/null; exit 3"))
    with pytest.raises(LedgerRefused, match="ended with 3"):
        await own_foundation(ask(tmp_path))


async def test_a_reader_that_says_nothing_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """After so long that an upgrade of a large ledger would be over."""
    monkeypatch.setattr(module, "COMMAND", ("sleep", "600"))
    monkeypatch.setattr(module, "LONGEST_S", 0.2)
    with pytest.raises(LedgerRefused, match="has not answered"):
        await own_foundation(ask(tmp_path))
