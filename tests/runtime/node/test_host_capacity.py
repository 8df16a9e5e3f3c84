"""What a node has to promise."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pilotlight_core.host.config import AgentSettings
from pilotlight_core.model.errors import BadInput
from pilotlight_runtime.devices.cpu_slots import memory_bytes, usable_cores
from pilotlight_runtime.environments.build_sandbox import builders_memory
from pilotlight_runtime.node import host_capacity as module
from pilotlight_runtime.node.host_capacity import (
    builders_at_once,
    builders_reserve,
    default_reserve,
    gpu_blanks,
    host_capacity,
    split_warm,
    usable_host,
)

GIB = 2**30
MOUNTS = "30 1 0:27 / {folder} rw,nosuid - cgroup2 cgroup rw,nsdelegate\n"


@pytest.fixture
def host(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A machine of 8 cores and 24 GiB whose agent is in the group a/b; its folder."""
    monkeypatch.setattr(module, "memory_bytes", lambda: 24 * GIB)
    monkeypatch.setattr(module, "usable_cores", lambda: 8)
    folder = tmp_path / "cgroup"
    (folder / "a" / "b").mkdir(parents=True)
    process = tmp_path / "proc"
    process.mkdir()
    (process / "mountinfo").write_text(MOUNTS.format(folder=folder))
    (process / "cgroup").write_text("0::/a/b\n")
    return tmp_path


def test_containers_get_what_the_platform_does_not_keep(host: Path) -> None:
    """By default 1 GiB and a twentieth; nothing of the cores, which are taken in turns."""
    found = host_capacity(AgentSettings(), host / "proc")

    assert found.memory == 24 * GIB - (GIB + 24 * GIB // 20)
    assert found.cpu_millis == 8000
    assert default_reserve(2 * GIB) == GIB // 2
    assert default_reserve(1000 * GIB) == 51 * GIB


def test_the_reserve_is_a_setting(host: Path) -> None:
    """In MiB, and in cores."""
    found = host_capacity(AgentSettings(reserve_memory=4096, reserve_cpu=0.5), host / "proc")

    assert (found.memory, found.cpu_millis) == (20 * GIB, 7500)


def test_builders_of_requirements_have_a_part_of_the_reserve(host: Path) -> None:
    """Where there is an index and the operator says nothing else: what all may use, an eighth of a small machine."""
    index = "https://index/simple/"
    plain = host_capacity(AgentSettings(), host / "proc").memory
    assert host_capacity(AgentSettings(package_index=index), host / "proc").memory == plain - 3 * GIB
    named = AgentSettings(package_index=index, reserve_memory=4096)
    assert host_capacity(named, host / "proc").memory == 20 * GIB
    assert gpu_blanks(AgentSettings(package_index=index), host / "proc") == 5
    assert builders_reserve(AgentSettings(package_index=index), 1000 * GIB) == builders_memory(2 * GIB) == 12 * GIB
    shared = AgentSettings(package_index=index, agents_here=2)
    assert builders_reserve(shared, 1000 * GIB) == 24 * GIB


@pytest.mark.parametrize(
    ("memory", "changes", "at_once"),
    [
        (8 * GIB, {}, 1),  # an eighth of it is less than one needs
        (24 * GIB, {}, 1),
        (48 * GIB, {}, 2),
        (1000 * GIB, {}, 4),
        (1000 * GIB, {"agents_here": 2}, 4),
        (48 * GIB, {"most_packages": 512}, 4),
        (24 * GIB, {"reserve_memory": 9 * 1024}, 2),  # beside the 2.2 GiB of the platform
        (24 * GIB, {"reserve_memory": 2 * 1024}, 1),
    ],
)
def test_no_more_builders_run_than_the_reserve_has_room_for(memory: int, changes: dict[str, Any], at_once: int) -> None:
    """What they use at once is promised to no container, but for one where there is no such room."""
    settings = AgentSettings(package_index="https://index/simple/", **changes)
    assert builders_at_once(settings, memory) == at_once


@pytest.mark.parametrize(
    ("settings", "most"),
    [
        (AgentSettings(), 5),  # half of 2.2 GiB, in parts of 200 MiB
        (AgentSettings(agents_here=2), 2),
        (AgentSettings(reserve_memory=16 * 1024), 8),
        (AgentSettings(reserve_memory=16 * 1024, gpu_blanks=3), 3),
        (AgentSettings(gpu_blanks=0), 0),
        (AgentSettings(blanks=0), 0),
    ],
)
def test_blanks_on_gpus_are_within_the_reserve(host: Path, settings: AgentSettings, most: int) -> None:
    """Containers are promised the rest: no blank takes of what they were promised."""
    assert gpu_blanks(settings, host / "proc") == most


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        (AgentSettings(reserve_memory=25 * 1024), "--reserve-memory 25600 leaves nothing of the 24576 MiB"),
        (AgentSettings(reserve_cpu=8.0), "--reserve-cpu 8 leaves nothing of the 8 cores"),
    ],
)
def test_a_reserve_that_leaves_nothing_is_refused(host: Path, settings: AgentSettings, sentence: str) -> None:
    """By its flag: the node could run nothing."""
    with pytest.raises(BadInput, match=sentence):
        host_capacity(settings, host / "proc")


