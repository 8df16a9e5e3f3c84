"""The system calls that tenant code may not make, as a raw BPF program for `bwrap --seccomp`.

A deny list, since tenants bring arbitrary native code and an allow list breaks with every libc. It denies what
capabilities and namespaces leave open: new namespaces (used by most kernel exploits), io_uring (which would bypass this
filter), BPF, keyrings, tracing, and socket families that a network namespace does not contain (AF_VSOCK reaches the
hypervisor).

Nor may a socket be told to linger: whoever drops its last reference waits in close(2), and a guest can make that the
agent or the proxy, by sending them the descriptor (SCM_RIGHTS) of a connection that nobody reads.

The answers: EPERM; ENOSYS for clone3, whose flags lie behind a pointer that BPF cannot read, so that libc falls back to
clone; EAFNOSUPPORT for a socket family; death for a foreign architecture or the x32 calls, whose numbers differ.
"""

from __future__ import annotations

import errno
import platform
import struct
from dataclasses import dataclass

from pilotlight_runtime.sandbox.sandbox_errors import SandboxUnavailable

DENIED: dict[str, tuple[int | None, int | None]] = {
    "acct": (163, 89),
    "add_key": (248, 217),
    "adjtimex": (159, 171),
    "bpf": (321, 280),
    "chroot": (161, 51),
    "clock_adjtime": (305, 266),
    "clock_settime": (227, 112),
    "delete_module": (176, 106),
    "fanotify_init": (300, 262),
    "finit_module": (313, 273),
    "fsconfig": (431, 431),
    "fsmount": (432, 432),
    "fsopen": (430, 430),
    "fspick": (433, 433),
    "init_module": (175, 105),
    "io_uring_enter": (426, 426),
    "io_uring_register": (427, 427),
    "io_uring_setup": (425, 425),
    "ioperm": (173, None),
    "iopl": (172, None),
    "kcmp": (312, 272),
    "kexec_file_load": (320, 294),
    "kexec_load": (246, 104),
    "keyctl": (250, 219),
    "lookup_dcookie": (212, 18),
    "modify_ldt": (154, None),
    "mount": (165, 40),
    "mount_setattr": (442, 442),
    "move_mount": (429, 429),
    "name_to_handle_at": (303, 264),
    "open_by_handle_at": (304, 265),
    "open_tree": (428, 428),
    "open_tree_attr": (467, 467),
    "perf_event_open": (298, 241),
    "personality": (135, 92),
    "pidfd_getfd": (438, 438),
    "pivot_root": (155, 41),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "ptrace": (101, 117),
    "quotactl": (179, 60),
    "quotactl_fd": (443, 443),
    "reboot": (169, 142),
    "request_key": (249, 218),
    "setdomainname": (171, 162),
    "sethostname": (170, 161),
    "setns": (308, 268),
    "settimeofday": (164, 170),
    "swapoff": (168, 225),
    "swapon": (167, 224),
    "sysfs": (139, None),
    "syslog": (103, 116),
    "umount2": (166, 39),
    "unshare": (272, 97),
    "uselib": (134, None),
    "userfaultfd": (323, 282),
    "ustat": (136, None),
    "vhangup": (153, 58),
}
"""name -> (x86_64, aarch64); None where the architecture has no such call."""


@dataclass(frozen=True)
class Architecture:
    """One machine type; `column` is its place in `DENIED`."""

    audit: int
    column: int
    clone: int
    ioctl: int
    setsockopt: int
    socket: int
    has_x32: bool


ARCHITECTURES = {
    "x86_64": Architecture(audit=0xC000003E, column=0, clone=56, ioctl=16, setsockopt=54, socket=41, has_x32=True),
    "aarch64": Architecture(audit=0xC00000B7, column=1, clone=220, ioctl=29, setsockopt=208, socket=198, has_x32=False),
}

