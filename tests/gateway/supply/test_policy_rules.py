"""Each rule names what it objects to, and objects to nothing else."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import msgspec
import pytest

from pilotlight_core.model.spec import ArtifactEntry, ArtifactKind, ArtifactPart
from pilotlight_core.model.supply.findings import MOST_FINDINGS, PolicyOwner, VulnerabilityData, verdict_of
from pilotlight_core.model.supply.policies import IgnoredVulnerability, Policy, PolicyMode, Severity
from pilotlight_gateway.supply.osv_documents import KnownVulnerability
from pilotlight_gateway.supply.policy_rules import SupplyFacts, age_warning, findings_of
from tests.builders.specs import function_spec, manifest
from tests.builders.supply import AT, BASE, DAY_S, lock_of

FILES = ("good.safetensors", "bad.bin", "hidden.safetensors")
WEIGHTS = ArtifactEntry(
    kind=ArtifactKind.WEIGHTS, name="tiny", parts=tuple(ArtifactPart(path, "1" * 64, 1) for path in FILES)
)
FACTS = SupplyFacts(
    manifest=msgspec.structs.replace(
        manifest(function_spec("rank")), artifacts=(WEIGHTS,), lock=lock_of(requests="2.31.0", tqdm="4.66")
    ),
    at=AT,
    base=BASE,
    licences={"pkg:pypi/requests@2.31.0": "Apache-2.0", "pkg:pypi/tqdm@4.66": "MPL-2.0 AND MIT"},
    pickled=frozenset({"tiny/hidden.safetensors"}),
)


def known(*found: KnownVulnerability) -> SupplyFacts:
    """Facts with vulnerabilities of requests, in data of yesterday."""
    data = VulnerabilityData(published_at=AT - DAY_S, age_s=DAY_S, entries=1)
    return replace(FACTS, data=data, known=lambda name, _: list(found) if name == "requests" else [])


def one(id_: str, severity: Severity | None, *aliases: str) -> KnownVulnerability:
    return KnownVulnerability(id_, aliases, (("", severity),) if severity is not None else ())


def said(policy: Policy, facts: SupplyFacts = FACTS) -> list[tuple[str, str]]:
    return [(each.rule.value, each.component) for each in findings_of(policy, PolicyOwner.TENANT, facts)]


@pytest.mark.parametrize(
    ("policy", "found"),
    [
        (Policy(), []),
        (Policy(signed=True), [("signature", "code"), ("signature", "tiny")]),
        (Policy(bases=("torch", "default@bbbbbbbb")), []),
        (Policy(bases=("default@bbb", "torch")), [("base", "default")]),
        (Policy(no_pickles=True), [("pickle", "tiny/bad.bin"), ("pickle", "tiny/hidden.safetensors")]),
        (Policy(deny_packages=("requests<2.32",)), [("package", "pkg:pypi/requests@2.31.0")]),
        (Policy(deny_packages=("requests<2.31", "tqdm==4.67")), []),
        (Policy(deny_packages=("strange*",)), [("package", "pkg:pypi/strange-pack@1.0")]),
        (
            Policy(deny_licences=("MPL-*",)),
            [("licence", "pkg:pypi/strange-pack@1.0"), ("licence", "pkg:pypi/tqdm@4.66")],
        ),
        (
            Policy(allow_licences=("Apache-2.0", "MIT", "BSD-3-Clause", "MPL-2.0")),
            [("licence", "pkg:pypi/strange-pack@1.0"), ("licence", "pkg:pypi/unknown@0.1")],
        ),
    ],
)
def test_a_rule_objects_to_what_it_names(policy: Policy, found: list[tuple[str, str]]) -> None:
    """In the base environment, in the lock, and in models."""
    assert said(policy) == found


def test_a_base_that_no_node_describes_is_an_unknown_one() -> None:
    """Whatever it is called."""
    assert said(Policy(bases=("*",)), replace(FACTS, base=None)) == [("base", "default")]


def test_signatures_that_do_not_hold_say_why() -> None:
    """And those that do are enough."""
    both = replace(FACTS, signed_by={"code": "k", "tiny": "k"})
    lost = replace(FACTS, signed_by={"code": "k"}, unsigned={"tiny": "Its key was revoked."})

    assert said(Policy(signed=True), both) == []
    (found,) = findings_of(Policy(signed=True), PolicyOwner.OPERATOR, lost)
    assert (found.says, found.of) == ("Its key was revoked.", PolicyOwner.OPERATOR)


@pytest.mark.parametrize(
    ("least", "ignored", "shown"),
    [
        (Severity.LOW, (), ["A", "B", "C"]),
        (Severity.HIGH, (), ["A", "C"]),
        (Severity.HIGH, (IgnoredVulnerability(id="CVE-1", reason="unused"),), ["C"]),
        (Severity.HIGH, (IgnoredVulnerability(id="A", reason="unused", ends_at=AT - 1),), ["A", "C"]),
    ],
)
def test_vulnerabilities_count_from_a_severity_on_unless_somebody_has_looked(
    least: Severity, ignored: tuple[IgnoredVulnerability, ...], shown: list[str]
) -> None:
    """One without a severity counts as any, and to have looked may end."""
    facts = known(one("A", Severity.CRITICAL, "CVE-1"), one("B", Severity.LOW), one("C", None))
    found = findings_of(Policy(vulnerabilities=least, ignore=ignored), PolicyOwner.TENANT, facts)

    assert [each.says.split()[4] for each in found] == shown
    assert {each.component for each in found} == {"pkg:pypi/requests@2.31.0"}


@pytest.mark.parametrize(
    ("days", "age", "found"),
    [(0.0, 30 * DAY_S, []), (7.0, 6 * DAY_S, []), (7.0, 8 * DAY_S, [("data-age", "osv")])],
)
def test_old_data_is_found_where_a_policy_says_how_old(days: float, age: float, found: list[Any]) -> None:
    """And told of in any case after a week."""
    data = VulnerabilityData(published_at=AT - age, age_s=age, entries=1)
    facts = replace(FACTS, data=data)

    assert said(Policy(vulnerabilities=Severity.LOW, data_days=days), facts) == found
    assert bool(age_warning(facts)) is (age > 7 * DAY_S)


def test_without_data_nothing_is_known_to_be_well() -> None:
    """A policy about vulnerabilities is not fulfilled by knowing none."""
    assert said(Policy(vulnerabilities=Severity.LOW)) == [("data-age", "osv")]
    broken = replace(FACTS, data_fault="The file cannot be read.")
    (found,) = findings_of(Policy(vulnerabilities=Severity.LOW), PolicyOwner.TENANT, broken)
    assert found.says == "The file cannot be read."


def test_a_verdict_is_bounded_and_says_first_what_refuses() -> None:
    """The rest is counted."""
    warned = findings_of(Policy(deny_packages=("requests",)), PolicyOwner.OPERATOR, FACTS)
    enforced = findings_of(Policy(mode=PolicyMode.ENFORCE, signed=True), PolicyOwner.TENANT, FACTS)
    verdict = verdict_of([*warned * MOST_FINDINGS, *enforced], AT, None, {"tenant": 3})

    assert [each.rule.value for each in verdict.findings[:3]] == ["signature", "signature", "package"]
    assert (len(verdict.findings), verdict.more, len(verdict.refused)) == (MOST_FINDINGS, 2, 2)
