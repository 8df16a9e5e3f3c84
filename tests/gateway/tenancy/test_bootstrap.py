"""The first start makes the first key; later ones keep it."""

from __future__ import annotations

import stat
from pathlib import Path

import msgspec

from pilotlight_gateway.tenancy.api_keys import new_key, parse_key
from pilotlight_gateway.tenancy.bootstrap import ClientFile, bootstrap, read_client_file
from pilotlight_gateway.tenancy.registry_port import MemoryRegistry

URL = "http://127.0.0.1:8470"


async def test_the_first_start_writes_an_admin_key_that_only_its_owner_reads(tmp_path: Path) -> None:
    """The file has mode 0600 and a key that opens the operator's record in the tenant `default`."""
    registry, path = MemoryRegistry(), tmp_path / "home" / "client.json"

    assert await bootstrap(registry, path, URL, tmp_path / "state" / "client.json")

    content = read_client_file(path)
    assert content is not None
    key = parse_key(content.api_key)
    assert key is not None
    record = registry.key_records[key.id]
    assert (content.url, record.tenant, record.scopes) == (URL, "default", ("admin", "operator"))
    assert key.opens(record)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert [name.name for name in path.parent.iterdir()] == ["client.json"]


async def test_a_good_file_is_kept_and_follows_the_address(tmp_path: Path) -> None:
    """A second start makes no second key, but tells the present address."""
    registry, path = MemoryRegistry(), tmp_path / "client.json"
    await bootstrap(registry, path, URL, tmp_path / "state" / "client.json")
    before = read_client_file(path)

    assert not await bootstrap(registry, path, "http://127.0.0.1:9000", tmp_path / "state" / "client.json")

    after = read_client_file(path)
    assert before is not None
    assert after == ClientFile(url="http://127.0.0.1:9000", api_key=before.api_key)
    assert len(registry.key_records) == 1


async def test_a_file_whose_key_is_no_longer_good_is_replaced(tmp_path: Path) -> None:
    """Foreign and garbled ones by the copy, which holds for nothing else either: what is revoked gets a new key."""
    registry, path = MemoryRegistry(), tmp_path / "client.json"
    await bootstrap(registry, path, URL, tmp_path / "state" / "client.json")
    (record,) = registry.key_records.values()
    registry.key_records[record.id] = msgspec.structs.replace(record, revoked=True)
    assert await bootstrap(registry, path, URL, tmp_path / "state" / "client.json")

    good = read_client_file(path)
    for broken in (msgspec.json.encode(ClientFile(url=URL, api_key=str(new_key()))), b"{"):
        path.write_bytes(broken)
        assert not await bootstrap(registry, path, URL, tmp_path / "state" / "client.json")
        assert read_client_file(path) == good

    path.write_text("{")
    (tmp_path / "state" / "client.json").unlink()
    assert await bootstrap(registry, path, URL, tmp_path / "state" / "client.json")
    assert len(registry.key_records) == 3


async def test_two_platforms_that_share_a_client_file_keep_their_keys(tmp_path: Path) -> None:
    """Whoever starts last is named there; each has its own copy, and makes no other key when it starts again."""
    path, url = tmp_path / "home" / "client.json", "http://127.0.0.1:9000"
    one, other = MemoryRegistry(), MemoryRegistry()
    await bootstrap(one, path, URL, tmp_path / "one" / "client.json")
    before = read_client_file(path)

    await bootstrap(other, path, url, tmp_path / "other" / "client.json")
    assert read_client_file(path) == read_client_file(tmp_path / "other" / "client.json") != before
    assert read_client_file(tmp_path / "one" / "client.json") == before

    assert not await bootstrap(one, path, URL, tmp_path / "one" / "client.json")
    assert read_client_file(path) == before


async def test_a_gateway_that_keeps_nothing_makes_no_second_key(tmp_path: Path) -> None:
    """One that is told so, and starts in an empty folder: whoever has the first key has it, also when it is revoked."""
    registry = MemoryRegistry()
    first, later = (tmp_path / name / "client.json" for name in ("first", "later"))
    assert await bootstrap(registry, first, URL, first, once=True)
    assert not await bootstrap(registry, first, URL, first, once=True)
    (record,) = registry.key_records.values()
    registry.key_records[record.id] = msgspec.structs.replace(record, revoked=True)

    assert not await bootstrap(registry, later, URL, later, once=True)

    assert not later.exists()
    assert len(registry.key_records) == 1
