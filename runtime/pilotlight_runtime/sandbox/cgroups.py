"""The agent's part of the control groups: `<the agent's own>/pilotlight/<agent>/<sandbox>`, for versions 1 and 2.

On version 2 a group with processes can hand no controller down. An agent that is alone in its group (a systemd unit, a
container) moves into a leaf; one that shares it (a login session) uses the nearest group above that hands them down.

`<agent>` is its pid and start time, so that a dead agent's folders differ from a living one's.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import get_args

from pilotlight_runtime.sandbox.cgroup import (
    Cgroup,
    CgroupController,
    CgroupFolder,
    CgroupVersion,
    kill_members,
    release_killed,
    remove_folder,
)
from pilotlight_runtime.sandbox.sandbox_errors import SandboxNotStarted
from pilotlight_runtime.sandbox.sandbox_spec import ResourceLimits

CONTROLLERS: tuple[CgroupController, ...] = get_args(CgroupController)
FOLDER = "pilotlight"
LEAF = "pilotlight-agent"
"""Version 2 allows processes in leaves only, so the agent moves into this one beside `FOLDER`."""
SWEEP_S = 1.0
"""How long a start waits for a dead agent's processes; the next start removes the rest."""


@dataclass(frozen=True, kw_only=True)
class AgentCgroupFolder(CgroupFolder):
    top: Path
    """The highest that this process can see."""


def own_folders(mountinfo: str, membership: str) -> dict[CgroupController, AgentCgroupFolder]:
    """The agent's folders, from the texts of /proc/self/mountinfo and /proc/self/cgroup.

    A controller that is mounted as version 1 is used there; for version 2 only its folder shows what it has.
    """
    where = {names: path for _, names, path in (line.split(":", 2) for line in membership.splitlines())}
    found: dict[CgroupController, AgentCgroupFolder] = {}
    unified: dict[CgroupController, AgentCgroupFolder] = {}
    for line in mountinfo.splitlines():
        left, _, right = line.partition(" - ")
        root, mount_point = left.split()[3:5]
        kind, _, options = right.split(" ", 2)
        if kind == "cgroup2" and "" in where:
            unified = dict.fromkeys(CONTROLLERS, _own(2, root, mount_point, where[""]))
        elif kind == "cgroup":
            mounted = set(CONTROLLERS) & set(options.strip().split(","))
            for names, path in where.items():
                own = _own(1, root, mount_point, path)
                found |= dict.fromkeys(mounted & set(names.split(",")), own)
    return unified | found


def freezer_folder(mountinfo: str, membership: str) -> CgroupFolder | None:
    """The agent's folder of version 1's freezer, from the same texts; None: there is none."""
    paths = {names: path for _, names, path in (line.split(":", 2) for line in membership.splitlines())}
    for line in mountinfo.splitlines():
        left, _, right = line.partition(" - ")
        root, mount_point = left.split()[3:5]
        kind, _, options = right.split(" ", 2)
        if kind != "cgroup" or "freezer" not in options.strip().split(","):
            continue
        for names, path in paths.items():
            if "freezer" in names.split(","):
                return _own(1, root, mount_point, path)
    return None


def _own(version: CgroupVersion, root: str, mount_point: str, path: str) -> AgentCgroupFolder:
    # In a container `root` is the part of the hierarchy that is mounted, and `path` may begin further up.
    below = os.path.relpath(path, root) if Path(path).is_relative_to(root) else "."
    folder = Path(mount_point) / below
    if version == 2 and folder.name == LEAF:
        folder = folder.parent
    return AgentCgroupFolder(version=version, folder=folder, top=Path(mount_point))


