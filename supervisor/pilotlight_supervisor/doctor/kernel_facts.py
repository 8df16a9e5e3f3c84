"""The kernel of a host: what sandboxes stand on, and the settings that get in their way."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from pilotlight_runtime.sandbox.cgroups import AgentCgroupFolder, own_folders
from pilotlight_supervisor.doctor.finding import Finding, Health, judged

OLDEST = (5, 3)
"""A sandbox is watched by its pidfd, which `pidfd_open` gives since Linux 5.3."""
SETTINGS = (
    "user/max_user_namespaces",
    "kernel/unprivileged_userns_clone",
    "kernel/apparmor_restrict_unprivileged_userns",
    "kernel/pid_max",
    "kernel/seccomp/actions_avail",
    "vm/overcommit_memory",
    "fs/inotify/max_user_instances",
    "fs/inotify/max_user_watches",
    "fs/file-max",
)
SECCOMP = frozenset({"errno", "kill_process", "allow"})
NAMESPACES = 1_024
"""Each sandbox has one user namespace, and its starter another."""
PIDS = 32_768
"""The default of a small machine. A container may have 512 processes and threads."""
INOTIFY = {"fs/inotify/max_user_instances": 128, "fs/inotify/max_user_watches": 8_192}
"""The kernel's least defaults: programs in containers watch their files by them."""
FILES = 1 << 18
FLAGS = {
    "x86_64": {"aes": "TLS", "avx2": "numeric libraries", "sse4_2": "numeric libraries"},
    "aarch64": {"aes": "TLS"},
}
"""What a processor should have -> who is slow, or does not start, without it."""
CONTROLLERS = ("memory", "pids", "cpu")


@dataclass(frozen=True, kw_only=True)
class ControlGroups:
    """Those of this process."""

    versions: Mapping[str, int]
    """By controller: 1 or 2; what has none here is left out."""
    writable: bool
    """Whether it may make groups below its own."""


@dataclass(frozen=True, kw_only=True)
class KernelFacts:
    release: str
    machine: str
    is_root: bool
    settings: Mapping[str, str] = field(default_factory=dict)
    """Of `SETTINGS` those that this kernel has."""
    flags: frozenset[str] = frozenset()
    proc: str = ""
    """The options with which /proc is mounted."""
    proc_masks: tuple[str, ...] = ()
    """Parts of /proc that something is mounted over, as in a container without privileges."""
    groups: ControlGroups = ControlGroups(versions={}, writable=False)
    apparmor_profiles: tuple[str, ...] = ()
    """That let bubblewrap make namespaces."""

    def number(self, setting: str) -> int | None:
        """A setting that is a number; None: this kernel has none."""
        text = self.settings.get(setting, "")
        return int(text) if text.isdigit() else None


def read_kernel(root: Path = Path("/")) -> KernelFacts:
    """Those of this machine; `root` is where /proc, /sys and /etc are below."""
    mounts = _text(root / "proc/self/mountinfo")
    settings = {name: _text(root / "proc/sys" / name).strip() for name in SETTINGS}
    named = os.uname()
    return KernelFacts(
        release=named.release,
        machine=named.machine,
        is_root=os.geteuid() == 0,
        settings={name: text for name, text in settings.items() if text},
        flags=_flags(_text(root / "proc/cpuinfo")),
        proc=_proc_options(mounts),
        proc_masks=_proc_masks(mounts),
        groups=_groups(mounts, _text(root / "proc/self/cgroup")),
        apparmor_profiles=tuple(sorted(path.name for path in root.glob("etc/apparmor.d/*bwrap*"))),
    )


def _groups(mounts: str, membership: str) -> ControlGroups:
    own = own_folders(mounts, membership)
    versions = {str(name): int(place.version) for name, place in own.items() if place.version == 1 or _has(place, name)}
    writable = bool(own) and all(any(os.access(folder, os.W_OK) for folder in _from(place)) for place in own.values())
    return ControlGroups(versions=versions, writable=writable)


