"""What the host shows: the process table, the control groups and the folders of sandboxes."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from pilotlight_runtime.sandbox.cgroups import FOLDER, own_folders
from pilotlight_runtime.sandbox.host_uids import FIRST_UID


def is_alive(pid: int) -> bool:
    """Whether a process exists and is not a zombie."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def descendants(pid: int) -> set[int]:
    """All processes below `pid`."""
    children: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                parent = int((entry / "stat").read_text().rsplit(")", 1)[1].split()[1])
            except (FileNotFoundError, ProcessLookupError):
                continue
            children.setdefault(parent, []).append(int(entry.name))
    found: set[int] = set()
    todo = [pid]
    while todo:
        for child in children.get(todo.pop(), []):
            if child not in found:
                found.add(child)
                todo.append(child)
    return found


def host_uid(pid: int) -> int | None:
    """The real uid of a process as the host sees it; None if it is gone."""
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return None
    return next(int(line.split()[1]) for line in status.splitlines() if line.startswith("Uid:"))


@dataclass(frozen=True, kw_only=True)
class Sandboxes:
    """What an agent has on its host: each of the three has one entry per sandbox, when nothing is left over."""

    uids: frozenset[int]
    """Host uids under which processes below the agent run."""
    groups: frozenset[str]
    """Names of its control groups."""
    folders: frozenset[str]
    """Names of its code folders."""

    @property
    def count(self) -> int | None:
        """How many there are; None while one comes or goes."""
        counts = {len(self.uids), len(self.groups), len(self.folders)}
        return counts.pop() if len(counts) == 1 and self.groups == self.folders else None


def sandboxes_of(agent: int, node: Path) -> Sandboxes:
    """The sandboxes of the agent with this pid; `node` is its folder."""
    uids = {host_uid(pid) for pid in descendants(agent)}
    return Sandboxes(
        uids=frozenset(uid for uid in uids if uid is not None and uid >= FIRST_UID),
        groups=frozenset(folder.name for top in cgroups_of(agent) for folder in top.iterdir() if folder.is_dir()),
        folders=frozenset(folder.name for folder in (node / "sandboxes").iterdir()),
    )


def cgroups_of(agent: int) -> list[Path]:
    """The folders of control groups that an agent has made, one per controller; it may be dead."""
    process = Path("/proc/self")  # the agent is in the group of whoever started it
    own = own_folders((process / "mountinfo").read_text(), (process / "cgroup").read_text())
    above = {folder for place in own.values() for folder in (place.folder, *place.folder.parents)}
    tops = {folder / FOLDER for folder in above}
    return [folder for top in tops if top.is_dir() for folder in top.glob(f"{agent}-*")]
