"""docs/hosts.md shows what a user reads: the lines of a host that has these faults."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

from pilotlight_runtime.node.guarantee_check import GuaranteeCheck
from pilotlight_supervisor.doctor.clock_facts import ClockOffset, clock_findings
from pilotlight_supervisor.doctor.finding import Finding, HostRole, report
from pilotlight_supervisor.doctor.kernel_facts import kernel_findings
from pilotlight_supervisor.doctor.machine_facts import machine_findings
from pilotlight_supervisor.doctor.network_facts import WayOut, reach_findings, way_out_findings
from pilotlight_supervisor.doctor.python_facts import python_findings
from pilotlight_supervisor.doctor.sandbox_facts import sandbox_findings
from pilotlight_supervisor.doctor.storage_facts import SecretFile, secret_file_findings, storage_findings
from tests.supervisor.doctor import (
    test_kernel_facts,
    test_machine_facts,
    test_network_facts,
    test_python_facts,
    test_sandbox_facts,
    test_storage_facts,
)

PAGE = Path(__file__).parents[3] / "docs" / "hosts.md"
AT = test_network_facts.AT
AS_USER = GuaranteeCheck(
    name="sandbox starts", ok=False, detail="bwrap: setting up uid map: Permission denied",
    consequence="no container can start on this node",
)  # fmt: skip


def the_findings() -> list[Finding]:
    """Of a fresh machine with Ubuntu 24.04, whose state folder is on NFS and whose clock nobody keeps."""
    kernel = test_kernel_facts.without(test_kernel_facts.GOOD, kernel__apparmor_restrict_unprivileged_userns="1")
    storage = replace(test_storage_facts.GOOD, state_dir="/srv/state", folder="/srv/state", filesystem="nfs4")
    return [
        *kernel_findings(kernel),
        *machine_findings(replace(test_machine_facts.GOOD, ports={}), HostRole.NODE),
        *storage_findings(storage, HostRole.NODE),
        *secret_file_findings([SecretFile(path="/etc/pilotlight/node.json", mode=0o644)]),
        *python_findings(replace(test_python_facts.GOOD, bases=())),
        *sandbox_findings(replace(test_sandbox_facts.GOOD, version="0.9.0", checks=(AS_USER,)), "bubblewrap"),
        *way_out_findings(WayOut(name_servers=("127.0.0.53",), has_route=True)),
        *reach_findings(test_network_facts.BUS, AT),
        *reach_findings(test_network_facts.API, AT, good=(200,)),
        *clock_findings(
            kept=False, offsets=(ClockOffset(of="the gateway", ahead_s=4.3, within_s=0.6),)
        ),
    ]  # fmt: skip


def test_the_page_shows_what_the_command_prints() -> None:
    """To the letter; `report` prints it when it has changed."""
    text = PAGE.read_text()
    block = re.search(r"\$ sudo pilotlight doctor [^\n]*\n(.*?)```", text, re.DOTALL)

    assert block is not None
    assert block[1] == report(the_findings(), HostRole.NODE)
