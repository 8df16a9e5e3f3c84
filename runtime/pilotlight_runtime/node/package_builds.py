"""What a node builds requirements with, by its settings."""

from __future__ import annotations

import asyncio
import shutil
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

import structlog

from pilotlight_core.host.config import CACHE_BYTES, AgentSettings
from pilotlight_core.model.errors import BadInput
from pilotlight_runtime.containers.blanks.base_environment import BaseEnvironment
from pilotlight_runtime.egress.proxy_supervisor import ProxySupervisor
from pilotlight_runtime.environments.base_facts import BuildBase
from pilotlight_runtime.environments.build_sandbox import (
    ANYWHERE,
    MOST_BUILDERS,
    BuildSandbox,
    BuildTools,
    builder_memory,
)
from pilotlight_runtime.environments.environment_builds import EnvironmentBuilds
from pilotlight_runtime.environments.environment_cache import EnvironmentCache
from pilotlight_runtime.environments.package_index import PackageIndex, read_index
from pilotlight_runtime.node.agent_folders import NodeFolders
from pilotlight_runtime.node.host_capacity import MIB, builders_at_once, reserved_memory, usable_host
from pilotlight_runtime.sandbox.sandbox_port import Launcher

log = structlog.get_logger(__name__)


@dataclass(frozen=True, kw_only=True)
class PackageNeeds:
    """What requirements are built from, and how large they may be."""

    index: PackageIndex | None = None
    """None: there are none."""
    uv: Path = Path("/usr/bin/uv")
    most_bytes: int = 2048 * MIB
    """Of one environment."""
    cache_bytes: int = CACHE_BYTES
    """Of environments that no container has."""
    at_once: int = MOST_BUILDERS
    """Builders for which there is memory."""


def package_needs(settings: AgentSettings) -> PackageNeeds:
    """
    Raises:
        BadInput: the index is none, its certificates are not there, or uv is not.
    """
    most_bytes, cache_bytes = settings.most_packages * MIB, settings.packages_bytes
    if not settings.package_index:
        return PackageNeeds(most_bytes=most_bytes, cache_bytes=cache_bytes)
    certificates = str(Path(settings.package_ca_file).expanduser().resolve()) if settings.package_ca_file else ""
    if certificates and not Path(certificates).is_file():
        raise BadInput(f"--package-ca-file: there is no file {certificates}.", field="package_ca_file")
    index = read_index(settings.package_index, settings.package_hosts, certificates)
    memory, _ = usable_host()
    _note_memory(settings, builder_memory(most_bytes), reserved_memory(settings, memory))
    at_once = builders_at_once(settings, memory)
    return PackageNeeds(index=index, uv=find_uv(), most_bytes=most_bytes, cache_bytes=cache_bytes, at_once=at_once)


def _note_memory(settings: AgentSettings, builder: int, reserve: int) -> None:
    """Say so if one builder of each agent may use more bytes than the reserve has."""
    if builder * settings.agents_here > reserve:
        log.warning(
            "a builder of requirements may use more memory than is reserved, and takes it from containers then: raise "
            "--reserve-memory, or lower --most-packages",
            builder_mib=builder // MIB,
            reserve_mib=reserve // MIB,
        )


def find_uv() -> Path:
    """The program that locks and installs.

    Raises:
        BadInput: there is none.
    """
    beside = Path(sys.executable).parent / "uv"
    found = str(beside) if beside.is_file() else shutil.which("uv")
    if found is None:
        raise BadInput(
            "--package-index: there is no uv, which builds requirements: pip install uv, beside the agent.",
            field="package_index",
        )
    return Path(found).resolve()


def open_builds(
    needs: PackageNeeds,
    launcher: Launcher,
    bases: Iterable[BaseEnvironment],
    folders: NodeFolders,
    group: asyncio.TaskGroup,
    changed: Callable[[], None],
) -> tuple[ProxySupervisor, EnvironmentBuilds]:
    """The proxy of builders, and what builds; without an index or walls it builds nothing."""
    by_name = {base.name: BuildBase(python=base.python, read_only=base.read_only) for base in bases}
    ways_out = ProxySupervisor(ANYWHERE)
    cache = EnvironmentCache(folders.environments, needs.cache_bytes)
    guarantees = launcher.guarantees()
    has_walls = guarantees.own_filesystem and guarantees.no_network
    sandbox = None
    if needs.index is not None and not has_walls:
        log.error("requirements are not built here: this sandbox has no walls around a builder")
    elif needs.index is not None:
        tools = BuildTools(
            launcher=launcher,
            own=next(iter(by_name.values())),
            uv=needs.uv,
            index=needs.index,
            folder=folders.sandboxes,
            most_bytes=needs.most_bytes,
            at_once=needs.at_once,
        )
        sandbox = BuildSandbox(tools, ways_out)
    return ways_out, EnvironmentBuilds(cache, by_name, sandbox, group, changed)
