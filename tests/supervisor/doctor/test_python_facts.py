"""The interpreter, and the environments of functions."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import pytest

from pilotlight_supervisor.doctor.finding import Health
from pilotlight_supervisor.doctor.python_facts import BaseTrial, PythonFacts, python_findings, read_python

BASE = BaseTrial(name="vllm", path="/opt/vllm", release="1.2.3", problem="")
GOOD = PythonFacts(version=(3, 12, 1), release="1.2.3", missing={}, bases=(BASE,))


def test_a_good_interpreter_has_nothing_to_say() -> None:
    """With an environment of the same release."""
    assert {each.health for each in python_findings(GOOD)} == {Health.OK}


@pytest.mark.parametrize(
    ("facts", "name", "health", "todo"),
    [
        (replace(GOOD, version=(3, 10, 9)), "Python", "fail", "python3.11"),
        (replace(GOOD, missing={"server": ("uvloop",), "aws": ("boto3",)}), "packages", "fail", "[server,aws]"),
        (
            replace(GOOD, bases=(replace(BASE, problem="--base vllm: there is no interpreter"),)),
            "base environment vllm", "fail", "/opt/vllm/bin/pip install pilotlight==1.2.3",
        ),
        (replace(GOOD, bases=(replace(BASE, release="1.1.0"),)), "base environment vllm", "warn", "pilotlight==1.2.3"),
    ],
)  # fmt: skip
def test_each_fault_fails_its_own_line(facts: PythonFacts, name: str, health: str, todo: str) -> None:
    """With what installs it."""
    (bad,) = (each for each in python_findings(facts) if each.health is not Health.OK)

    assert (bad.name, bad.health) == (name, health)
    assert todo in bad.todo


def test_this_interpreter_and_its_environments_are_read(tmp_path: Path) -> None:
    """One that is none is named as an agent would name it; this one's own packages are all there."""
    facts = read_python(["server"], [f"empty={tmp_path}"], "bubblewrap")

    assert facts.version == sys.version_info[:3]
    assert facts.missing == {}
    (base,) = facts.bases
    assert (base.name, base.release) == ("empty", "")
    assert "there is no interpreter" in base.problem


def test_the_release_in_an_environment_is_found(tmp_path: Path) -> None:
    """By what installers leave there."""
    (tmp_path / "lib/python3.12/site-packages/pilotlight-9.8.7.dist-info").mkdir(parents=True)

    assert read_python([], [f"old={tmp_path}"], "bubblewrap").bases[0].release == "9.8.7"
