"""What a node has to promise to its containers: the memory and cores of the host, less a reserve for the platform.

The host is what this agent may use of the machine: in a container of its own, up to that container's limits. Of several
agents on one machine each has an even part.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from msgspec import structs

from pilotlight_core.host.config import AgentSettings
from pilotlight_core.model.errors import BadInput
from pilotlight_core.model.messages.node_messages import HostShare
from pilotlight_runtime.devices.cpu_slots import memory_bytes, usable_cores
from pilotlight_runtime.environments.build_sandbox import MOST_BUILDERS, builder_memory, builders_memory
from pilotlight_runtime.sandbox.cgroup import CgroupController
from pilotlight_runtime.sandbox.cgroups import own_folders

MIB = 2**20
GIB = 2**30
RESERVE_PART = 20
WARM_PART = 8
MOST_RESERVE_PART = 4
BLANK_BYTES = 200 * MIB
"""Of host memory, that a blank takes which has imported torch."""
BUILDERS_PART = 8
BLANKS_PART = 2
"""The part of the reserve that blanks on GPUs may take; those on CPU slots and the platform have the rest."""
MEMORY_FILES = ("memory.max", "memory.limit_in_bytes")


def default_reserve(memory: int) -> int:
    """Bytes for the platform's processes, the system, and the sandboxes that are kept started ahead.

    1 GiB and a twentieth of the memory, at most a quarter: a platform on one machine takes some 0.8 GiB, and what
    depends on the machine's size (page tables, caches, sockets) grows with it.
    """
    return min(memory // MOST_RESERVE_PART, GIB + memory // RESERVE_PART)


def reserved_memory(settings: AgentSettings, memory: int) -> int:
    """Bytes of so many that no container is promised: as the operator says, else for all that runs beside them."""
    return settings.reserve_memory * MIB or default_reserve(memory) + builders_reserve(settings, memory)


def builders_reserve(settings: AgentSettings, memory: int) -> int:
    """Bytes for builders of requirements, where there is an index: what all at once may use, at most an eighth."""
    if not settings.package_index:
        return 0
    return min(memory // BUILDERS_PART, builders_memory(settings.most_packages * MIB) * settings.agents_here)


def builders_at_once(settings: AgentSettings, memory: int) -> int:
    """How many builders of this agent the reserve of a host of so many bytes has room for: one in any case."""
    spare = (reserved_memory(settings, memory) - default_reserve(memory)) // settings.agents_here
    return max(1, min(MOST_BUILDERS, spare // builder_memory(settings.most_packages * MIB)))


def host_capacity(settings: AgentSettings, process: Path = Path("/proc/self")) -> HostShare:
    """What this agent's containers may be promised.

    Raises:
        BadInput: if the reserve leaves nothing.
    """
    memory, cpu_millis = usable_host(process)
    reserve = reserved_memory(settings, memory)
    found = HostShare(
        memory=(memory - reserve) // settings.agents_here,
        cpu_millis=(cpu_millis - round(settings.reserve_cpu * 1000)) // settings.agents_here,
    )
    if found.memory <= 0:
        raise BadInput(
            f"--reserve-memory {settings.reserve_memory} leaves nothing of the {memory // MIB} MiB that there are.",
            field="reserve_memory",
        )
    if found.cpu_millis <= 0:
        raise BadInput(
            f"--reserve-cpu {settings.reserve_cpu:g} leaves nothing of the {cpu_millis / 1000:g} cores that there are.",
            field="reserve_cpu",
        )
    return found


def split_warm(host: HostShare, settings: AgentSettings) -> tuple[HostShare, int]:
    """What containers may be promised of that, and the bytes for what is parked or kept.

    Raises:
        BadInput: if nothing is left to promise.
    """
    asked = settings.warm_memory
    warm = host.memory // WARM_PART if asked < 0 else asked * MIB // settings.agents_here
    if warm >= host.memory:
        raise BadInput(
            f"--warm-memory {asked} leaves nothing of the {host.memory // MIB} MiB that there are for containers.",
            field="warm_memory",
        )
    return structs.replace(host, memory=host.memory - warm), warm


def gpu_blanks(settings: AgentSettings, process: Path = Path("/proc/self")) -> int:
    """How many blanks this agent keeps on GPUs: as its settings say, but no more than its reserve has memory for."""
    if not settings.blanks:
        return 0
    memory, _ = usable_host(process)
    reserve = settings.reserve_memory * MIB or default_reserve(memory)  # builders have a part of their own
    return min(settings.gpu_blanks, reserve // BLANKS_PART // settings.agents_here // BLANK_BYTES)


def usable_host(process: Path = Path("/proc/self")) -> tuple[int, int]:
    """Bytes of memory, and thousandths of a core, that this process may use."""
    memory = min([memory_bytes(), *_memory_limits(process)])
    return memory, min([usable_cores() * 1000, *_cpu_limits(process)])


def _memory_limits(process: Path) -> Iterator[int]:
    for folder in _own_groups(process, "memory"):
        for name in MEMORY_FILES:
            if (words := _words(folder / name)) and words[0].isdigit():
                yield int(words[0])


def _cpu_limits(process: Path) -> Iterator[int]:
    for folder in _own_groups(process, "cpu"):
        words = _words(folder / "cpu.max") or [
            *_words(folder / "cpu.cfs_quota_us"),
            *_words(folder / "cpu.cfs_period_us"),
        ]
        if len(words) == 2 and all(word.isdigit() for word in words) and int(words[1]):
            yield int(words[0]) * 1000 // int(words[1])


def _own_groups(process: Path, controller: CgroupController) -> Iterator[Path]:
    """The folders of this process's group and of those above it, as far as it can see."""
    try:
        places = own_folders((process / "mountinfo").read_text(), (process / "cgroup").read_text())
    except OSError:
        return
    if (own := places.get(controller)) is not None:
        for folder in (own.folder, *own.folder.parents):
            if folder.is_relative_to(own.top):
                yield folder


def _words(path: Path) -> list[str]:
    try:
        return path.read_text().split()
    except OSError:
        return []
