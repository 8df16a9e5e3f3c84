"""What a machine has room for."""

from __future__ import annotations

import socket
from dataclasses import replace
from pathlib import Path

import pytest

from pilotlight_supervisor.doctor.finding import Health, HostRole
from pilotlight_supervisor.doctor.machine_facts import GIB, MachineFacts, machine_findings, read_machine

GOOD = MachineFacts(memory=64 * GIB, available=60 * GIB, swap=0, cores=16, open_files=1 << 20, ports={8470: ""})


def test_a_good_machine_has_nothing_to_say() -> None:
    """For any role."""
    assert {each.health for role in HostRole for each in machine_findings(GOOD, role)} == {Health.OK}


@pytest.mark.parametrize(
    ("facts", "name", "health"),
    [
        (replace(GOOD, memory=3 * GIB), "memory", "warn"),
        (replace(GOOD, available=GIB // 2), "memory", "warn"),
        (replace(GOOD, swap=GIB), "swap", "warn"),
        (replace(GOOD, open_files=1024), "open files", "warn"),
        (replace(GOOD, ports={8470: "taken by another process"}), "port 8470", "fail"),
    ],
)
def test_each_fault_fails_its_own_line(facts: MachineFacts, name: str, health: str) -> None:
    """With what to do."""
    (bad,) = (each for each in machine_findings(facts, HostRole.NODE) if each.health is not Health.OK)

    assert (bad.name, bad.health) == (name, health)
    assert bad.todo


def test_swap_concerns_nodes_alone() -> None:
    """Values of secrets are in the memory of functions."""
    lines = list(machine_findings(replace(GOOD, swap=GIB), HostRole.GATEWAY))

    assert "swap" not in {each.name for each in lines}


def test_facts_are_read(tmp_path: Path) -> None:
    """Sizes from the kernel's file; a port that is listened at is not free, and the others are left alone."""
    meminfo = tmp_path / "meminfo"
    meminfo.write_text("MemTotal:       2048 kB\nMemAvailable:   1024 kB\nSwapTotal:         4 kB\nHugePages: 0\n")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        facts = read_machine([port], meminfo)

    assert (facts.memory, facts.available, facts.swap) == (2 << 20, 1 << 20, 4 << 10)
    assert facts.ports == {port: "taken by another process"}
    assert facts.cores >= 1
    assert read_machine([port], meminfo).ports == {port: ""}
