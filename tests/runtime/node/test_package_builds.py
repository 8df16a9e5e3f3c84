"""What a node builds requirements with, by its settings."""

from __future__ import annotations

import asyncio
import shutil
from pathlib import Path

import pytest
import structlog.testing

from pilotlight_core.host.config import AgentSettings
from pilotlight_core.model.errors import BadInput
from pilotlight_runtime.containers.blanks.base_environment import BaseEnvironment
from pilotlight_runtime.environments.package_index import read_index
from pilotlight_runtime.node.agent_folders import NodeFolders
from pilotlight_runtime.node.package_builds import PackageNeeds, find_uv, open_builds, package_needs
from pilotlight_runtime.sandbox.fake_launcher import FakeLauncher
from pilotlight_runtime.sandbox.plain_process import ProcessLauncher
from pilotlight_runtime.sandbox.sandbox_port import Launcher
from tests.runtime.containers.fake_guests import silent_guest

URL = "https://index.example.com/simple/"
BASES = (BaseEnvironment(name="default", python=Path("/own/bin/python"), read_only=()),)


def test_without_an_index_nothing_is_built() -> None:
    """That is the default."""
    assert package_needs(AgentSettings()).index is None


def test_settings_say_the_index_and_its_bounds(tmp_path: Path) -> None:
    """With the file of its authorities, which must be there."""
    authority = tmp_path / "ca.pem"
    authority.write_text("")
    needs = package_needs(
        AgentSettings(
            package_index=URL,
            package_hosts="files.example.com",
            package_ca_file=str(authority),
            most_packages=7,
            packages_bytes=9,
        )
    )

    assert needs.index is not None
    assert needs.index.targets == ("index.example.com:443", "files.example.com:443")
    assert needs.index.certificates == str(authority)
    assert (needs.most_bytes, needs.cache_bytes) == (7 * 2**20, 9)
    with pytest.raises(BadInput, match="there is no file"):
        package_needs(AgentSettings(package_index=URL, package_ca_file=str(tmp_path / "missing")))
    with pytest.raises(BadInput, match="--package-index"):
        package_needs(AgentSettings(package_index="nonsense"))


@pytest.mark.parametrize(("reserve", "is_told"), [(7 + 1024, False), (7 + 1024 - 1, True)])
def test_an_operator_hears_of_a_builder_beyond_the_reserve(reserve: int, is_told: bool) -> None:
    """As many as have room there run at a time, and one in any case: what that uses beyond it is others' memory."""
    with structlog.testing.capture_logs() as lines:
        package_needs(AgentSettings(package_index=URL, most_packages=7, reserve_memory=reserve))

    assert [line["builder_mib"] for line in lines] == [7 + 1024] * is_told


def test_uv_has_to_be_there(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Beside the agent's interpreter, or on its path."""
    assert find_uv().name == "uv"
    monkeypatch.setattr("sys.executable", str(tmp_path / "python"))
    monkeypatch.setattr(shutil, "which", lambda _: None)
    with pytest.raises(BadInput, match="pip install uv"):
        find_uv()


@pytest.mark.parametrize(
    ("launcher", "needs", "builds"),
    [
        (FakeLauncher(silent_guest), PackageNeeds(index=read_index(URL)), True),
        (FakeLauncher(silent_guest), PackageNeeds(), False),
        (ProcessLauncher(), PackageNeeds(index=read_index(URL)), False),
    ],
)
async def test_a_builder_needs_an_index_and_walls(
    tmp_path: Path, launcher: Launcher, needs: PackageNeeds, builds: bool
) -> None:
    """Without them the node says that it builds nothing, and gets no function that needs it."""
    async with asyncio.TaskGroup() as group:
        _, made = open_builds(needs, launcher, BASES, NodeFolders(root=tmp_path), group, lambda: None)

        assert made.can_build is builds