def test_agents_on_one_machine_share_it(host: Path) -> None:
    """Else each would promise all of it."""
    whole = host_capacity(AgentSettings(reserve_memory=4096), host / "proc")
    third = host_capacity(AgentSettings(reserve_memory=4096, agents_here=3), host / "proc")

    assert third.memory == whole.memory // 3
    assert third.cpu_millis == whole.cpu_millis // 3


def test_an_agent_in_a_container_has_no_more_than_the_container(host: Path) -> None:
    """The tightest limit of its groups counts, whichever of them has it."""
    (host / "cgroup" / "a" / "memory.max").write_text(f"{6 * GIB}\n")
    (host / "cgroup" / "a" / "b" / "memory.max").write_text("max\n")
    (host / "cgroup" / "a" / "b" / "cpu.max").write_text("250000 100000\n")
    (host / "cgroup" / "a" / "cpu.max").write_text("max 100000\n")

    assert usable_host(host / "proc") == (6 * GIB, 2500)


def test_a_machine_that_says_nothing_of_groups_is_taken_whole(tmp_path: Path) -> None:
    """Without /proc, and with it, as it is here."""
    assert usable_host(tmp_path) == (memory_bytes(), usable_cores() * 1000)
    memory, cpu_millis = usable_host()
    assert 0 < memory <= memory_bytes()
    assert 0 < cpu_millis <= usable_cores() * 1000


def test_a_part_of_what_is_left_is_for_what_is_parked(host: Path) -> None:
    """An eighth, or as many MiB as the setting says; of several agents each has its part. It is not promised too."""
    for settings, expected in (
        (AgentSettings(reserve_memory=4096), 20 * GIB // 8),
        (AgentSettings(reserve_memory=4096, warm_memory=0), 0),
        (AgentSettings(reserve_memory=4096, warm_memory=2048), 2 * GIB),
        (AgentSettings(reserve_memory=4096, warm_memory=2048, agents_here=2), GIB),
    ):
        whole = host_capacity(settings, host / "proc")
        left, warm = split_warm(whole, settings)
        assert warm == expected
        assert (left.memory + warm, left.cpu_millis) == (whole.memory, whole.cpu_millis)


def test_memory_for_what_is_parked_leaves_some_for_containers(host: Path) -> None:
    """The setting is named."""
    settings = AgentSettings(reserve_memory=4096, warm_memory=20 * 1024)
    with pytest.raises(BadInput, match="--warm-memory 20480 leaves nothing of the 20480 MiB"):
        split_warm(host_capacity(settings, host / "proc"), settings)
