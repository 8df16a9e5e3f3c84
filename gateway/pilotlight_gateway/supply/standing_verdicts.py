"""What policies say of versions that run, looked at again: what is new since the last look. Nothing is ended for it."""

from __future__ import annotations

from collections.abc import Sequence

from pilotlight_core.model.messages.logs import SENTENCE_LENGTH, EventKind, PlatformEvent
from pilotlight_core.model.spec import VersionRecord
from pilotlight_core.model.supply.findings import PolicyFinding, PolicyVerdict, VerdictRecord

DAY_S = 86_400.0
EVENTS_OF_ONE = 5
"""Findings of one version and look that are told; what is more is counted in the last one."""


def is_due(before: VerdictRecord | None, at: float, policies: dict[str, int], data: str, keys: str = "") -> bool:
    """Whether a version is to be looked at: a day has gone by, or a policy, what is known, or a key has changed.

    Args:
        before: the last verdict; None: there is none.
        policies: the revisions of its policies now.
        data: sha256 of the file of vulnerabilities; "": there is none, or no policy asks for it.
        keys: as `VerdictRecord.keys` has it.
    """
    if before is None or at - before.verdict.at >= DAY_S or before.verdict.policies != policies or before.keys != keys:
        return True
    known = before.verdict.data
    return bool(data) and (known is None or known.sha256 != data)


def new_findings(before: PolicyVerdict | None, verdict: PolicyVerdict) -> list[PolicyFinding]:
    """Those that were not there, or for which a deploy was not refused then."""
    seen = {_key(each) for each in before.findings} if before is not None else set()
    return [each for each in verdict.findings if _key(each) not in seen]


def events_of(version: VersionRecord, found: Sequence[PolicyFinding], at: float) -> list[PlatformEvent]:
    """What people are told of new findings."""
    function = f"{version.tenant}:{version.app}.{version.function}"
    shown = found[:EVENTS_OF_ONE]
    made = []
    for number, each in enumerate(shown, 1):
        more = f" And {len(found) - len(shown)} more." if number == len(shown) and len(found) > len(shown) else ""
        says = f"{version.ref}: {each.says}{more}"
        made.append(
            PlatformEvent(
                at=at, kind=EventKind.POLICY_FOUND, tenant=version.tenant, function=function,
                says=says[:SENTENCE_LENGTH],
                facts={
                    "version": version.id, "rule": each.rule.value, "component": each.component, "of": each.of.value,
                    "enforced": each.enforced,
                },
            )
        )  # fmt: skip
    return made


def _key(each: PolicyFinding) -> tuple[str, str, str, bool, str]:
    return each.rule, each.component, each.of, each.enforced, each.says if each.rule == "vulnerability" else ""
