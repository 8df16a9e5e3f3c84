"""Where a host keeps its state, and whether what it keeps secret is closed to others."""

from __future__ import annotations

import os
import stat
import tempfile
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from shlex import quote

from pilotlight_supervisor.doctor.finding import Finding, Health, HostRole, judged

GIB = 1 << 30
NOT_KEPT = frozenset({"tmpfs", "ramfs", "devtmpfs"})
"""What is written there is gone when the host starts anew."""
NOT_LOCAL = frozenset(
    {"nfs", "nfs4", "cifs", "smb3", "smbfs", "9p", "afs", "ceph", "glusterfs", "lustre", "gpfs", "beegfs"}
)
"""Locks and fsync are another host's word there."""
ROOM = {HostRole.NODE: 20 * GIB, HostRole.GATEWAY: 10 * GIB, HostRole.BUS: 10 * GIB}
"""A node keeps 20 GB of versions' files."""
LEAST_ROOM = GIB
INODES = 100_000
SLOW_S = 0.1
"""Of a write that has to be on disk before an answer goes out; a good disk takes some milliseconds."""
OPEN_TO_OTHERS = 0o077
PUBLIC = (".pub", ".conf", ".log")


@dataclass(frozen=True, kw_only=True)
class StorageFacts:
    state_dir: str
    folder: str
    """It, or what is there of its path."""
    filesystem: str
    free: int
    free_inodes: int | None
    """None: the file system does not count them."""
    sync_s: float | None
    """How long a small write took until it was on disk; None: it failed."""
    problem: str = ""
    """What kept it from being written."""


@dataclass(frozen=True, kw_only=True)
class SecretFile:
    """A file that nobody but its owner is to read."""

    path: str
    mode: int
    problem: str = ""
    """Why it cannot be looked at."""


def read_storage(state_dir: Path, mountinfo: Path = Path("/proc/self/mountinfo")) -> StorageFacts:
    """Of the state folder, or of the nearest one above that is there; a file of 4 KiB is written, without a name."""
    whole = state_dir.expanduser().absolute()
    folder = next(path for path in (whole, *whole.parents) if path.is_dir()).resolve()
    room = os.statvfs(folder)
    sync_s, problem = _sync(folder)
    return StorageFacts(
        state_dir=str(whole),
        folder=str(folder),
        filesystem=filesystem_of(str(folder), mountinfo.read_text()),
        free=room.f_bavail * room.f_frsize,
        free_inodes=room.f_favail if room.f_files else None,
        sync_s=sync_s,
        problem=problem,
    )


def filesystem_of(folder: str, mountinfo: str) -> str:
    """The kind of file system that a folder is on, by the text of /proc/self/mountinfo."""
    found = (-1, "")
    for line in mountinfo.splitlines():
        left, _, right = line.partition(" - ")
        point = left.split()[4].replace("\\040", " ")
        below = folder == point or folder.startswith(point.rstrip("/") + "/")
        if below and len(point) >= found[0]:  # of two at one place the later one is seen
            found = len(point), right.split()[0]
    return found[1]


def _sync(folder: Path) -> tuple[float | None, str]:
    began = time.monotonic()
    try:
        with tempfile.TemporaryFile(dir=folder, prefix=".pilotlight-doctor-") as file:
            file.write(b"\0" * 4096)
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        return None, str(error.strerror)
    return time.monotonic() - began, ""


def storage_findings(facts: StorageFacts, role: HostRole) -> Iterator[Finding]:
    """Whether state is safe there, and has room."""
    kind = facts.filesystem
    kept, local = kind not in NOT_KEPT, kind not in NOT_LOCAL and not kind.startswith("fuse")
    where = f"{facts.state_dir} on {kind or 'an unknown file system'}"
    where += "" if facts.folder == facts.state_dir else f" (of {facts.folder}, since it is not there yet)"
    yield judged(
        "state folder", where, "a local disk: not memory, and not a file system of the network", ok=kept and local,
        todo="--state-dir /var/lib/pilotlight    # or another folder on a disk of this host",
    )  # fmt: skip
    if facts.sync_s is None:
        yield judged(
            "fsync", f"nothing can be written in {facts.folder}: {facts.problem}", "a folder of the process's own user",
            ok=False, todo=f"install -d -m 0755 -o \"$USER\" {quote(facts.state_dir)}",
        )  # fmt: skip
    else:
        yield judged(
            "fsync", f"{1000 * facts.sync_s:.0f} ms until 4 KiB were on disk", f"{1000 * SLOW_S:.0f} ms or less",
            ok=facts.sync_s <= SLOW_S, otherwise=Health.WARN,
            todo="Give the state folder a disk of its own: usage, jobs and the ledger wait for it.",
        )  # fmt: skip
    enough = ROOM[role]
    yield judged(
        "disk", f"{facts.free / GIB:.1f} GiB free", f"{enough / GIB:.0f} GiB or more", ok=facts.free >= enough,
        otherwise=Health.WARN if facts.free >= LEAST_ROOM else Health.FAIL,
        todo=f"du -xh --max-depth=2 {quote(facts.folder)} | sort -h | tail    # what has it",
    )  # fmt: skip
    if facts.free_inodes is not None:
        yield judged(
            "inodes", f"{facts.free_inodes} free", f"{INODES} or more", ok=facts.free_inodes >= INODES,
            otherwise=Health.WARN, todo=f"df -i {quote(facts.folder)}",
        )  # fmt: skip


def read_secret_files(named: Iterable[Path], state_dir: Path) -> list[SecretFile]:
    """Of the files that are named, and of those that processes keep in the state folder."""
    keys = state_dir.expanduser() / "keys"
    try:
        kept = sorted(path for path in keys.iterdir() if path.suffix not in PUBLIC)
    except OSError:
        kept = []
    return [_secret_file(path.expanduser()) for path in (*named, *kept)]


def _secret_file(path: Path) -> SecretFile:
    try:
        return SecretFile(path=str(path), mode=stat.S_IMODE(path.stat().st_mode))
    except OSError as error:
        return SecretFile(path=str(path), mode=0, problem=str(error.strerror))


def secret_file_findings(files: Iterable[SecretFile]) -> Iterator[Finding]:
    """Whether each is there, and closed."""
    for file in files:
        name = f"secret file {Path(file.path).name}"
        if file.problem:
            yield judged(name, f"{file.path}: {file.problem}", "a file", ok=False, todo=f"ls -l {quote(file.path)}")
            continue
        yield judged(
            name, f"{file.path} has mode {file.mode:04o}", "0600: closed to others", ok=not file.mode & OPEN_TO_OTHERS,
            todo=f"chmod 600 {quote(file.path)}",
        )  # fmt: skip
