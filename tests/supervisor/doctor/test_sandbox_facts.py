"""The guarantees of the node check, as findings."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pilotlight_runtime.node.guarantee_check import GuaranteeCheck
from pilotlight_supervisor.doctor import sandbox_facts
from pilotlight_supervisor.doctor.finding import Health
from pilotlight_supervisor.doctor.sandbox_facts import (
    SandboxFacts,
    check_node,
    guarantee_findings,
    read_sandbox,
    sandbox_findings,
)

HELD = GuaranteeCheck(name="memory limit", ok=True, detail="ended as: memory", consequence="never seen")
GOOD = SandboxFacts(program="/usr/bin/bwrap", version="0.8.0", is_setuid=False, checks=(HELD,))


def test_a_good_node_has_nothing_to_say() -> None:
    """A line for the program, and one for each guarantee."""
    found = list(sandbox_findings(GOOD, "bubblewrap"))

    assert [(each.name, each.health) for each in found] == [("bubblewrap", "ok"), ("memory limit", "ok")]


@pytest.mark.parametrize(
    ("facts", "name", "todo"),
    [
        (replace(GOOD, program="", version=""), "bubblewrap", "apt-get install -y bubblewrap"),
        (replace(GOOD, version="0.6.1"), "bubblewrap", "apt-get install -y bubblewrap"),
        (replace(GOOD, is_setuid=True), "bubblewrap's mode", "chmod u-s /usr/bin/bwrap"),
        (replace(GOOD, checks=(replace(HELD, ok=False),)), "memory limit", "Delegate=yes"),
        (replace(GOOD, checks=(), problem="no answer within 60 s"), "node check", "pilotlight node check"),
    ],
)
def test_each_fault_fails_its_own_line(facts: SandboxFacts, name: str, todo: str) -> None:
    """With what to do."""
    (bad,) = (each for each in sandbox_findings(facts, "bubblewrap") if each.health is not Health.OK)

    assert (bad.name, bad.health) == (name, Health.FAIL)
    assert todo in bad.todo


def test_the_consequence_is_what_was_expected_not_to_be() -> None:
    """A guarantee that is missing says what it means for the node; every one has something to do."""
    (line,) = guarantee_findings([GuaranteeCheck(name="own host uid", ok=False, detail="uid 0", consequence="trouble")])

    assert (line.found, line.expected) == ("uid 0", "it holds; else trouble")
    assert line.todo


def test_a_driver_that_is_not_kept_awake_is_a_warning() -> None:
    """It is no gap of the node check."""
    lazy = GuaranteeCheck(name="gpu persistence", ok=True, detail="off: 1, on: 1", consequence="")
    (line,) = guarantee_findings([lazy])
    (well,) = guarantee_findings([replace(lazy, detail="on")])

    assert (line.health, line.todo, well.health) == ("warn", "nvidia-smi -pm 1", "ok")


def test_this_node_is_checked_in_a_process_of_its_own() -> None:
    """The same lines as `pilotlight node check` has."""
    facts = read_sandbox("bubblewrap")

    assert facts.problem == ""
    assert {"no network", "memory limit"} <= {check.name for check in facts.checks}
    assert facts.version


def test_a_check_that_hangs_is_left_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    """With all that it started."""
    monkeypatch.setattr(sandbox_facts, "CHECK_S", 0.01)

    assert check_node("bubblewrap") == ((), "no answer within 0 s")


def test_a_check_that_cannot_run_says_why() -> None:
    """Its last words."""
    checks, problem = check_node("nonsense")

    assert checks == () or not checks[0].ok
    assert problem or "nonsense" in checks[0].detail
