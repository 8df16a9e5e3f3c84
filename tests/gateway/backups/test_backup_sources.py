"""What is copied is the platform's, and all of it is there."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from pilotlight_core.bus import connect
from pilotlight_core.host.blobs.blob_port import STORE_ID
from pilotlight_core.host.foundations import Foundation, Foundations
from pilotlight_core.host.signing import PRIVATE, Signer
from pilotlight_core.model.price_book import load_prices
from pilotlight_core.model.subjects import PLATFORM_BUCKET
from pilotlight_gateway.backups.backup_manifest import BackupRefused
from pilotlight_gateway.backups.backup_sources import read_sources, refuse_sources, registered_foundations
from pilotlight_gateway.backups.stream_copies import streams_of
from pilotlight_gateway.ledger.ledger_store import Ledger
from pilotlight_supervisor.embedded_bus import embedded_nats


@pytest.fixture(params=["sqlite", "postgresql"])
def new_ledger_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Of a ledger that is not there yet."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'ledger.sqlite'}"
    make: Callable[[], str] = request.getfixturevalue("new_database")
    return make()


OURS = Foundation(manifest_key="k", blob_store="b", ledger="l")


async def test_parts_are_known_by_the_names_that_gateways_register(new_ledger_url: str, tmp_path: Path) -> None:
    """Whatever is not to be copied has none."""
    ledger, signer = Ledger(new_ledger_url, load_prices()), Signer.load_or_create(tmp_path / "keys")
    (tmp_path / "blobs").mkdir()
    (tmp_path / "blobs" / STORE_ID).write_text("b")

    found = await read_sources(new_ledger_url, tmp_path / "blobs", tmp_path / "keys")

    assert found == Foundation(ledger=ledger.identity(), blob_store="b", manifest_key=signer.key_id)
    assert await read_sources(new_ledger_url, None, None) == Foundation(ledger=ledger.identity())
    ledger.close()


async def test_what_is_not_there_is_named(new_ledger_url: str, tmp_path: Path) -> None:
    """With the option that was forgotten; what is no ledger, or no key, is none."""
    with pytest.raises(BackupRefused, match="ledger"):
        await read_sources(new_ledger_url, None, None)
    (tmp_path / "odd.sqlite").write_bytes(b"x" * 1_000)
    with pytest.raises(BackupRefused, match="not a database"):
        await read_sources(f"sqlite:///{tmp_path / 'odd.sqlite'}", None, None)
    Ledger(new_ledger_url, load_prices()).close()
    with pytest.raises(BackupRefused, match=r"no blob store at .*--blob-url"):
        await read_sources(new_ledger_url, tmp_path / "none", None)
    with pytest.raises(BackupRefused, match=r"no keys at .*--no-keys"):
        await read_sources(new_ledger_url, None, tmp_path / "none")
    assert not (tmp_path / "none").exists()
    (tmp_path / PRIVATE).write_text("k")
    with pytest.raises(BackupRefused, match="not a private key"):
        await read_sources(new_ledger_url, None, tmp_path)


async def test_each_region_has_registered_its_own(tmp_path: Path) -> None:
    """A bus without the bucket has none."""
    async with embedded_nats(tmp_path) as server, connect(server.url, name="x") as bus:
        assert await registered_foundations(bus, await streams_of(bus)) == []
        await Foundations(bus, region="here").register(OURS)
        await Foundations(bus, region="there").register(Foundation(ledger="l"))
        assert await registered_foundations(bus, await streams_of(bus)) == [OURS, Foundation(ledger="l")]
        assert await registered_foundations(bus, ["USAGE"]) == []
        await bus.kv(PLATFORM_BUCKET).put("keys.here", b"a set, of which each gateway has another key")
        assert (await registered_foundations(bus, await streams_of(bus)))[0] == Foundation(blob_store="b", ledger="l")


@pytest.mark.parametrize("name", ["ledger", "blob_store", "manifest_key"])
def test_another_platforms_part_is_named(name: str) -> None:
    """With how to name the right one; a platform of several regions has one of each in each."""
    other = Foundation(**{name: "another"})

    with pytest.raises(BackupRefused, match=r"here \(another\) is not that of the platform \(.\): name .* with --"):
        refuse_sources([OURS], other)
    refuse_sources([OURS, other], other)
    refuse_sources([], other)
    refuse_sources([OURS, Foundation()], OURS)
