"""Values read from the blob store: once for all who ask at once, and kept as far as there is room."""

from __future__ import annotations

import asyncio

import pytest

from pilotlight_core.host.blobs import BlobsDown, CachedReads


class Store:
    """Counts reads, which wait until `go` is set; a digest that begins with "bad" cannot be read."""

    def __init__(self) -> None:
        self.reads: list[str] = []
        self.go = asyncio.Event()
        self.go.set()
        self.values = CachedReads(self._read, most=10, size=len)

    async def _read(self, tenant: str, sha256: str) -> str:
        self.reads.append(f"{tenant}/{sha256}")
        await self.go.wait()
        if sha256.startswith("bad"):
            raise BlobsDown("no")
        return sha256


async def test_those_who_ask_at_once_share_a_read() -> None:
    """Also if the first of them gives up; another tenant's blob is another blob."""
    store = Store()
    store.go.clear()
    async with asyncio.TaskGroup() as group:
        first = group.create_task(store.values.get("acme", "one"))
        others = [group.create_task(store.values.get("acme", "one")) for _ in range(3)]
        rival = group.create_task(store.values.get("rival", "one"))
        await asyncio.sleep(0)
        first.cancel()
        await asyncio.sleep(0)
        store.go.set()

    assert [other.result() for other in (*others, rival)] == ["one"] * 4
    assert store.reads == ["acme/one", "rival/one"]


async def test_the_latest_are_kept_as_far_as_there_is_room() -> None:
    """By their size; what is larger than all room is read each time."""
    store = Store()
    for name in ("fours", "five5", "fours", "six666", "fours", "a-very-large-one", "a-very-large-one"):
        assert await store.values.get("acme", name) == name

    assert [read.partition("/")[2] for read in store.reads] == [
        "fours", "five5", "six666", "fours", "a-very-large-one", "a-very-large-one",
    ]  # fmt: skip


async def test_a_failure_is_told_and_not_kept() -> None:
    """Whoever asks next reads again."""
    store = Store()
    for _ in range(2):
        with pytest.raises(BlobsDown):
            await store.values.get("acme", "bad")

    assert len(store.reads) == 2
