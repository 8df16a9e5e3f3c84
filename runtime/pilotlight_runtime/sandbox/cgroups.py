"""The agent's part of the control groups: `<the agent's own>/pilotlight/<agent>/<sandbox>`, for versions 1 and 2.

`<agent>` is the agent's pid and start time: a dead agent's leftovers can be told from a living neighbour's folders.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import get_args

from pilotlight_runtime.sandbox.cgroup import Cgroup, Controller, Version
from pilotlight_runtime.sandbox.errors import SandboxNotStarted
from pilotlight_runtime.sandbox.profile import Limits

CONTROLLERS: tuple[Controller, ...] = get_args(Controller)
FOLDER = "pilotlight"
#: Version 2 allows processes in leaves only, so the agent itself moves into this one beside `FOLDER`.
LEAF = "pilotlight-agent"


@dataclass(frozen=True, kw_only=True)
class Own:
    """The agent's own folder for one controller."""

    version: Version
    folder: Path
    is_top: bool  #: the highest that this process can see


def own_folders(mountinfo: str, membership: str) -> dict[Controller, Own]:
    """Where the agent is, from the texts of /proc/self/mountinfo and /proc/self/cgroup.

    A controller that both versions could offer is reported under version 1 only if it is mounted there, as the kernel
    gives it to one of them. For version 2 whether a controller is present is seen in its folder, not here.
    """
    where = {names: path for _, names, path in (line.split(":", 2) for line in membership.splitlines())}
    found: dict[Controller, Own] = {}
    unified: Own | None = None
    for line in mountinfo.splitlines():
        left, _, right = line.partition(" - ")
        root, mount_point = left.split()[3:5]
        kind, _, options = right.split(" ", 2)
        if kind == "cgroup2" and "" in where:
            unified = _own(2, root, mount_point, where[""])
        elif kind == "cgroup":
            for names, path in where.items():
                for controller in set(CONTROLLERS) & set(names.split(",")) & set(options.strip().split(",")):
                    found[controller] = _own(1, root, mount_point, path)
    if unified is not None:
        found = {controller: found.get(controller, unified) for controller in CONTROLLERS}
    return found


def _own(version: Version, root: str, mount_point: str, path: str) -> Own:
    # A container may see only its own part of the hierarchy: `root` is what is mounted, `path` may be relative to more.
    below = os.path.relpath(path, root) if Path(path).is_relative_to(root) else "."
    folder = Path(mount_point) / below
    if version == 2 and folder.name == LEAF:
        folder = folder.parent
    return Own(version=version, folder=folder, is_top=folder == Path(mount_point))


class Cgroups:
    """What this agent may use of the control groups; `controllers` may be empty, and the caller says so to its own."""

    def __init__(self, own: Mapping[Controller, Own], agent: str) -> None:
        self._own = own
        self._agent = agent

    @classmethod
    def detect(cls, process: Path = Path("/proc/self")) -> Cgroups:
        """Find the controllers that work here, and sweep up after dead agents."""
        mountinfo, membership = (process / "mountinfo").read_text(), (process / "cgroup").read_text()
        pid = os.getpid()
        usable = {
            controller: own
            for controller, own in own_folders(mountinfo, membership).items()
            if _usable(controller, own)
        }
        cgroups = cls(usable, f"{pid}-{_start_time(pid)}")
        cgroups.sweep()
        return cgroups

    @property
    def controllers(self) -> frozenset[Controller]:
        return frozenset(self._own)

    def create(self, name: str, limits: Limits) -> Cgroup | None:
        """The group of a new sandbox, limits set; None where no controller works. Raises `SandboxNotStarted`."""
        if not self._own:
            return None
        folders = {controller: own.folder / FOLDER / self._agent / name for controller, own in self._own.items()}
        version: Version = max(own.version for own in self._own.values())
        group = Cgroup(folders, version)
        try:
            for folder in group.folders:
                self._make(folder)
            group.limit(limits)
        except OSError as error:
            group.remove()
            raise SandboxNotStarted(f"no cgroup for sandbox {name}: {error}") from error
        return group

    def sweep(self) -> int:
        """Kill what dead agents left running and remove their folders; returns how many agents there were."""
        dead = {path.name for top in self._tops() for path in _folders(top) if not _alive(path.name)}
        for name in dead:
            for top in self._tops():
                for folder in (*_folders(top / name), top / name):
                    group = Cgroup({"memory": folder}, 2)
                    group.kill()
                    group.remove()
        return len(dead)

    def close(self) -> None:
        """Remove this agent's folders, as far as they are empty."""
        for top in self._tops():
            for folder in (top / self._agent, top):
                try:
                    folder.rmdir()
                except OSError:
                    break

    def _tops(self) -> list[Path]:
        return list(dict.fromkeys(own.folder / FOLDER for own in self._own.values()))

    def _make(self, folder: Path) -> None:
        agent, top = folder.parent, folder.parent.parent
        for parent in (top, agent):
            parent.mkdir(exist_ok=True)
            _hand_down(parent, self.controllers)
        folder.mkdir()


def _usable(controller: Controller, own: Own) -> bool:
    if not os.access(own.folder, os.W_OK):
        return False
    return own.version == 1 or _delegated(controller, own)


def _delegated(controller: Controller, own: Own) -> bool:
    """Whether children of the agent's own version 2 group have `controller`, after asking for it."""
    folder = own.folder
    if controller not in _words(folder / "cgroup.controllers"):
        return False
    if controller in _words(folder / "cgroup.subtree_control"):
        return True
    if _hand_down(folder, [controller]):
        return True
    # Refused while processes are in the group. They are moved only if they are ours to move: alone here, or all of a
    # container's, which sees nothing above.
    pids = _words(folder / "cgroup.procs")
    if not own.is_top and pids != [str(os.getpid())]:
        return False
    leaf = folder / LEAF
    try:
        leaf.mkdir(exist_ok=True)
        for pid in pids:
            (leaf / "cgroup.procs").write_text(pid)
    except OSError:
        return False
    return _hand_down(folder, [controller])


def _hand_down(folder: Path, controllers: Iterable[Controller]) -> bool:
    """Let the children of a version 2 folder have `controllers`; nothing to do in version 1."""
    control = folder / "cgroup.subtree_control"
    if not control.exists():
        return True
    try:
        control.write_text(" ".join(f"+{controller}" for controller in sorted(controllers)))
    except OSError:
        return False
    return True


def _words(path: Path) -> list[str]:
    try:
        return path.read_text().split()
    except OSError:
        return []


def _folders(folder: Path) -> list[Path]:
    try:
        return [path for path in folder.iterdir() if path.is_dir()]
    except OSError:
        return []


def _start_time(pid: int) -> str:
    """In clock ticks since boot: with the pid, it names a process for good."""
    stat = Path(f"/proc/{pid}/stat").read_text()
    return stat.rpartition(")")[2].split()[19]


def _alive(agent: str) -> bool:
    pid, _, started = agent.partition("-")
    try:
        return _start_time(int(pid)) == started
    except (OSError, ValueError):
        return False


