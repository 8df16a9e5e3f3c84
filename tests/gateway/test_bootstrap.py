"""The first start makes the first key; later ones keep it."""

from __future__ import annotations

import stat
from pathlib import Path

import msgspec

from pilotlight_gateway.bootstrap import ClientFile, bootstrap, read_client_file, write_client_file
from pilotlight_gateway.keys import new_key, parse_key
from pilotlight_gateway.registry_port import MemoryRegistry

URL = "http://127.0.0.1:8470"


async def test_the_first_start_writes_an_admin_key_that_only_its_owner_reads(tmp_path: Path) -> None:
    """The file has mode 0600 and a key that opens the operator's record in the tenant `default`."""
    registry, path = MemoryRegistry(), tmp_path / "home" / "client.json"

    assert await bootstrap(registry, path, URL)

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
    await bootstrap(registry, path, URL)
    before = read_client_file(path)

    assert not await bootstrap(registry, path, "http://127.0.0.1:9000")

    after = read_client_file(path)
    assert before is not None
    assert after == ClientFile(url="http://127.0.0.1:9000", api_key=before.api_key)
    assert len(registry.key_records) == 1


async def test_a_file_whose_key_is_no_longer_good_is_replaced(tmp_path: Path) -> None:
    """Revoked, foreign, garbled and unreadable files get a new key."""
    registry, path = MemoryRegistry(), tmp_path / "client.json"
    await bootstrap(registry, path, URL)
    (record,) = registry.key_records.values()
    registry.key_records[record.id] = msgspec.structs.replace(record, revoked=True)
    assert await bootstrap(registry, path, URL)

    write_client_file(path, ClientFile(url=URL, api_key=str(new_key())))
    assert await bootstrap(registry, path, URL)

    path.write_text("{")
    assert await bootstrap(registry, path, URL)
