"""What a blob store is called."""

from __future__ import annotations

from pilotlight_core.host.blobs import MemoryBlobs
from pilotlight_core.host.blobs.store_names import NO_ID, name_of_store


async def test_a_store_is_named_by_its_id() -> None:
    """One that cannot be reached now is not judged."""
    store = MemoryBlobs()
    assert await name_of_store(store) == NO_ID
    made = await name_of_store(store, create=True)
    assert await name_of_store(store) == made != NO_ID
    store.down = True
    assert await name_of_store(store) == ""
