"""Policies about what versions may be made of: the operator's for all, and each tenant's for itself."""

from __future__ import annotations

import re
from enum import StrEnum
from typing import Annotated

import msgspec
from msgspec import Meta

from pilotlight_core.model.errors import BadInput
from pilotlight_core.model.supply.licences import LicenceFault, can_have

POLICY_KEYS = "policy."
OPERATORS_POLICY = "policy.platform.operator"
"""Of three parts, so that no tenant's is called so."""
MOST_NAMED = 500
Names = Annotated[tuple[Annotated[str, Meta(min_length=1, max_length=200)], ...], Meta(max_length=MOST_NAMED)]
DATA_DAYS = 7.0
"""Older data of vulnerabilities is told of in each verdict."""
_CLAUSE = r"(?:===|[<>=!~]=|[<>])[^,\s<>=!~]+"
_PACKAGE = re.compile(rf"[A-Za-z0-9*](?:[A-Za-z0-9._*-]{{0,126}}[A-Za-z0-9*])?(?:{_CLAUSE}(?:,{_CLAUSE})*,?)?")


class PolicyMode(StrEnum):
    """What findings do."""

    WARN = "warn"  # they are told
    ENFORCE = "enforce"  # a deploy with one is refused


class Severity(StrEnum):
    """How grave a vulnerability is, at least."""

    LOW = "low"
    MODERATE = "moderate"
    HIGH = "high"
    CRITICAL = "critical"


SEVERITIES = (Severity.LOW, Severity.MODERATE, Severity.HIGH, Severity.CRITICAL)


class IgnoredVulnerability(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One that somebody has looked at."""

    id: Annotated[str, Meta(min_length=1, max_length=64)]
    """Its id, or another name of it, such as a CVE's."""
    reason: Annotated[str, Meta(min_length=1, max_length=300)]
    ends_at: float = 0.0
    """Unix seconds; 0: for good."""


class Policy(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """What is looked for; what is not named is not."""

    mode: PolicyMode = PolicyMode.WARN
    signed: bool = False
    """Code and artifacts have to be signed by keys that the tenant has on record."""
    bases: Names = ()
    """Base environments that may be used, if a node tells their packages: names, or NAME@ and the first eight or more
    digits of their packages' digest."""
    no_pickles: bool = False
    """No file of an artifact may be a pickle, by its name or by its first bytes."""
    deny_packages: Names = ()
    """Names, with `*`, perhaps with versions: `requests<2.32`."""
    deny_licences: Names = ()
    """SPDX ids, with `*`: `AGPL-*`."""
    allow_licences: Names = ()
    """Those alone; a package without a known licence is none of them."""
    vulnerabilities: Severity | None = None
    """Known ones from this severity on; one without a severity counts as any."""
    ignore: Annotated[tuple[IgnoredVulnerability, ...], Meta(max_length=MOST_NAMED)] = ()
    data_days: Annotated[float, Meta(ge=0.0, le=3_650.0)] = 0.0
    """So old what is known of vulnerabilities may be; 0: that it is older than a week is told, and no finding."""

    @property
    def needs_licences(self) -> bool:
        return bool(self.deny_licences or self.allow_licences)

    @property
    def needs_data(self) -> bool:
        return self.vulnerabilities is not None


class PolicyRecord(msgspec.Struct, frozen=True, kw_only=True):
    """Key: `policy.{tenant}`, or `OPERATORS_POLICY`."""

    tenant: str
    """"": the operator's."""
    policy: Policy
    revision: int
    """Counts from 1."""
    changed_at: float
    """Unix seconds."""
    changed_by: str = ""
    """The id of the API key."""


def check_policy(policy: Policy) -> None:
    """Raises BadInput, naming the field."""
    for name in policy.deny_packages:
        found = _PACKAGE.fullmatch(name)
        if found is None:
            raise BadInput(
                f'deny_packages: {name!r}: expected a package, perhaps with versions, such as "requests<2.32".',
                field="deny_packages",
            )
    for field, names in (("deny_licences", policy.deny_licences), ("allow_licences", policy.allow_licences)):
        for name in names:
            _check_licence(field, name)
    known = {each.id for each in policy.ignore}
    if len(known) < len(policy.ignore):
        raise BadInput("ignore: an id stands there twice.", field="ignore")


def _check_licence(field: str, name: str) -> None:
    try:
        can_have(name.replace("*", "x"), lambda _: True)
    except LicenceFault as error:
        raise BadInput(
            f"{field}: {name!r}: {error}; expected an SPDX id, such as MIT or AGPL-*.", field=field
        ) from None
    if " " in name.strip().replace(" WITH ", ""):
        raise BadInput(f"{field}: {name!r}: expected one SPDX id, and no expression.", field=field)
