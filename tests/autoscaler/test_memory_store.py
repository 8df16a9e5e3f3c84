"""What a leader remembers outlives it: over a real bus."""

from __future__ import annotations

import pytest

from pilotlight_autoscaler import memory_store
from pilotlight_autoscaler.memory_store import MemoryStore
from pilotlight_autoscaler.observations.scaling_memories import ScalingMemories
from pilotlight_autoscaler.policy.prediction.function_memory import MINUTE_S, FunctionMemory
from pilotlight_autoscaler.policy.prediction.shadow_pool import NOTHING
from pilotlight_core.bus import Bus, BusError, connect
from pilotlight_core.model.ids import token
from pilotlight_core.model.subjects import SCALING_BUCKET


def remembered(needed: int) -> FunctionMemory:
    memory = FunctionMemory(60.0, 0.0)
    memory.on_load(22.0)
    for minute in range(90):
        memory.observe(0 if minute % 3 else needed, minute * MINUTE_S)
    memory.advance(90 * MINUTE_S)  # it is called in each third
    return memory


def store_of(bus: Bus, region: str, *erased: str) -> MemoryStore:
    return MemoryStore(bus, region=region, is_erased=lambda tenant: tenant in erased)


async def test_what_is_written_is_read_by_the_next_one(server_url: str) -> None:
    """By region; what is stored anew takes the place of the old."""
    region = f"r{token(6)}"
    async with connect(server_url, name="memories") as bus:
        store = store_of(bus, region)
        for needed in (2, 5):
            records = {"acme:shop.a": remembered(needed).record(), "zoo:shop.b": remembered(1).record()}
            assert await store.write(records) == set()

        found = await store.read(90 * MINUTE_S)
        assert found.keys() == {"acme:shop.a", "zoo:shop.b"}
        assert found["acme:shop.a"].method == remembered(5).method != NOTHING
        assert found["acme:shop.a"].ahead() == remembered(5).ahead() > remembered(2).ahead()
        assert await store_of(bus, f"{region}x").read(0.0) == {}


async def test_what_is_known_is_not_taken_over_again(server_url: str) -> None:
    """By whoever leads again after a while; of a function of which others have seen more since, it is."""
    region = f"r{token(6)}"
    known = ScalingMemories()
    known.restore({"acme:shop.a": remembered(2)})
    async with connect(server_url, name="memories") as bus:
        await store_of(bus, region).write({name: remembered(5).record() for name in ("acme:shop.a", "acme:shop.b")})
        assert (await store_of(bus, region).read(0.0, known.knows)).keys() == {"acme:shop.b"}

        further = remembered(5)
        further.advance(120 * MINUTE_S)
        await store_of(bus, region).write({"acme:shop.a": further.record()})
        found = await store_of(bus, region).read(0.0, known.knows)
    assert found.keys() == {"acme:shop.a", "acme:shop.b"}
    known.restore(found)
    assert known.knows("acme:shop.a", further.age_minutes)
    assert not known.knows("acme:shop.a", further.age_minutes + 1)


async def test_what_cannot_be_read_is_passed_over(server_url: str) -> None:
    """The function is learnt anew."""
    region = f"r{token(6)}"
    async with connect(server_url, name="memories") as bus:
        await bus.kv(SCALING_BUCKET).put(f"{region}.acme.shop.a", b"\x93")
        await store_of(bus, region).write({"acme:shop.b": remembered(1).record()})

        assert (await store_of(bus, region).read(0.0)).keys() == {"acme:shop.b"}


async def test_what_cannot_all_be_read_is_not_taken_for_all(server_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The rest would be learnt anew, and written over what is stored."""
    monkeypatch.setattr(memory_store, "READ_S", 0.1)
    async with connect(server_url, name="memories") as bus:
        store = store_of(bus, f"r{token(6)}")
    with pytest.raises((BusError, TimeoutError)):
        await store.read(0.0)


async def test_what_cannot_be_stored_now_is_said(server_url: str) -> None:
    """So that it is tried again."""
    async with connect(server_url, name="memories") as bus:
        store = store_of(bus, f"r{token(6)}")
    assert isinstance(bus, Bus)
    assert await store.write({"acme:shop.a": remembered(1).record()}) == {"acme:shop.a"}


async def test_nothing_is_stored_of_an_erased_tenant(server_url: str) -> None:
    """And it is not tried again."""
    async with connect(server_url, name="memories") as bus:
        store = store_of(bus, f"r{token(6)}", "gone")
        record = remembered(1).record()
        assert await store.write({"gone:shop.a": record, "acme:shop.a": record}) == set()
        assert (await store.read(0.0)).keys() == {"acme:shop.a"}