class Cgroups:
    """The control groups that this agent may use; `controllers` may be empty."""

    def __init__(
        self, own: Mapping[CgroupController, AgentCgroupFolder], agent: str, freezer: CgroupFolder | None = None
    ) -> None:
        self._own = own
        self._agent = agent
        self._freezer = freezer
        places = (*own.values(), *(() if freezer is None else (freezer,)))
        self._tops = tuple(dict.fromkeys(place.folder / FOLDER for place in places))

    @classmethod
    def detect(cls, process: Path = Path("/proc/self")) -> Cgroups:
        """Find the controllers that work here, and sweep up after dead agents."""
        texts = (process / "mountinfo").read_text(), (process / "cgroup").read_text()
        places, freezer = own_folders(*texts), freezer_folder(*texts)
        if freezer is not None and not os.access(freezer.folder, os.W_OK):
            freezer = None
        usable = {name: own for name, own in places.items() if own.version == 1 and os.access(own.folder, os.W_OK)}
        unified = [name for name, own in places.items() if own.version == 2]
        if unified:
            usable |= _delegated(unified, places[unified[0]])
        pid = os.getpid()
        cgroups = cls(usable, f"{pid}-{_start_time(pid)}", freezer)
        cgroups.sweep()
        return cgroups

    @property
    def controllers(self) -> frozenset[CgroupController]:
        return frozenset(self._own)

    def create(self, name: str, limits: ResourceLimits) -> Cgroup | None:
        """The group of a new sandbox, limits set; None where no controller works. Raises `SandboxNotStarted`."""
        if not self._own:
            return None
        places = {
            controller: CgroupFolder(version=own.version, folder=own.folder / FOLDER / self._agent / name)
            for controller, own in self._own.items()
        }
        freezer = self._freezer
        if freezer is not None:
            freezer = CgroupFolder(version=freezer.version, folder=freezer.folder / FOLDER / self._agent / name)
        group = Cgroup(places, freezer)
        made: list[Path] = []
        try:
            for folder in group.folders:
                self._make(folder)
                made.append(folder)
            group.limit(limits)
        except OSError as error:
            for folder in made:
                remove_folder(folder)
            raise SandboxNotStarted(f"no cgroup for sandbox {name}: {error}") from error
        return group

    def sweep(self) -> int:
        """Kill the processes of dead agents and remove their folders; returns the number of agents."""
        dead = {path.name for top in self._tops for path in _folders(top) if not _is_alive(path.name)}
        leftovers = [leaf for top in self._tops for name in dead for leaf in (*_folders(top / name), top / name)]
        for folder in leftovers:
            kill_members(folder)
        for folder in leftovers:
            release_killed(folder)
        give_up = time.monotonic() + SWEEP_S
        while leftovers := [folder for folder in leftovers if not remove_folder(folder)]:
            if time.monotonic() > give_up:
                break
            time.sleep(0.01)
        return len(dead)

    def close(self) -> None:
        for top in self._tops:
            for folder in (top / self._agent, top):
                remove_folder(folder)

    def _make(self, folder: Path) -> None:
        agent, top = folder.parent, folder.parent.parent
        agent.mkdir(parents=True, exist_ok=True)
        for parent in (top, agent):
            _hand_down(parent, [controller for controller, own in self._own.items() if own.version == 2])
        folder.mkdir(parents=True)  # with its parents: a neighbour that closes removes `top` when it finds it empty


def _delegated(wanted: Sequence[CgroupController], own: AgentCgroupFolder) -> dict[CgroupController, AgentCgroupFolder]:
    """The nearest version 2 group, from the agent's own upwards, that hands down what is `wanted`, or nothing."""
    available = [controller for controller in wanted if controller in _words(own.folder / "cgroup.controllers")]
    if available and os.access(own.folder, os.W_OK) and _is_opened(own, available):
        return dict.fromkeys(available, own)
    for folder in own.folder.parents:
        if not folder.is_relative_to(own.top):
            break
        handed_down = [controller for controller in wanted if controller in _words(folder / "cgroup.subtree_control")]
        if {"memory", "pids"} & set(wanted) <= set(handed_down) and handed_down and os.access(folder, os.W_OK):
            return dict.fromkeys(handed_down, AgentCgroupFolder(version=2, folder=folder, top=own.top))
    return {}


def _is_opened(own: AgentCgroupFolder, controllers: Sequence[CgroupController]) -> bool:
    folder = own.folder
    if set(controllers) <= set(_words(folder / "cgroup.subtree_control")) or _hand_down(folder, controllers):
        return True
    # Refused while processes are in the group. They are moved only if they belong to the agent: itself alone, or
    # all of a container, which sees nothing above.
    pids = _words(folder / "cgroup.procs")
    if folder != own.top and pids != [str(os.getpid())]:
        return False
    leaf = folder / LEAF
    try:
        leaf.mkdir(exist_ok=True)
        for pid in pids:
            (leaf / "cgroup.procs").write_text(pid)
    except OSError:
        return False
    return _hand_down(folder, controllers)


def _hand_down(folder: Path, controllers: Iterable[CgroupController]) -> bool:
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
    """In clock ticks since boot."""
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19]


def _is_alive(agent: str) -> bool:
    pid, _, started = agent.partition("-")
    try:
        return _start_time(int(pid)) == started
    except (OSError, ValueError):
        return False