CLONE3 = 435
X32_BIT = 0x4000_0000
NAMESPACE_FLAGS = 0x7E02_0000
"""CLONE_NEW{CGROUP,UTS,IPC,USER,PID,NET,NS}. Not CLONE_NEWTIME: in clone(2) that bit belongs to the exit signal."""
DENIED_IOCTLS = (0x5412, 0x541C)
"""TIOCSTI types into the terminal and TIOCLINUX pastes into it: both act as its user."""
SOL_SOCKET, SO_LINGER = 1, 13
SOCKET_FAMILIES = (1, 2, 10, 16)
"""AF_UNIX, AF_INET, AF_INET6, AF_NETLINK."""

# struct seccomp_data: int nr; u32 arch; u64 instruction_pointer; u64 args[6] - low words first on both architectures.
_NUMBER, _ARCH, _ARG0, _ARG1, _ARG2 = 0, 4, 16, 24, 32
_LOAD, _IF_EQUAL, _IF_AT_LEAST, _IF_ANY_BIT, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_ALLOW, _KILL = 0x7FFF_0000, 0x8000_0000


def _op(code: int, value: int, if_true: int = 0, if_false: int = 0) -> bytes:
    return struct.pack("=HBBI", code, if_true, if_false, value)


def _fail(error: int) -> bytes:
    return _op(_RETURN, 0x0005_0000 | error)


def _on_call(number: int, body: bytes) -> bytes:
    """Run `body`, which always returns, when the loaded call number is `number`; otherwise step over it."""
    return _op(_IF_EQUAL, number, 0, len(body) // 8) + body


def _only_families() -> bytes:
    n = len(SOCKET_FAMILIES)
    tests = b"".join(_op(_IF_EQUAL, family, n - i, 0) for i, family in enumerate(SOCKET_FAMILIES))
    return _op(_LOAD, _ARG0) + tests + _fail(errno.EAFNOSUPPORT) + _op(_RETURN, _ALLOW)


def _no_ioctls() -> bytes:
    n = len(DENIED_IOCTLS)
    tests = b"".join(_op(_IF_EQUAL, ioctl, n - i, 0) for i, ioctl in enumerate(DENIED_IOCTLS))
    return _op(_LOAD, _ARG1) + tests + _op(_RETURN, _ALLOW) + _fail(errno.EPERM)


def _no_linger() -> bytes:
    level = _op(_LOAD, _ARG1) + _op(_IF_EQUAL, SOL_SOCKET, 0, 2)
    return level + _op(_LOAD, _ARG2) + _op(_IF_EQUAL, SO_LINGER, 1, 0) + _op(_RETURN, _ALLOW) + _fail(errno.EPERM)


def _no_namespaces() -> bytes:
    return _op(_LOAD, _ARG0) + _op(_IF_ANY_BIT, NAMESPACE_FLAGS, 1, 0) + _op(_RETURN, _ALLOW) + _fail(errno.EPERM)


def program(machine: str | None = None) -> bytes:
    """The filter for `machine` (default: this one) as an array of struct sock_filter; raises `SandboxUnavailable`."""
    machine = machine or platform.machine()
    arch = ARCHITECTURES.get(machine)
    if arch is None:
        raise SandboxUnavailable(f"no system call filter for {machine}: Pilotlight knows {', '.join(ARCHITECTURES)}")
    denied = (numbers[arch.column] for numbers in DENIED.values())
    kill_x32 = _op(_IF_AT_LEAST, X32_BIT, 0, 1) + _op(_RETURN, _KILL) if arch.has_x32 else b""
    return b"".join(
        (
            _op(_LOAD, _ARCH) + _op(_IF_EQUAL, arch.audit, 1, 0) + _op(_RETURN, _KILL),
            _op(_LOAD, _NUMBER) + kill_x32,
            _on_call(CLONE3, _fail(errno.ENOSYS)),
            *(_on_call(number, _fail(errno.EPERM)) for number in denied if number is not None),
            _on_call(arch.clone, _no_namespaces()),
            _on_call(arch.socket, _only_families()),
            _on_call(arch.ioctl, _no_ioctls()),
            _on_call(arch.setsockopt, _no_linger()),
            _op(_RETURN, _ALLOW),
        )
    )
