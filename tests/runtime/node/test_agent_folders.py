"""An agent's own folders."""

from __future__ import annotations

from pathlib import Path

import pytest

from pilotlight_runtime.node.agent_folders import NodeTaken, own_folders


def test_a_node_is_one_agents(tmp_path: Path) -> None:
    """A second agent of the same name is refused, and says whose it is."""
    with own_folders(tmp_path, "n1"):
        with pytest.raises(NodeTaken, match="is node 'n1'"), own_folders(tmp_path, "n1"):
            pass
        with own_folders(tmp_path, "n2"):
            pass
    with own_folders(tmp_path, "n1"):
        pass


def test_remains_of_a_dead_agent_are_removed(tmp_path: Path) -> None:
    """Code folders go; verified files and usage stay."""
    with own_folders(tmp_path, "n1") as folders:
        (folders.sandboxes / "b-old" / "app").mkdir(parents=True)
        (folders.cache / "acme").mkdir()
        (folders.usage / "00000001.log").touch()

    with own_folders(tmp_path, "n1") as folders:
        assert not list(folders.sandboxes.iterdir())
        assert list(folders.cache.iterdir())
        assert list(folders.usage.iterdir())


def test_others_can_walk_to_the_code_and_list_nothing(tmp_path: Path) -> None:
    """A container's uid needs the way to its code folder, and nothing else of the node."""
    with own_folders(tmp_path / "state", "n1") as folders:
        modes = {
            folder.name: folder.stat().st_mode & 0o777
            for folder in (folders.root.parent, folders.root, folders.sandboxes, folders.cache, folders.usage)
        }

    assert modes == {"node": 0o711, "n1": 0o711, "sandboxes": 0o711, "cache": 0o700, "usage": 0o700}
