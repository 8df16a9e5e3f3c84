"""Which weights a node has, on its disk and in its memory."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from msgspec import structs

from pilotlight_core.model.spec import ArtifactEntry, ArtifactKind, ArtifactPart, FileEntry
from pilotlight_runtime.containers.files import node_weights
from pilotlight_runtime.containers.files.file_cache import FileCache
from pilotlight_runtime.containers.files.node_weights import NodeWeights
from pilotlight_runtime.containers.files.page_cache import MappedFile

SIZE = 8192


@dataclass
class Budget:
    """A `MemoryBudget` that tests script."""

    room: int = 10**9
    taken: dict[str, Callable[[], None]] = field(default_factory=dict)
    touched: list[str] = field(default_factory=list)

    def take(self, name: str, size: int, load_s: float, evict: Callable[[], None]) -> bool:
        assert load_s > 0
        if size > self.room:
            return False
        self.taken[name] = evict
        return True

    def touch(self, name: str) -> None:
        self.touched.append(name)

    def release(self, name: str) -> None:
        self.taken.pop(name, None)


@pytest.fixture
def cache(tmp_path: Path) -> FileCache:
    return FileCache(tmp_path / "cache")


def weights(cache: FileCache, digit: str, tenant: str = "acme") -> ArtifactEntry:
    """Weights of one file, which is in the cache."""
    path = cache.path(tenant, digit * 64)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(bytes(SIZE))
    cache.add(tenant, FileEntry("m", digit * 64, SIZE))
    part = ArtifactPart("m", digit * 64, SIZE)
    return ArtifactEntry(kind=ArtifactKind.WEIGHTS, name="m", parts=(part,), digest=digit * 64)


async def test_what_was_used_is_told_last_used_first(cache: FileCache) -> None:
    """Per tenant, with what of it is in memory; artifacts of an app's own are not told."""
    node = NodeWeights(cache)
    own = ArtifactEntry(kind=ArtifactKind.CONFIG, name="c", parts=(ArtifactPart("c", "c" * 64, 1),))
    await node.note_used("acme", [weights(cache, "1"), own])
    await node.note_used("rival", [weights(cache, "2", "rival")])
    await node.settle()

    told = [(one.tenant, one.digest[0], one.size, one.resident, one.locked) for one in node.reports()]
    assert told == [("rival", "2", SIZE, SIZE, False), ("acme", "1", SIZE, SIZE, False)]
    await node.note_used("acme", [weights(cache, "1")])
    assert [one.digest[0] for one in node.reports()] == ["1", "2"]
    cache.check_integrity()


async def test_the_next_agent_of_the_node_knows_them(cache: FileCache) -> None:
    """Without asking anybody: the cache has it; what cannot be read there is not known."""
    await NodeWeights(cache).note_used("acme", [weights(cache, "1"), weights(cache, "2")])
    cache.path("acme", f"weights-{'2' * 64}").write_bytes(b"{")

    again = NodeWeights(FileCache(cache.folder))
    await again.settle()

    assert [(one.digest[0], one.resident) for one in again.reports()] == [("1", SIZE)]


async def test_a_full_disk_fails_no_start(cache: FileCache, monkeypatch: pytest.MonkeyPatch) -> None:
    """This agent knows them even so; the next one will not."""
    entry = weights(cache, "1")

    def full(*_: object) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", full)
    node = NodeWeights(cache)
    await node.note_used("acme", [entry])
    assert len(node.reports()) == 1
    assert NodeWeights(FileCache(cache.folder)).reports() == ()


async def test_what_the_cache_has_dropped_is_told_no_more(cache: FileCache) -> None:
    """Nor held in memory."""
    budget = Budget()
    node, due = NodeWeights(cache, budget, changed=lambda: due.append(1)), list[int]()
    await node.note_used("acme", [weights(cache, "1")])
    await node.settle()
    assert list(budget.taken) == [f"acme:{'1' * 64}"]

    cache.drop("acme")
    due.clear()
    await node.settle()

    assert (node.reports(), budget.taken, due) == ((), {}, [1])


async def test_an_empty_file_is_as_good_as_locked(cache: FileCache, monkeypatch: pytest.MonkeyPatch) -> None:
    """There is nothing of it that the kernel could drop."""

    def lock(self: MappedFile) -> bool:  # as where the kernel allows it
        self.is_locked = bool(self.size)
        return True

    monkeypatch.setattr(MappedFile, "lock", lock)
    entry, empty = weights(cache, "1"), cache.path("acme", "e" * 64)
    empty.touch()
    cache.add("acme", FileEntry("e", "e" * 64, 0))
    node = NodeWeights(cache, Budget())
    part = ArtifactPart("n", "e" * 64, 0)
    await node.note_used("acme", [structs.replace(entry, parts=(*entry.parts, part))])
    await node.settle()

    assert [one.locked for one in node.reports()] == [True]
    node.close()


async def test_what_is_used_is_held_within_the_budget(cache: FileCache) -> None:
    """What has to go for something else is dropped; what is used again counts as needed."""
    budget = Budget()
    node = NodeWeights(cache, budget)
    await node.note_used("acme", [weights(cache, "1")])
    await node.settle()
    await node.note_used("acme", [weights(cache, "1")])
    assert budget.touched == [f"acme:{'1' * 64}"]

    budget.room = 0
    await node.note_used("acme", [weights(cache, "2")])
    await node.settle()
    assert list(budget.taken) == [f"acme:{'1' * 64}"]
    budget.taken[f"acme:{'1' * 64}"]()
    assert not any(one.locked for one in node.reports())
    assert budget.taken == {}


@pytest.mark.parametrize("why", ["evicted", "erased"])
async def test_what_must_go_while_it_is_read_is_not_held(
    cache: FileCache, monkeypatch: pytest.MonkeyPatch, why: str
) -> None:
    """Reading takes long; nothing would let go of it later."""
    budget, read = Budget(), list[MappedFile]()
    node = NodeWeights(cache, budget)

    def locked(paths: list[Path]) -> list[MappedFile]:
        read.extend(map(MappedFile, paths))
        if why == "evicted":
            budget.taken[f"acme:{'1' * 64}"]()
        else:
            node.forget("acme")
        return read

    monkeypatch.setattr(node_weights, "_locked", locked)
    await node.note_used("acme", [weights(cache, "1")])
    await node.settle()
    await node.settle()

    assert budget.taken == {}
    assert [one.resident() for one in read] == [0]  # unmapped


async def test_an_erased_tenants_are_let_go(cache: FileCache) -> None:
    """And those of others stay; at the agent's end all go."""
    budget = Budget()
    node = NodeWeights(cache, budget)
    await node.note_used("acme", [weights(cache, "1")])
    await node.note_used("rival", [weights(cache, "2", "rival")])
    await node.settle()

    node.forget("acme")
    assert [one.tenant for one in node.reports()] == ["rival"]
    node.close()
    assert budget.taken == {}


async def test_files_that_vanish_while_they_are_read_are_no_end(cache: FileCache) -> None:
    """They are not held; the next look finds them or not."""
    budget = Budget()
    node = NodeWeights(cache, budget)
    entry = weights(cache, "1")
    await node.note_used("acme", [entry])
    cache.path("acme", "1" * 64).unlink()
    await node.settle()
    assert budget.taken == {}
