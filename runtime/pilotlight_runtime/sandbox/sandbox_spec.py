"""The specification of a sandbox, and the bubblewrap options that build it. Pure.

The order of the options is the order of the mounts: a mount hides what was mounted below it before, and all must be in
place before the final `--remount-ro`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}")

APP = Path("/app")
"""The folder of tenant code inside."""
MODELS = Path("/models")
"""The folder of the version's artifacts inside."""
PACKAGES = Path("/packages")
"""The folder of what was built of requirements inside."""
NETWORK = Path("/run/network")
"""The folder of the proxy's socket inside."""
COMPILED = Path("/run/compiled")
"""The folder inside of what containers of the version have compiled on this node before."""
COMPILE_INTO = Path("/tmp/compiled")  # noqa: S108 - inside, /tmp is the sandbox's own
"""The folder inside for what compilers keep."""
SECRETS = Path("/run/secrets")
"""The folder of values of secrets inside: in memory, empty until the container loads."""
SECRETS_BYTES = 2**20
INNER_ID = 65_534
"""Of tenant code inside; the host sees another uid."""
OWN_PIDS = 2
"""bubblewrap's own two processes, which do not count under the tenant's limit."""
FILES: tuple[tuple[Path, str], ...] = (
    (Path("/etc/passwd"), f"tenant:x:{INNER_ID}:{INNER_ID}::/tmp:/usr/sbin/nologin\n"),
    (Path("/etc/group"), f"tenant:x:{INNER_ID}:\n"),
    (Path("/etc/hosts"), "127.0.0.1 localhost container\n::1 localhost container\n"),
)
"""The files that programs expect of any system, without the names of the host's users."""
BASE_ENV: Mapping[str, str] = {
    "PATH": "/usr/local/bin:/usr/bin:/bin",
    "HOME": "/tmp",  # noqa: S108 - inside, /tmp is the sandbox's own
    "TMPDIR": "/tmp",  # noqa: S108
    "USER": "tenant",
    "LOGNAME": "tenant",
    "LANG": "C.UTF-8",
    "PYTHONDONTWRITEBYTECODE": "1",  # every place that code comes from is read-only
}


@dataclass(frozen=True, kw_only=True)
class ResourceLimits:
    """What one sandbox may use, counted over all its processes unless said otherwise."""

    memory_bytes: int
    """With its /tmp and /dev/shm, which live in memory."""
    pids: int
    """Processes and threads."""
    cpu_millis: int
    """At most; 1000 is one core."""
    tmp_bytes: int
    """Of /tmp; fixed when the sandbox starts, as `shm_bytes` and `file_bytes` are."""
    shm_bytes: int
    """Of /dev/shm."""
    open_files: int
    """Per process."""
    file_bytes: int
    """Of any one file it writes."""
    promised_cpu_millis: int = 100
    """Where processors are short they are shared out by this."""

    def __post_init__(self) -> None:
        for name in self.__dataclass_fields__:
            if getattr(self, name) < 1:
                raise ValueError(f"a sandbox needs {name} >= 1, not {getattr(self, name)}")


@dataclass(frozen=True, kw_only=True)
class Mount:
    """A file or folder of the host (`source`) that is visible, read-only, at `target` inside."""

    source: Path
    target: Path

    def __post_init__(self) -> None:
        if not self.source.is_absolute() or not self.target.is_absolute():
            raise ValueError(f"a mount needs absolute paths, not {self.source} -> {self.target}")


@dataclass(frozen=True, kw_only=True)
class SandboxSpec:
    name: str
    """Unique among the agent's running sandboxes; also the name of its cgroup."""
    python: Path
    """A path inside one of `read_only`."""
    argv: tuple[str, ...]
    """Without the interpreter."""
    code_dir: Path
    """Bound read-only at /app; files hard-linked into it later become visible."""
    read_only: tuple[Mount, ...]
    """The venv, the real interpreter root, and others."""
    device_nodes: tuple[Path, ...]
    """E.g. /dev/nvidia0; no other device of the host is visible."""
    env: Mapping[str, str]
    """Added to `BASE_ENV`; must hold no credential of the platform."""
    limits: ResourceLimits
    uid: int | None
    """The host uid; None: one of the launcher's range."""
    models_dir: Path | None = None
    """Bound read-only at /models, as `code_dir` at /app; None: there is no such folder."""
    network_dir: Path | None = None
    """The same at /run/network: the socket of a proxy may be put into it later, the sandbox's only way out."""
    compiled_dir: Path | None = None
    """The same at /run/compiled, as `models_dir`."""
    packages_dir: Path | None = None
    """The same at /packages."""

    def __post_init__(self) -> None:
        if not _NAME.fullmatch(self.name):
            raise ValueError(f"a sandbox's name is 1-64 letters, digits, '_', '.' and '-', not {self.name!r}")
        if not all(path is None or path.is_absolute() for path in self._paths):
            raise ValueError("a sandbox needs absolute paths for its interpreter and its folders")
        for name in self.env:
            if not name or "=" in name:
                raise ValueError(f"no environment variable can be called {name!r}")
        if self.uid is not None and self.uid < 1:
            raise ValueError(f"a sandbox's host uid must not be root's: {self.uid}")

    @property
    def _paths(self) -> tuple[Path | None, ...]:
        return self.python, self.code_dir, self.models_dir, self.network_dir, self.compiled_dir, self.packages_dir


