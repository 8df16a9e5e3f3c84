"""What a node builds requirements with, without its agent: real sandboxes, and a proxy to an index of the test."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from pilotlight_core.host.file_permissions import OWNER_ONLY, WALK_ONLY, private_folder
from pilotlight_runtime.containers.blanks.base_environment import own_environment
from pilotlight_runtime.environments.environment_builds import EnvironmentBuilds
from pilotlight_runtime.environments.package_index import read_index
from pilotlight_runtime.node.agent_folders import NodeFolders
from pilotlight_runtime.node.package_builds import PackageNeeds, find_uv, open_builds
from pilotlight_runtime.sandbox.bubblewrap import BubblewrapLauncher

MIB = 2**20


@asynccontextmanager
async def package_builds(
    root: Path, url: str, *, hosts: str = "", most_bytes: int = 64 * MIB, cache_bytes: int = 64 * MIB
) -> AsyncIterator[EnvironmentBuilds]:
    """The builds of a node whose folders are below `root`, until the block ends."""
    folders = NodeFolders(root=root)
    private_folder(folders.sandboxes, WALK_ONLY)
    private_folder(folders.environments, OWNER_ONLY)
    needs = PackageNeeds(
        index=read_index(url, hosts), uv=find_uv(), most_bytes=most_bytes, cache_bytes=cache_bytes
    )  # fmt: skip
    launcher = BubblewrapLauncher()
    try:
        async with asyncio.TaskGroup() as group:
            ways_out, builds = open_builds(
                needs, launcher, [own_environment("none")], folders, group, lambda: None
            )  # fmt: skip
            proxy = group.create_task(ways_out.run())
            try:
                yield builds
            finally:
                proxy.cancel()
                await asyncio.wait([proxy])
    finally:
        launcher.close()


def built_files(root: Path) -> dict[str, bytes]:
    """By path below their environment, what is built below `root`; of folders that are whole."""
    packages = list((root / "environments").glob("*/*/packages"))
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for folder in packages
        for path in folder.rglob("*")
        if path.is_file()
    }
