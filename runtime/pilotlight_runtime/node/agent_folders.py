"""An agent's own folders below `<state>/node/<name>`."""

from __future__ import annotations

import fcntl
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from pilotlight_core.host.file_permissions import OWNER_ONLY, WALK_ONLY, private_folder


class NodeTaken(RuntimeError):
    """Another agent on this machine is this node."""


@dataclass(frozen=True, kw_only=True)
class NodeFolders:
    root: Path

    @property
    def cache(self) -> Path:
        """Verified files of tenants."""
        return self.root / "cache"

    @property
    def compiled(self) -> Path:
        """What containers have compiled, by tenant and version."""
        return self.root / "compiled"

    @property
    def environments(self) -> Path:
        """What was built of tenants' requirements."""
        return self.root / "environments"

    @property
    def sandboxes(self) -> Path:
        """The code folders of blanks and containers; of no use to the next agent."""
        return self.root / "sandboxes"

    @property
    def usage(self) -> Path:
        """The append log of usage."""
        return self.root / "usage"

    @property
    def ended(self) -> Path:
        """The files of `EndedShares`."""
        return self.root / "ended"

    @property
    def waiting(self) -> Path:
        """The file of `WaitingCalls`."""
        return self.root / "waiting"

    @property
    def notice(self) -> Path:
        """The file that tells what the node's provider has said of its end."""
        return self.root / "notice.json"

    @property
    def newest_keys(self) -> Path:
        """The file that tells the latest set of keys that was seen."""
        return self.root / "newest_keys"

    @property
    def fake_gpus(self) -> Path:
        """How GPUs in software are cut."""
        return self.root / "fake_gpus.json"


@contextmanager
def own_folders(state_dir: Path, node: str) -> Iterator[NodeFolders]:
    """The node's folders, for one agent at a time, without a dead agent's sandboxes.

    Raises:
        NodeTaken: if another agent has them.
    """
    folders = NodeFolders(root=(state_dir / "node" / node).resolve())
    # Containers' uids walk to their code folders, and need not list others.
    for folder in (state_dir / "node", folders.root):
        private_folder(folder, WALK_ONLY)
    with (folders.root / "agent.lock").open("a+") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            lock.seek(0)
            raise NodeTaken(
                f"another agent (pid {lock.read().strip()}) is node {node!r}: choose another --node"
            ) from None
        lock.truncate(0)
        lock.write(f"{os.getpid()}\n")
        lock.flush()
        shutil.rmtree(folders.sandboxes, ignore_errors=True)
        private_folder(folders.sandboxes, WALK_ONLY)
        for folder in (folders.cache, folders.compiled, folders.environments, folders.usage, folders.ended):
            private_folder(folder, OWNER_ONLY)
        yield folders