@dataclass(frozen=True, kw_only=True)
class Inherited:
    """Descriptors that bubblewrap inherits, by number. Only `socket` reaches tenant code."""

    socket: int
    seccomp: int
    status: int
    files: tuple[int, ...]
    """One for each of `FILES`."""


@dataclass(frozen=True, kw_only=True)
class SystemEntry:
    """A top-level name of the host's operating system: a symbolic link (`/lib -> usr/lib`) or, with None, a folder."""

    path: Path
    link_to: str | None


def environment(env: Mapping[str, str], *, socket: int, app: Path, models: Path | None = None) -> dict[str, str]:
    """The whole environment of tenant code.

    `PL_FD` is its socket's number, `PL_APP` the folder with its code, `PILOTLIGHT_MODELS` that with its artifacts.
    """
    folders = {"PL_APP": str(app)} | ({} if models is None else {"PILOTLIGHT_MODELS": str(models)})
    return {**BASE_ENV, **env, "PL_FD": str(socket), **folders}


def bubblewrap_options(
    spec: SandboxSpec,
    *,
    fds: Inherited,
    system: Sequence[SystemEntry],
    source_of: Callable[[Path], Path] = lambda path: path,
) -> list[str]:
    """Every option of bwrap for `spec`, without the command to run.

    `source_of` maps a path of the host to one that bwrap can reach as the container's host uid.
    """
    limits = spec.limits
    options = [*_WALLS, "--seccomp", str(fds.seccomp), "--json-status-fd", str(fds.status)]
    for entry in system:
        options += _system(entry)
    options += [*_proc(spec), "--dev", "/dev"]
    options += [*_tmpfs("/dev/shm", limits.shm_bytes), *_tmpfs("/tmp", limits.tmp_bytes)]  # noqa: S108
    options += ["--dir", "/run", *_tmpfs(str(SECRETS), SECRETS_BYTES, "0700")]
    for fd, (path, _) in zip(fds.files, FILES, strict=True):
        options += ["--perms", "0444", "--file", str(fd), str(path)]
    for mount in sorted(spec.read_only, key=lambda mount: len(mount.target.parts)):
        options += ["--ro-bind", str(source_of(mount.source)), str(mount.target)]
    for node in spec.device_nodes:
        options += ["--dev-bind", str(node), str(node)]
    options += ["--ro-bind", str(source_of(spec.code_dir)), str(APP), "--chdir", str(APP), "--clearenv"]
    if spec.models_dir is not None:
        options += ["--ro-bind", str(source_of(spec.models_dir)), str(MODELS)]
    if spec.network_dir is not None:
        options += ["--ro-bind", str(source_of(spec.network_dir)), str(NETWORK)]
    if spec.compiled_dir is not None:
        options += ["--ro-bind", str(source_of(spec.compiled_dir)), str(COMPILED)]
    if spec.packages_dir is not None:
        options += ["--ro-bind", str(source_of(spec.packages_dir)), str(PACKAGES)]
    models = None if spec.models_dir is None else MODELS
    for name, value in environment(spec.env, socket=fds.socket, app=APP, models=models).items():
        options += ["--setenv", name, value]
    # Read-only /proc, since a process may lower its own oom_score_adj there unless the agent has CAP_SYS_RESOURCE.
    closed = ("/dev", "/") if spec.device_nodes else ("/dev", "/proc", "/")
    options += [word for path in closed for word in ("--remount-ro", path)]
    if any("\0" in option for option in options):
        # bwrap reads them separated by NUL: in a value of the environment it would add a tenant's options.
        raise ValueError(f"sandbox {spec.name}: no path and no environment variable may hold a NUL character")
    return options


_WALLS = (
    *("--unshare-user", "--unshare-pid", "--unshare-net", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try"),
    *("--uid", str(INNER_ID), "--gid", str(INNER_ID), "--hostname", "container"),
    *("--die-with-parent", "--new-session", "--cap-drop", "ALL", "--disable-userns"),
)


_KERNEL = ("acpi", "asound", "bus", "driver", "fs", "irq", "mtrr", "scsi", "sys", "sysrq-trigger")
"""What of the kernel itself could be written in /proc by a container whose host uid is root's."""


def _proc(spec: SandboxSpec) -> list[str]:
    """/proc, which stays writable for who has a device, but for the kernel's own settings.

    NVIDIA's driver names its threads in /proc/self/task/*/comm; where it cannot, `cuInit` fails with error 304.
    """
    shut = [f"/proc/{name}" for name in _KERNEL] if spec.device_nodes else []
    return ["--proc", "/proc", *(word for path in shut for word in ("--ro-bind-try", path, path))]


def _tmpfs(path: str, size: int, perms: str = "1777") -> tuple[str, ...]:
    return ("--perms", perms, "--size", str(size), "--tmpfs", path)


def _system(entry: SystemEntry) -> tuple[str, str, str]:
    if entry.link_to is None:
        return ("--ro-bind", str(entry.path), str(entry.path))
    return ("--symlink", entry.link_to, str(entry.path))
