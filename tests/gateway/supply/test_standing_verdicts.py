"""What runs is looked at each day and after a change, and what is new is told once."""

from __future__ import annotations

import msgspec
import pytest

from pilotlight_core.model.supply.findings import (
    PolicyFinding,
    PolicyOwner,
    PolicyRule,
    PolicyVerdict,
    VerdictRecord,
    VulnerabilityData,
    verdict_of,
)
from pilotlight_gateway.supply.standing_verdicts import EVENTS_OF_ONE, events_of, is_due, new_findings
from tests.builders.specs import version_record
from tests.builders.supply import AT, DAY_S

DATA = VulnerabilityData(published_at=AT, age_s=0.0, entries=1, sha256="a")


def finding(component: str, says: str = "It is denied.", rule: PolicyRule = PolicyRule.PACKAGE) -> PolicyFinding:
    return PolicyFinding(rule=rule, component=component, says=says, of=PolicyOwner.TENANT)


def verdict(*findings: PolicyFinding) -> PolicyVerdict:
    return verdict_of(list(findings), AT, DATA, {"tenant": 1})


@pytest.mark.parametrize(
    ("at", "policies", "data", "keys", "due"),
    [
        (AT + 10, {"tenant": 1}, "a", "k", False),
        (AT + 10, {"tenant": 1}, "", "k", False),
        (AT + DAY_S, {"tenant": 1}, "a", "k", True),
        (AT + 10, {"tenant": 2}, "a", "k", True),
        (AT + 10, {"tenant": 1, "operator": 1}, "a", "k", True),
        (AT + 10, {"tenant": 1}, "b", "k", True),
        (AT + 10, {"tenant": 1}, "a", "other", True),
    ],
)
def test_a_version_is_due(at: float, policies: dict[str, int], data: str, keys: str, due: bool) -> None:
    """After a day, after a change of a policy, and after one of what is known or of the tenant's keys."""
    before = VerdictRecord(version="v", tenant="acme", verdict=verdict(), keys="k")
    assert is_due(before, at, policies, data, keys) is due
    assert is_due(None, at, policies, data, keys)


def test_only_what_was_not_there_before_is_new() -> None:
    """Another vulnerability of the same package is; other words about the same are not."""
    one, other = (finding("pkg", f"It has {name}.", PolicyRule.VULNERABILITY) for name in "AB")

    assert new_findings(verdict(finding("a"), one), verdict(finding("a", "Other words."), one, other)) == [other]
    assert new_findings(None, verdict(one)) == [one]


def test_what_was_a_warning_and_refuses_by_now_is_new() -> None:
    """A policy is enforced since; the other way round is told too, as both change what a deploy comes to."""
    warned = finding("a")
    refused = msgspec.structs.replace(warned, enforced=True)

    assert new_findings(verdict(warned), verdict(refused)) == [refused]
    assert new_findings(verdict(refused), verdict(refused)) == []


def test_events_name_the_version_the_rule_and_the_component() -> None:
    """And are few, however many findings there are."""
    version = version_record(app="shop", tenant="acme")
    told = events_of(version, [finding(f"p{number}") for number in range(EVENTS_OF_ONE + 3)], AT)

    assert len(told) == EVENTS_OF_ONE
    assert told[0].says == f"{version.ref}: It is denied."
    assert told[-1].says.endswith("And 3 more.")
    assert (told[0].kind, told[0].tenant, told[0].facts["component"]) == ("policy.found", "acme", "p0")