def _has(place: AgentCgroupFolder, controller: str) -> bool:
    return any(controller in _text(folder / "cgroup.controllers").split() for folder in _from(place))


def _from(place: AgentCgroupFolder) -> list[Path]:
    """The group of this process; of version 2 also those above, of which one may hand its controllers down."""
    above = place.folder.parents if place.version == 2 else ()
    return [place.folder, *(folder for folder in above if folder.is_relative_to(place.top))]


def kernel_findings(facts: KernelFacts) -> Iterator[Finding]:
    """What sandboxes need of the kernel."""
    checks: tuple[Callable[[KernelFacts], Iterator[Finding]], ...] = (
        _release, _namespaces, _control_groups, _seccomp, _proc, _processes, _memory_promises, _inotify, _processor,
    )  # fmt: skip
    for check in checks:
        yield from check(facts)


def server_kernel_findings(facts: KernelFacts) -> Iterator[Finding]:
    """What servers need of it, which have no sandboxes."""
    yield from _open_files(facts)
    yield from _processor(facts)


def _release(facts: KernelFacts) -> Iterator[Finding]:
    oldest = ".".join(map(str, OLDEST))
    yield judged(
        "kernel", f"Linux {facts.release} ({facts.machine})", f"Linux {oldest} or newer",
        ok=_version(facts.release) >= OLDEST, todo="Install a newer kernel, or a newer release of the distribution.",
    )  # fmt: skip


def _namespaces(facts: KernelFacts) -> Iterator[Finding]:
    most = facts.number("user/max_user_namespaces")
    yield judged(
        "user namespaces", "this kernel has none" if most is None else f"user.max_user_namespaces = {most}",
        f"{NAMESPACES} or more", ok=(most or 0) >= NAMESPACES, todo="sysctl -w user.max_user_namespaces=65536",
    )  # fmt: skip
    if facts.number("kernel/unprivileged_userns_clone") == 0:
        yield judged(
            "user namespaces of users", "kernel.unprivileged_userns_clone = 0", "1: sandboxes are started as a user",
            ok=False, todo="sysctl -w kernel.unprivileged_userns_clone=1",
        )  # fmt: skip
    if facts.number("kernel/apparmor_restrict_unprivileged_userns"):
        profiles = facts.apparmor_profiles
        seen = f"a profile lets bubblewrap: {', '.join(profiles)}" if profiles else "no profile lets bubblewrap"
        yield judged(
            "AppArmor and namespaces", f"kernel.apparmor_restrict_unprivileged_userns = 1; {seen}",
            "0, or a profile in /etc/apparmor.d that lets bwrap make user namespaces", ok=bool(profiles),
            todo="sysctl -w kernel.apparmor_restrict_unprivileged_userns=0",
        )  # fmt: skip


def _control_groups(facts: KernelFacts) -> Iterator[Finding]:
    versions, writable = facts.groups.versions, facts.groups.writable
    missing = [name for name in CONTROLLERS if name not in versions]
    found = ", ".join(f"{name} (v{versions[name]})" for name in CONTROLLERS if name in versions) or "none"
    found += "" if writable or not versions else "; this process may not make groups of its own"
    yield judged(
        "control groups", found, "memory, pids and cpu, handed down to the agent", ok=writable and not missing,
        todo="run the agent as root, or by systemd with Delegate=yes: systemd-run --property=Delegate=yes …",
    )  # fmt: skip


def _seccomp(facts: KernelFacts) -> Iterator[Finding]:
    actions = facts.settings.get("kernel/seccomp/actions_avail", "").split()
    missing = sorted(SECCOMP - set(actions))
    yield judged(
        "seccomp", "this kernel has none" if not actions else f"without {', '.join(missing)}" if missing else "filters",
        "a kernel with CONFIG_SECCOMP_FILTER", ok=not missing, todo="Boot a kernel of the distribution.",
    )  # fmt: skip


