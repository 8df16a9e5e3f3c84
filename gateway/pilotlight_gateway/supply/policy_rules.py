"""What a policy says of a version, from facts about it. Pure; the rules are tried in this order.

signature      code and each artifact, by a key on record
base           a named base environment; its packages are known, where a rule is about packages
pickle         no file of an artifact is one, by name or first bytes
package        no denied name and version
licence        no denied licence; if some are allowed, no other and no unknown one
vulnerability  none of the severity and above, but ignored ones
data-age       what is known of vulnerabilities is there, and no older than the policy says
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase

from packaging.specifiers import InvalidSpecifier, SpecifierSet

from pilotlight_core.host.supply.tenant_signatures import CODE
from pilotlight_core.model.packages.requirement_texts import normal_name
from pilotlight_core.model.spec import Manifest
from pilotlight_core.model.supply.findings import PolicyFinding, PolicyOwner, PolicyRule, VulnerabilityData
from pilotlight_core.model.supply.inventories import BaseInventory, PackageFact
from pilotlight_core.model.supply.licences import LicenceFault, refusing_part
from pilotlight_core.model.supply.policies import DATA_DAYS, SEVERITIES, Policy, PolicyMode
from pilotlight_core.model.versions.pushed_weights import pickles_in
from pilotlight_gateway.supply.osv_documents import KnownVulnerability

DAY_S = 86_400.0
_DENIED = re.compile(r"(?P<name>[A-Za-z0-9._*-]+)(?P<versions>.*)")
OsvLookup = Callable[[str, str], list[KnownVulnerability]]
"""What is known of a version of a package."""


@dataclass(frozen=True, kw_only=True)
class SupplyFacts:
    """What is known of a version when its policies are asked."""

    manifest: Manifest
    at: float
    """Unix seconds."""
    base: BaseInventory | None = None
    """None: no node has told."""
    licences: Mapping[str, str] = field(default_factory=dict)
    """By package URL, of locked packages."""
    signed_by: Mapping[str, str] = field(default_factory=dict)
    """`code` and artifacts, and the key on record that has signed each."""
    unsigned: Mapping[str, str] = field(default_factory=dict)
    """What is signed by none that counts, and why."""
    pickled: frozenset[str] = frozenset()
    """Files of artifacts (`name/path`) whose first bytes are those of a pickle."""
    data: VulnerabilityData | None = None
    data_fault: str = ""
    """Why the platform's data of vulnerabilities cannot be read."""
    known: OsvLookup = lambda _name, _version: []

    @property
    def packages(self) -> list[PackageFact]:
        """Those of the base environment and those that are locked over it."""
        lock = self.manifest.lock
        locked = [PackageFact(name=each.name, version=each.version) for each in (lock.packages if lock else ())]
        named = [PackageFact(name=p.name, version=p.version, licence=self.licences.get(p.purl, "")) for p in locked]
        return [*(self.base.packages if self.base is not None else ()), *named]


def findings_of(policy: Policy, owner: PolicyOwner, facts: SupplyFacts) -> list[PolicyFinding]:
    """What a policy objects to."""
    enforced = policy.mode is PolicyMode.ENFORCE
    rules = (_signatures, _bases, _pickles, _packages, _licences, _vulnerabilities, _data_age)
    return [
        PolicyFinding(rule=rule, component=component, says=says, of=owner, enforced=enforced)
        for each in rules
        for rule, component, says in each(policy, facts)
    ]


def age_warning(facts: SupplyFacts) -> str:
    """What a deployer hears of data that is old, whatever a policy says of it; "": it is not."""
    if facts.data is None or facts.data.age_s <= DATA_DAYS * DAY_S:
        return ""
    days = facts.data.age_s / DAY_S
    return f"what the platform knows of vulnerabilities is {days:.0f} days old: its operator should renew the OSV file."


_Found = Iterator[tuple[PolicyRule, str, str]]


def _signatures(policy: Policy, facts: SupplyFacts) -> _Found:
    if not policy.signed:
        return
    for name in (CODE, *(artifact.name for artifact in facts.manifest.artifacts if artifact.name != CODE)):
        if name not in facts.signed_by:
            why = facts.unsigned.get(name, "")
            how = "deploy with --sign KEY" if name == CODE else f"deploy with --sign KEY, or --signature {name}=FILE"
            yield PolicyRule.SIGNATURE, name, why or f"{name} is not signed: {how}."
    if any(artifact.name == CODE for artifact in facts.manifest.artifacts):
        # Its name is that of the code's signature, which says nothing of it.
        says = f"The artifact {CODE} cannot be signed, since code is called so: give it another name."
        yield PolicyRule.SIGNATURE, f"artifact:{CODE}", says


