"""What sandboxes need of a kernel: each fault fails its own line, and no other."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pilotlight_supervisor.doctor.finding import Health
from pilotlight_supervisor.doctor.kernel_facts import (
    ControlGroups,
    KernelFacts,
    kernel_findings,
    read_kernel,
    server_kernel_findings,
)

SETTINGS = {
    "user/max_user_namespaces": "65536", "kernel/pid_max": "4194304", "vm/overcommit_memory": "0",
    "kernel/seccomp/actions_avail": "kill_process kill_thread trap errno user_notif trace log allow",
    "fs/inotify/max_user_instances": "128", "fs/inotify/max_user_watches": "8192", "fs/file-max": "1000000",
}  # fmt: skip
GROUPS = ControlGroups(versions={"memory": 2, "pids": 2, "cpu": 2}, writable=True)
GOOD = KernelFacts(
    release="6.8.0-41-generic", machine="x86_64", is_root=True, settings=SETTINGS, proc="rw,relatime", groups=GROUPS,
    flags=frozenset({"aes", "avx2", "sse4_2"}),
)  # fmt: skip


def without(facts: KernelFacts, **settings: str) -> KernelFacts:
    """With other settings; underscores stand for the first slash."""
    return replace(
        facts, settings={**facts.settings, **{name.replace("__", "/"): text for name, text in settings.items()}}
    )


def test_a_good_kernel_has_nothing_to_say() -> None:
    """Neither for a node nor for servers."""
    assert {each.health for each in (*kernel_findings(GOOD), *server_kernel_findings(GOOD))} == {Health.OK}


@pytest.mark.parametrize(
    ("facts", "name", "health"),
    [
        (replace(GOOD, release="5.2.21"), "kernel", "fail"),
        (replace(GOOD, release="none"), "kernel", "fail"),
        (without(GOOD, user__max_user_namespaces="0"), "user namespaces", "fail"),
        (without(GOOD, kernel__unprivileged_userns_clone="0"), "user namespaces of users", "fail"),
        (without(GOOD, kernel__apparmor_restrict_unprivileged_userns="1"), "AppArmor and namespaces", "fail"),
        (replace(GOOD, groups=ControlGroups(versions={"pids": 2, "cpu": 2}, writable=True)), "control groups", "fail"),
        (replace(GOOD, groups=replace(GROUPS, writable=False)), "control groups", "fail"),
        (without(GOOD, **{"kernel__seccomp/actions_avail": "kill_thread trap"}), "seccomp", "fail"),
        (replace(GOOD, proc="rw,hidepid=2"), "/proc", "fail"),
        (replace(GOOD, proc_masks=("/proc/kcore",)), "/proc", "fail"),
        (without(GOOD, kernel__pid_max="4096"), "processes", "warn"),
        (without(GOOD, vm__overcommit_memory="2"), "memory promises", "fail"),
        (without(GOOD, **{"fs__inotify/max_user_instances": "8"}), "watches of files", "warn"),
        (replace(GOOD, flags=frozenset({"aes"})), "processor", "warn"),
        (replace(GOOD, machine="riscv64"), "processor", "warn"),
    ],
)
def test_each_fault_fails_its_own_line(facts: KernelFacts, name: str, health: str) -> None:
    """With what was expected, and what to do."""
    (bad,) = (each for each in kernel_findings(facts) if each.health is not Health.OK)

    assert (bad.name, bad.health) == (name, health)
    assert bad.expected
    assert bad.todo


def test_few_open_files_of_all_are_told_of_servers() -> None:
    """A warning, with the command."""
    (bad,) = (each for each in server_kernel_findings(without(GOOD, **{"fs__file-max": "9000"})) if each.todo)

    assert (bad.name, bad.health, bad.todo) == ("open files of all", "warn", "sysctl -w fs.file-max=1048576")


def test_a_profile_lets_bubblewrap_where_users_have_no_namespaces() -> None:
    """As Ubuntu's extra profiles do."""
    facts = replace(
        without(GOOD, kernel__apparmor_restrict_unprivileged_userns="1"),
        apparmor_profiles=("bwrap-userns-restrict",),
    )

    (line,) = (each for each in kernel_findings(facts) if each.name == "AppArmor and namespaces")
    assert line.health is Health.OK
    assert "bwrap-userns-restrict" in line.found


@pytest.fixture
def machine(tmp_path: Path) -> Path:
    """The files of a machine with control groups of version 2, in a container that covers parts of /proc."""
    groups = tmp_path / "groups"
    files = {
        "proc/self/mountinfo": (
            f"1 0 8:1 / / rw - ext4 /dev/sda rw\n2 1 0:5 / /proc rw,relatime - proc proc rw,hidepid=2\n"
            f"3 2 0:6 / /proc/kcore rw - tmpfs tmpfs rw\n4 1 0:7 / {groups} rw - cgroup2 cgroup2 rw\n"
        ),
        "proc/self/cgroup": "0::/agent.service\n",
        "proc/cpuinfo": "processor : 0\nflags\t\t: fpu aes avx2\n",
        "proc/sys/user/max_user_namespaces": "12\n",
        "etc/apparmor.d/bwrap-userns-restrict": "",
        "groups/cgroup.controllers": "cpu memory pids\n",
        "groups/agent.service/cgroup.controllers": "memory pids\n",
    }
    for name, text in files.items():
        file = tmp_path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    return tmp_path


def test_facts_are_read_from_the_files_of_a_machine(machine: Path) -> None:
    """A controller counts that a group above may hand down."""
    facts = read_kernel(machine)

    expected: dict[str, Any] = {
        "settings": {"user/max_user_namespaces": "12"},
        "flags": frozenset({"fpu", "aes", "avx2"}),
        "proc": "rw,relatime - proc proc rw,hidepid=2",
        "proc_masks": ("/proc/kcore",),
        "groups": ControlGroups(versions={"cpu": 2, "memory": 2, "pids": 2}, writable=True),
        "apparmor_profiles": ("bwrap-userns-restrict",),
    }
    assert {name: getattr(facts, name) for name in expected} == expected


def test_this_machine_can_be_read() -> None:
    """Whatever it is."""
    facts = read_kernel()

    assert facts.release
    assert facts.number("user/max_user_namespaces") is not None
    assert len(list(kernel_findings(facts))) >= 9
