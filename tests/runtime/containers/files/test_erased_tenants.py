"""What a node keeps of erased tenants goes."""

from __future__ import annotations

from pathlib import Path

import pytest

from pilotlight_core.bus import BusTimeout
from pilotlight_core.model.messages.agent_questions import MOST_ASKED, ErasedTenants, ErasedWanted
from pilotlight_core.model.messages.message import Message
from pilotlight_runtime.containers.files import erased_tenants
from pilotlight_runtime.containers.files.compile_cache import CompileCache
from pilotlight_runtime.containers.files.erased_tenants import ErasedFiles
from pilotlight_runtime.containers.files.file_cache import FileCache
from pilotlight_runtime.containers.files.node_weights import NodeWeights
from pilotlight_runtime.environments.environment_cache import EnvironmentCache, EnvironmentRecord, keep_built

DIGEST = "a" * 64


class Gateways:
    """Says what is set, or nothing."""

    def __init__(self, *erased: str, down: bool = False) -> None:
        self.erased, self.down = erased, down
        self.asked: list[tuple[str, Message]] = []

    async def request(self, subject: str, message: Message, timeout: float) -> object:
        self.asked.append((subject, message))
        if self.down:
            raise BusTimeout("late")
        return ErasedTenants(tenants=self.erased)


def cache_of(folder: Path, *tenants: str) -> FileCache:
    for tenant in tenants:
        (folder / tenant).mkdir(parents=True)
        (folder / tenant / DIGEST).write_bytes(b"content")
    return FileCache(folder)


def names_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def erased_files(gateways: Gateways, cache: FileCache) -> ErasedFiles:
    environments = EnvironmentCache(cache.folder.with_name("environments"), 0)
    return ErasedFiles(gateways, (cache, environments), NodeWeights(cache), region="eu", node="n1")


async def test_files_of_an_erased_tenant_are_deleted(tmp_path: Path, anyio_backend: str) -> None:
    """And those of others stay, whatever a gateway says of whom it was not asked about."""
    cache = cache_of(tmp_path, "acme", "rival")
    (tmp_path / "other").mkdir()
    gateways = Gateways("acme", "other", "../rival")

    assert await erased_files(gateways, cache).delete_erased() == 1
    assert names_in(tmp_path) == ["other", "rival"]
    assert cache.tenants() == ["rival"]
    cache.check_integrity()
    assert gateways.asked == [("pl.eu.node.n1.erased", ErasedWanted(tenants=("acme", "rival")))]


async def test_what_an_erased_tenants_containers_have_compiled_goes_too(tmp_path: Path, anyio_backend: str) -> None:
    """Also of one that has nothing else here."""
    (compiled := tmp_path / "compiled").mkdir()
    for tenant in ("acme", "late", "rival"):
        (compiled / tenant / "ver_1").mkdir(parents=True)
    caches = cache_of(tmp_path / "files", "acme", "rival"), CompileCache(compiled, 1_000)
    gateways = Gateways("acme", "late")
    erased = ErasedFiles(gateways, caches, NodeWeights(caches[0]), region="eu", node="n1")

    assert await erased.delete_erased() == 3
    assert (names_in(tmp_path / "files"), names_in(compiled)) == (["rival"], ["rival"])
    assert gateways.asked[0][1] == ErasedWanted(tenants=("acme", "late", "rival"))


async def test_what_cannot_be_deleted_yet_is_asked_about_again(
    tmp_path: Path, anyio_backend: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And those of others go meanwhile."""
    cache = cache_of(tmp_path, "acme", "late")
    gateways = Gateways("acme", "late")
    delete = erased_tenants._delete

    def busy(folder: Path) -> None:
        if folder.name == "acme":
            raise OSError(39, "Directory not empty")
        delete(folder)

    monkeypatch.setattr(erased_tenants, "_delete", busy)
    assert await erased_files(gateways, cache).delete_erased() == 1
    assert cache.tenants() == names_in(tmp_path) == ["acme"]
    monkeypatch.undo()
    assert await erased_files(gateways, cache).delete_erased() == 1
    assert names_in(tmp_path) == []


async def test_a_node_that_hears_nothing_asks_again(tmp_path: Path, anyio_backend: str) -> None:
    """And deletes nothing; one that keeps nothing asks nobody."""
    cache = cache_of(tmp_path, "acme")
    gateways = Gateways("acme", down=True)
    assert await erased_files(gateways, cache).delete_erased() == 0
    assert cache.tenants() == ["acme"]
    gateways.down = False
    assert await erased_files(gateways, cache).delete_erased() == 1
    assert await erased_files(gateways, cache).delete_erased() == 0
    assert len(gateways.asked) == 2


async def test_questions_are_bounded(tmp_path: Path, anyio_backend: str) -> None:
    """Of many tenants, some at a time."""
    names = [f"t{number:04}" for number in range(MOST_ASKED + 1)]
    gateways = Gateways(names[-1])
    assert await erased_files(gateways, cache_of(tmp_path, *names)).delete_erased() == 1
    assert [len(asked.tenants) for _, asked in gateways.asked if isinstance(asked, ErasedWanted)] == [MOST_ASKED, 1]


async def test_what_was_built_for_an_erased_tenant_goes_too(tmp_path: Path, anyio_backend: str) -> None:
    """Also where nothing else is kept of it."""
    environments = EnvironmentCache(tmp_path / "environments", 100)
    for tenant in ("acme", "rival"):
        fresh = environments.fresh_folder(tenant, "env")
        record = EnvironmentRecord(id=f"env_{tenant}", files=0, bytes=0)
        keep_built(fresh, environments.path(tenant, "env"), record)
        environments.add(tenant, "env", record)
    cache = FileCache(tmp_path / "cache")

    weights = NodeWeights(cache)
    await ErasedFiles(Gateways("acme"), (cache, environments), weights, region="eu", node="n1").delete_erased()

    assert names_in(tmp_path / "environments") == ["rival"]
    assert environments.ids() == ("env_rival",)