def _bases(policy: Policy, facts: SupplyFacts) -> _Found:
    if not (policy.bases or policy.deny_packages or policy.needs_licences or policy.needs_data):
        return
    base, inventory = facts.manifest.base, facts.base
    if inventory is None:
        # Also where any base may be used: what nobody knows of must not pass for what has nothing that is denied.
        says = f"The packages of the base environment {base} are not known: no node tells them now."
        yield PolicyRule.BASE, base, says
        return
    if not policy.bases:
        return
    if not any(_is_base(each, base, inventory.digest) for each in policy.bases):
        shown = ", ".join(policy.bases[:5])
        yield (
            PolicyRule.BASE, base,
            f"The base environment {base}@{inventory.digest[:12]} is none of those that may be used: {shown}.",
        )  # fmt: skip


def _is_base(allowed: str, base: str, digest: str) -> bool:
    name, at, digits = allowed.partition("@")
    return fnmatchcase(base, name) and (not at or (len(digits) >= 8 and digest.startswith(digits)))


def _pickles(policy: Policy, facts: SupplyFacts) -> _Found:
    if not policy.no_pickles:
        return
    for artifact in facts.manifest.artifacts:
        paths = {part.path for part in artifact.parts}
        named = set(pickles_in(paths))
        for path in sorted(paths):
            component = f"{artifact.name}/{path}"
            if component in facts.pickled:
                yield PolicyRule.PICKLE, component, f"{component} is a pickle, which runs code when it is read."
            elif path in named:
                says = f"{component} is a pickle by its name: save it as safetensors, and take the suffix of that."
                yield PolicyRule.PICKLE, component, says


def _packages(policy: Policy, facts: SupplyFacts) -> _Found:
    for package in facts.packages if policy.deny_packages else ():
        for denied in policy.deny_packages:
            if _is_denied(denied, package):
                yield PolicyRule.PACKAGE, package.purl, f"{package.purl} is denied: {denied}."
                break


def _is_denied(denied: str, package: PackageFact) -> bool:
    found = _DENIED.fullmatch(denied)
    if found is None or not fnmatchcase(normal_name(package.name), found["name"].lower().replace("_", "-")):
        return False
    if not found["versions"]:
        return True
    try:
        return SpecifierSet(found["versions"].rstrip(","), prereleases=True).contains(package.version)
    except (InvalidSpecifier, ValueError):
        return True  # what cannot be compared is not let through


def _licences(policy: Policy, facts: SupplyFacts) -> _Found:
    for package in facts.packages if policy.needs_licences else ():
        if not package.licence:
            if policy.allow_licences:
                yield PolicyRule.LICENCE, package.purl, f"{package.purl} has no licence that is known."
            continue
        try:
            part = refusing_part(package.licence, policy.deny_licences, policy.allow_licences)
        except LicenceFault:
            part = package.licence
        if part:
            how = "denied" if not policy.allow_licences else "not among those that are allowed"
            yield (
                PolicyRule.LICENCE,
                package.purl,
                f"{package.purl} has the licence {package.licence}; {part} is {how}.",
            )


def _vulnerabilities(policy: Policy, facts: SupplyFacts) -> _Found:
    least = policy.vulnerabilities
    if least is None:
        return
    ignored = {one.id for one in policy.ignore if not one.ends_at or facts.at < one.ends_at}
    for package in facts.packages:
        for each in facts.known(package.name, package.version):
            if ignored & {each.id, *each.aliases}:
                continue
            severity = each.severity
            if severity is not None and SEVERITIES.index(severity) < SEVERITIES.index(least):
                continue
            grave = severity.value if severity is not None else "of unknown severity"
            other = f", {each.aliases[0]}" if each.aliases else ""
            says = f"{package.purl} has the vulnerability {each.id} ({grave}{other})."
            yield PolicyRule.VULNERABILITY, package.purl, says


def _data_age(policy: Policy, facts: SupplyFacts) -> _Found:
    if not policy.needs_data:
        return
    if facts.data is None:
        why = facts.data_fault or "The platform has no file of known vulnerabilities (--osv-file)."
        yield PolicyRule.DATA_AGE, "osv", why
    elif policy.data_days and facts.data.age_s > policy.data_days * DAY_S:
        days = facts.data.age_s / DAY_S
        much = f"{days:.1f} days old, more than the {policy.data_days:g} of the policy"
        yield PolicyRule.DATA_AGE, "osv", f"What is known of vulnerabilities is {much}: renew the OSV file."