def _proc(facts: KernelFacts) -> Iterator[Finding]:
    hidden = re.search(r"hidepid=(\w+)", facts.proc)
    found = [f"mounted with {hidden[0]}"] if hidden and hidden[1] not in ("0", "off") else []
    found += [f"{len(facts.proc_masks)} parts covered, such as {facts.proc_masks[0]}"] if facts.proc_masks else []
    yield judged(
        "/proc", "; ".join(found) or "whole", "mounted whole, so that sandboxes may have one of their own",
        ok=not found,
        todo="mount -o remount,hidepid=0 /proc\nin a container: give it an unmasked /proc (procMount: Unmasked, "
        "--security-opt systempaths=unconfined)",
    )  # fmt: skip


def _processes(facts: KernelFacts) -> Iterator[Finding]:
    most = facts.number("kernel/pid_max")
    yield judged(
        "processes", f"kernel.pid_max = {most}", f"{PIDS} or more", ok=most is None or most >= PIDS,
        todo="sysctl -w kernel.pid_max=4194304", otherwise=Health.WARN,
    )  # fmt: skip


def _memory_promises(facts: KernelFacts) -> Iterator[Finding]:
    found = facts.settings.get("vm/overcommit_memory", "0")
    yield judged(
        "memory promises", f"vm.overcommit_memory = {found}", "0 or 1: drivers of GPUs reserve terabytes of addresses",
        ok=found != "2", todo="sysctl -w vm.overcommit_memory=0",
    )  # fmt: skip


def _inotify(facts: KernelFacts) -> Iterator[Finding]:
    low = {name: least for name, least in INOTIFY.items() if (facts.number(name) or least) < least}
    yield judged(
        "watches of files", ", ".join(f"{_dotted(name)} = {facts.settings.get(name, '-')}" for name in INOTIFY),
        ", ".join(f"{least} or more" for least in INOTIFY.values()), ok=not low, otherwise=Health.WARN,
        todo="\n".join(f"sysctl -w {_dotted(name)}={least}" for name, least in low.items()),
    )  # fmt: skip


def _open_files(facts: KernelFacts) -> Iterator[Finding]:
    most = facts.number("fs/file-max")
    yield judged(
        "open files of all", f"fs.file-max = {most}", f"{FILES} or more", ok=most is None or most >= FILES,
        todo=f"sysctl -w fs.file-max={4 * FILES}", otherwise=Health.WARN,
    )  # fmt: skip


def _processor(facts: KernelFacts) -> Iterator[Finding]:
    missing = {flag: who for flag, who in FLAGS.get(facts.machine, {}).items() if flag not in facts.flags}
    known = facts.machine in FLAGS
    found = f"without {', '.join(missing)}" if missing else facts.machine
    yield judged(
        "processor", found, "x86_64 with AES, SSE4.2 and AVX2, or aarch64 with AES", ok=known and not missing,
        todo=f"Slow, or not able to start, without them: {', '.join(sorted(set(missing.values())))}. In a virtual "
        "machine give it the host's processor (cpu=host)." if known else "Nothing was tested on this processor.",
        otherwise=Health.WARN,
    )  # fmt: skip


def _version(release: str) -> tuple[int, ...]:
    found = re.match(r"(\d+)\.(\d+)", release)
    return (int(found[1]), int(found[2])) if found else (0, 0)


def _flags(cpuinfo: str) -> frozenset[str]:
    found = re.search(r"^(?:flags|Features)\s*:(.*)$", cpuinfo, re.MULTILINE)
    return frozenset(found[1].split() if found else ())


def _proc_options(mountinfo: str) -> str:
    found = [line for line in mountinfo.splitlines() if line.split()[4:5] == ["/proc"]]
    return " ".join(found[-1].split()[5:]) if found else ""


def _proc_masks(mountinfo: str) -> tuple[str, ...]:
    points = (line.split()[4] for line in mountinfo.splitlines() if len(line.split()) > 4)
    return tuple(
        sorted({point for point in points if point.startswith("/proc/") and point != "/proc/sys/fs/binfmt_misc"})
    )


def _dotted(setting: str) -> str:
    return setting.replace("/", ".")


def _text(path: Path) -> str:
    try:
        return path.read_text()
    except (OSError, UnicodeDecodeError):
        return ""
