"""A mount namespace of the agent's own, in which any uid can walk to every folder that a sandbox needs.

bubblewrap resolves the source of each bind as the container's host uid, which cannot reach an interpreter under /root,
or a state folder of mode 0700. So those sources are bound a second time under `root`, in a namespace that only the
agent's sandboxes enter. Only a descriptor of the agent keeps it alive, so the kernel drops it when the agent ends.

The bind is of the child of the last closed folder on the way, so one serves every container's folder under it.
"""

from __future__ import annotations

import hashlib
import os
import stat
import subprocess
from pathlib import Path

from pilotlight_runtime.sandbox.sandbox_errors import SandboxNotStarted, SandboxUnavailable

MOUNT_ROOT = Path("/run/pilotlight/mounts")
HELPER_S = 10.0
"""A helper that takes this long is stuck on a dead network file system."""

# The tmpfs hides the host's empty folder, so that mount points made in it are gone with the namespace. `slave`: what
# the host unmounts later is unmounted here too, instead of being kept busy here; nothing goes the other way.
_HOLD = 'mount -t tmpfs -o mode=0711,size=64k pilotlight "$1" && echo && read -r _'
_BIND = 'if [ -d "$1" ]; then mkdir -p "$2"; else : > "$2"; fi && mount --rbind "$1" "$2"'
_ENV = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin"}


def closed_at(path: Path) -> Path | None:
    """The child of the last folder on the way to `path` that other uids may not enter; None if all are open."""
    found = None
    for folder, child in zip(reversed(path.parents), (*reversed(path.parents), path)[1:], strict=True):
        if not folder.stat().st_mode & stat.S_IXOTH:
            found = child
    return found


class MountNamespace:
    """Made on first need; needs CAP_SYS_ADMIN."""

    def __init__(self, root: Path = MOUNT_ROOT) -> None:
        self._root = root
        self._fd: int | None = None
        self._bound: dict[tuple[Path, int, int], Path] = {}

    @property
    def entrance(self) -> Path | None:
        """What `nsenter --mount=` takes; None while every source was reachable without it."""
        # Named through the agent's pid, so that the descriptor itself need not be inherited.
        return None if self._fd is None else Path(f"/proc/{os.getpid()}/fd/{self._fd}")

    def reachable(self, path: Path) -> Path:
        """A path for `path` that every uid can walk inside the namespace; raises `SandboxNotStarted`."""
        try:
            path = path.resolve(strict=True)
            closed, mode = closed_at(path), path.stat().st_mode
        except OSError as error:
            raise SandboxNotStarted(f"a sandbox cannot show {path}: {error}") from error
        needed = stat.S_IROTH | stat.S_IXOTH if stat.S_ISDIR(mode) else stat.S_IROTH
        if mode & needed != needed:
            raise SandboxNotStarted(f"a container's uid could not read {path}: chmod o+rX it")
        if closed is None:
            return path
        found = closed.stat()
        key = (closed, found.st_dev, found.st_ino)  # a folder that was made anew under an old name needs a new bind
        if key not in self._bound:
            self._bound[key] = self._bind(closed, hashlib.sha256(repr(key).encode()).hexdigest()[:16])
        return self._bound[key] / path.relative_to(closed)

    def close(self) -> None:
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None
            self._bound.clear()

    def _bind(self, source: Path, name: str) -> Path:
        if self._fd is None:
            self._fd = self._make()
        target = self._root / name
        command = ["nsenter", f"--mount={self.entrance}", "sh", "-c", _BIND, "bind", str(source), str(target)]
        done = subprocess.run(command, env=_ENV, cwd="/", capture_output=True, text=True, timeout=HELPER_S, check=False)
        if done.returncode:
            raise SandboxNotStarted(f"a sandbox cannot show {source}: {done.stderr.strip()}")
        return target

    def _make(self) -> int:
        try:
            self._root.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise SandboxUnavailable(f"the agent needs a writable folder {self._root}: {error}") from error
        if closed_at(self._root) is not None:
            raise SandboxUnavailable(f"every uid must be able to walk to {self._root}: chmod o+x its parents")
        command = ["unshare", "--mount", "--propagation", "slave", "sh", "-c", _HOLD, "hold", str(self._root)]
        pipe = subprocess.PIPE
        with subprocess.Popen(command, env=_ENV, cwd="/", stdin=pipe, stdout=pipe, stderr=pipe, text=True) as helper:
            if helper.stdout is None or helper.stderr is None:
                raise AssertionError("pipes were asked for")
            if helper.stdout.readline() != "\n":
                raise SandboxUnavailable(
                    f"root without CAP_SYS_ADMIN cannot show a closed folder to a container's uid: "
                    f"{helper.stderr.read().strip()}"
                )
            return os.open(f"/proc/{helper.pid}/ns/mnt", os.O_RDONLY | os.O_CLOEXEC)
