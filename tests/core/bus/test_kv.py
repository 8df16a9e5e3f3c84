"""Keys and values: compare-and-set, deletion, expiry, listing."""

from __future__ import annotations

import asyncio

import pytest

from pilotlight_core.bus import Bus, KeyExists, KvEntry, WrongRevision
from pilotlight_core.bus.streams import DEFAULT_LIMITS, stream_configs
from pilotlight_core.model.ids import token
from pilotlight_core.model.subjects import BLOB_KEY_BUCKET, LEASE_BUCKET, REGISTRY_BUCKET


async def test_what_was_put_is_there(bus: Bus, other: Bus) -> None:
    """A confirmed write is seen by the next read of anybody."""
    key = f"x.{token()}"

    revision = await bus.kv(REGISTRY_BUCKET).put(key, b"one")

    assert await other.kv(REGISTRY_BUCKET).get(key) == KvEntry(b"one", revision)
    assert await other.kv(REGISTRY_BUCKET).get(f"{key}.none") is None


async def test_create_succeeds_once(bus: Bus, other: Bus) -> None:
    """Of two that create a key one gets KeyExists."""
    key = f"x.{token()}"

    results = await asyncio.gather(
        bus.kv(REGISTRY_BUCKET).create(key, b"a"), other.kv(REGISTRY_BUCKET).create(key, b"b"), return_exceptions=True
    )

    assert [type(result) for result in results if isinstance(result, Exception)] == [KeyExists]


async def test_update_needs_the_revision_that_is_there(bus: Bus) -> None:
    """An update with an old revision is refused and changes nothing."""
    kv, key = bus.kv(REGISTRY_BUCKET), f"x.{token()}"
    first = await kv.create(key, b"1")
    second = await kv.update(key, b"2", first)

    with pytest.raises(WrongRevision):
        await kv.update(key, b"3", first)

    assert await kv.get(key) == KvEntry(b"2", second)


async def test_a_deleted_key_can_be_created_again(bus: Bus) -> None:
    """Deleting leaves a marker, which neither reads as a value nor stands in the way."""
    kv, key = bus.kv(REGISTRY_BUCKET), f"x.{token()}"
    first = await kv.create(key, b"1")
    await kv.delete(key, first)

    assert await kv.get(key) is None
    assert await kv.create(key, b"2") > first


async def test_delete_with_an_old_revision_is_refused(bus: Bus) -> None:
    """Who deletes by revision deletes only what it has seen."""
    kv, key = bus.kv(REGISTRY_BUCKET), f"x.{token()}"
    first = await kv.create(key, b"1")
    await kv.update(key, b"2", first)

    with pytest.raises(WrongRevision):
        await kv.delete(key, first)


async def test_an_expired_key_reads_as_none_and_can_be_created(bus: Bus) -> None:
    """The server's marker of an expired key is not taken for a value."""
    kv, key = bus.kv(LEASE_BUCKET), f"x.{token()}"
    await kv.create(key, b"1", ttl=1.0)

    async with asyncio.timeout(30), bus.mirror(LEASE_BUCKET, "x.") as mirror:
        gone = asyncio.Event()
        mirror.on_change.append(lambda changed, entry: gone.set() if changed == key and entry is None else None)
        if mirror.get(key) is not None:
            await gone.wait()

    assert await kv.get(key) is None
    assert await kv.create(key, b"2") > 0


async def test_keys_are_listed_by_prefix(bus: Bus) -> None:
    """Listing sees whole tokens, more than one page of them, and no deleted keys."""
    kv, base = bus.kv(REGISTRY_BUCKET), token()
    for number in range(300):
        await kv.put(f"{base}.a.{number}", b"v")
    await kv.put(f"{base}.b.0", b"v")
    await kv.delete(f"{base}.a.7")

    assert await kv.keys(f"{base}.a.") == [f"{base}.a.{number}" for number in range(300) if number != 7]
    assert len(await kv.entries(f"{base}.")) == 300


async def test_entries_are_read_a_page_at_a_time_by_a_pattern(bus: Bus) -> None:
    """Those that are there; what was deleted is not."""
    kv, name = bus.kv(REGISTRY_BUCKET), token()
    for key in ("a.one", "b.one", "b.two"):
        await kv.put(f"{name}.{key}", key.encode())
    await kv.delete(f"{name}.b.two")

    assert [key async for key in kv.each_key(f"{name}.*.one")] == [f"{name}.a.one", f"{name}.b.one"]
    assert {entry.value async for _, entry in kv.each(f"{name}.>")} == {b"a.one", b"b.one"}


async def test_an_erased_key_leaves_nothing(bus: Bus) -> None:
    """Not even a marker, where the bucket lets messages be deleted."""
    kv, key = bus.kv(BLOB_KEY_BUCKET), f"key.{token()}"
    await kv.put(key, b"1")

    assert await kv.erase(key)
    assert not await kv.erase(key)
    assert await kv.read(key) is None


@pytest.mark.parametrize("is_first", [False, True], ids=["between others", "first"])
async def test_what_is_written_while_a_key_is_erased_is_erased_too(
    bus: Bus, monkeypatch: pytest.MonkeyPatch, is_first: bool
) -> None:
    """Since it has another sequence number than what was read, of which the server says in two ways that it is gone."""
    name, key = f"T{token()}", "key.acme"
    config = next(one for one in stream_configs(DEFAULT_LIMITS) if one["name"] == "KV_BLOB_KEYS")
    own = {"name": f"KV_{name}", "subjects": [f"$KV.{name}.>"], "max_bytes": 2**20}
    await bus.jetstream.ensure_stream(config | own)
    kv = bus.kv(name)
    if not is_first:
        await kv.put("key.other", b"0")
    await kv.put(key, b"1")
    delete, written = bus.jetstream.delete_overwritten, [b"2", b"3"]

    async def write_first(stream: str, seq: int) -> None:
        if written:
            await kv.put(key, written.pop())
        await delete(stream, seq)

    monkeypatch.setattr(bus.jetstream, "delete_overwritten", write_first)
    assert await kv.erase(key)
    assert await kv.read(key) is None


async def test_where_no_message_may_be_deleted_an_erased_key_is_deleted(bus: Bus) -> None:
    """A bucket that was made so stays so: the server lets nobody change that, and its configuration counts else."""
    name = f"T{token()}"
    config = next(one for one in stream_configs(DEFAULT_LIMITS) if one["name"] == "KV_BLOB_KEYS")
    own = config | {"name": f"KV_{name}", "subjects": [f"$KV.{name}.>"], "max_bytes": 2**20}
    await bus.jetstream.ensure_stream(own | {"deny_delete": True})
    await bus.jetstream.ensure_stream(own | {"max_bytes": 2**21})
    info = await bus.jetstream.api(f"STREAM.INFO.KV_{name}", {})
    kv = bus.kv(name)
    await kv.put("key.acme", b"1")

    assert info.config is not None
    assert (info.config["max_bytes"], info.config["deny_delete"]) == (2**21, True)
    assert await kv.erase("key.acme")
    assert not await kv.erase("key.acme")
    assert await kv.get("key.acme") is None
