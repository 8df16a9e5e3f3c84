"""What policies say of a version: findings, each with its rule and its component, and the verdict that they make."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import msgspec
from msgspec import Meta

MOST_FINDINGS = 200
"""Of one verdict; more are counted."""


class PolicyRule(StrEnum):
    """What is looked at."""

    SIGNATURE = "signature"  # that a trusted key has signed code and artifacts
    BASE = "base"  # that the base environment is a known one
    PICKLE = "pickle"  # that no file runs code when it is read
    PACKAGE = "package"  # that no package is denied
    LICENCE = "licence"  # that no package's licence is denied
    VULNERABILITY = "vulnerability"  # that no package has known vulnerabilities
    DATA_AGE = "data-age"  # that what is known of vulnerabilities is not old


class PolicyOwner(StrEnum):
    """Whose policy."""

    OPERATOR = "operator"
    TENANT = "tenant"


class PolicyFinding(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that a policy objects to."""

    rule: PolicyRule
    component: str
    """A package URL, a file, an artifact, or `code`."""
    says: str
    """A sentence."""
    of: PolicyOwner
    enforced: bool = False
    """Whether a deploy is refused for it."""


class VulnerabilityData(msgspec.Struct, frozen=True, kw_only=True):
    """What a verdict knew of vulnerabilities."""

    published_at: float
    """Unix seconds of its newest entry."""
    age_s: float
    """At the verdict."""
    entries: int
    foreign: int = 0
    """Entries about packages of other indexes, which were passed over."""
    sha256: str = ""


class PolicyVerdict(msgspec.Struct, frozen=True, kw_only=True):
    """What the policies of an instant say of a version."""

    at: float
    """Unix seconds."""
    findings: Annotated[tuple[PolicyFinding, ...], Meta(max_length=MOST_FINDINGS)] = ()
    more: int = 0
    """Findings beyond those."""
    data: VulnerabilityData | None = None
    """None: the platform has none."""
    policies: dict[str, int] = {}
    """By `PolicyOwner`, the revision of the policy that was held against it."""

    @property
    def refused(self) -> tuple[PolicyFinding, ...]:
        """Those for which a deploy is refused."""
        return tuple(each for each in self.findings if each.enforced)


def verdict_of(
    findings: list[PolicyFinding], at: float, data: VulnerabilityData | None, policies: dict[str, int]
) -> PolicyVerdict:
    """A bounded verdict: what is enforced comes first."""
    ordered = sorted(findings, key=lambda each: (not each.enforced, each.rule, each.component, each.of))
    return PolicyVerdict(
        at=at,
        findings=tuple(ordered[:MOST_FINDINGS]),
        more=max(0, len(ordered) - MOST_FINDINGS),
        data=data,
        policies=policies,
    )


class VerdictRecord(msgspec.Struct, frozen=True, kw_only=True):
    """What was last said of a version that runs. Key: `verdict.{version id}`."""

    version: str
    tenant: str
    verdict: PolicyVerdict
    keys: str = ""
    """A digest of the tenant's record of keys, as it was then; "": nothing is signed of it."""
