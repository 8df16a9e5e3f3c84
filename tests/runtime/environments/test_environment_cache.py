"""What is built stays whole, each tenant's own, and within bounds."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from pilotlight_runtime.environments.environment_cache import (
    BuiltEnvironment,
    EnvironmentCache,
    EnvironmentRecord,
    keep_built,
    link_environment,
)


def build(cache: EnvironmentCache, tenant: str, name: str, size: int = 10) -> BuiltEnvironment:
    """An environment with one module in a folder."""
    fresh = cache.fresh_folder(tenant, name)
    (fresh / "packages" / "tiny").mkdir()
    (fresh / "packages" / "tiny" / "__init__.py").write_bytes(b"x" * size)
    record = EnvironmentRecord(id=f"env_{tenant}_{name}", files=1, bytes=size)
    keep_built(fresh, cache.path(tenant, name), record)
    return cache.add(tenant, name, record)


def shrunk(cache: EnvironmentCache) -> list[str]:
    return [f"{path.parent.name}/{path.name.partition('.')[0]}" for path in cache.shrink()]


def test_what_is_built_is_found_by_the_next_agent(tmp_path: Path) -> None:
    """What was not finished is gone: under no name of its own, without a record, or with one that cannot be read."""
    cache = EnvironmentCache(tmp_path, 100)
    build(cache, "acme", "whole")
    cache.fresh_folder("acme", "half")
    (tmp_path / "acme" / "bare").mkdir()
    (tmp_path / "acme" / "torn").mkdir()
    (tmp_path / "acme" / "torn" / "record").write_text('{"id": "env')

    again = EnvironmentCache(tmp_path, 100)

    assert [path.name for path in (tmp_path / "acme").iterdir()] == ["whole"]
    found = again.find("acme", "whole")
    assert found is not None
    assert found.record == EnvironmentRecord(id="env_acme_whole", files=1, bytes=10)
    assert again.find("rival", "whole") is None
    assert again.ids() == ("env_acme_whole",)


@pytest.mark.parametrize("step", ["write", "flush", "rename"])
def test_a_kill_leaves_nothing_half(tmp_path: Path, step: str) -> None:
    """Wherever it comes: either nothing is there for the next agent, or all."""
    pid = os.fork()
    if not pid:  # it is killed at that step
        cache = EnvironmentCache(tmp_path, 100)
        fresh = cache.fresh_folder("acme", "env")
        (fresh / "packages" / "a.py").write_text("whole")
        if step == "write":
            os._exit(9)
        import pilotlight_runtime.environments.environment_cache as module

        if step == "flush":
            vars(module)["_flush_file_system"] = lambda _: os._exit(9)
        else:
            vars(module)["delete_folder"] = lambda _: os._exit(9)
        keep_built(fresh, cache.path("acme", "env"), EnvironmentRecord(id="env_1", files=1, bytes=5))
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 9

    assert EnvironmentCache(tmp_path, 100).find("acme", "env") is None
    assert list((tmp_path / "acme").iterdir()) == []


def test_a_container_gets_links_and_keeps_what_it_has(tmp_path: Path) -> None:
    """As long as they are there, nothing is deleted that would free nothing."""
    cache = EnvironmentCache(tmp_path / "environments", 0)
    built, container = build(cache, "acme", "used"), tmp_path / "container"
    (container / "packages").mkdir(parents=True)
    link_environment(built, container / "packages", container / "environment")

    linked = container / "packages" / "tiny" / "__init__.py"
    assert linked.samefile(built.packages / "tiny" / "__init__.py")
    assert shrunk(cache) == []
    (container / "environment").unlink()
    assert shrunk(cache) == ["acme/used"]
    assert linked.read_bytes() == b"x" * 10


def test_the_least_recently_used_of_who_has_most_goes(tmp_path: Path) -> None:
    """So that nobody drives out what others have less of; what is being linked stays."""
    cache = EnvironmentCache(tmp_path, 60)
    for tenant, name, size in (("acme", "a", 20), ("acme", "b", 20), ("acme", "c", 20), ("rival", "r", 30)):
        build(cache, tenant, name, size)
    cache.find("acme", "a")
    pinned = cache.find("acme", "b")
    assert pinned is not None
    release = cache.pin(pinned)

    assert shrunk(cache) == ["acme/c"]
    release()
    assert cache.bytes == 70
    assert shrunk(cache) == ["acme/a"]
    assert cache.ids() == ("env_acme_b", "env_rival_r")


def test_the_order_of_use_outlives_the_agent(tmp_path: Path) -> None:
    """It stands in the time of the record."""
    cache = EnvironmentCache(tmp_path, 100)
    for number, name in enumerate("ab"):
        os.utime(build(cache, "acme", name).folder / "record", (number, number))
    cache.find("acme", "a")

    assert shrunk(EnvironmentCache(tmp_path, 10)) == ["acme/b"]


def test_a_tenants_environments_are_forgotten_together(tmp_path: Path) -> None:
    """When it is erased."""
    cache = EnvironmentCache(tmp_path, 100)
    build(cache, "acme", "a")
    build(cache, "rival", "r")

    assert cache.tenants() == ["acme", "rival"]
    assert cache.drop("acme") == 1
    assert cache.tenants() == ["rival"]


def test_a_damaged_one_is_replaced(tmp_path: Path) -> None:
    """As when its record was lost while the agent was away, and it was not yet removed."""
    cache = EnvironmentCache(tmp_path, 100)
    (tmp_path / "acme" / "env" / "packages").mkdir(parents=True)

    assert (build(cache, "acme", "env").packages / "tiny").is_dir()


def test_what_goes_makes_way_at_once(tmp_path: Path) -> None:
    """Its name is free before its files are deleted, which may take long: another may be built meanwhile."""
    cache = EnvironmentCache(tmp_path, 0)
    build(cache, "acme", "env")
    (away,) = cache.shrink()

    assert away.is_dir()
    again = build(cache, "acme", "env")
    shutil.rmtree(away)
    assert (again.packages / "tiny").is_dir()
