"""What a step of a rollout goes by, beside its evidence: ready containers, breakers, calls that still run, the gate."""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass

from pilotlight_core.model.messages.node_messages import ContainerState, NodeReport
from pilotlight_core.model.rollouts.rollout_record import Rollout, RolloutRecord, RolloutState
from pilotlight_core.model.rollouts.shadow_rules import why_no_shadows
from pilotlight_gateway.judging.evidence import Evidence
from pilotlight_gateway.judging.rollout_steps import RolloutFacts
from pilotlight_gateway.tenancy.registry_port import RegistryPort

OPEN = "open"


@dataclass(frozen=True, kw_only=True)
class FactSources:
    """Where they come from."""

    registry: RegistryPort
    reports: Callable[[], Iterable[NodeReport]]
    """What nodes say now."""
    breaker_of: Callable[[str], str]
    """The state of a version's breaker."""
    ask_gate: Callable[[RolloutRecord, Rollout], Awaitable[bool | None]]


async def facts_of(
    sources: FactSources, record: RolloutRecord, rollout: Rollout, evidence: Evidence, at: float
) -> RolloutFacts:
    """The facts of an instant."""
    ready, busy = counted(sources.reports())
    canaries = rollout.canary.values()
    shut = [version for version in canaries if sources.breaker_of(version) == OPEN]
    gate = None
    if rollout.terms.gate and is_at_gate(rollout, evidence, at):
        gate = await sources.ask_gate(record, rollout)
    return RolloutFacts(
        ready=ready,
        compared=evidence.compared_new,
        pairs=evidence.pairs_ran,
        why_no_pairs=_why_no_pairs(sources.registry, rollout),
        breaker="its breaker is open: its containers died, or failed to start, again and again" if shut else "",
        gate=gate,
        is_drained=not any(busy.get(version, 0) for version in canaries),
    )


def counted(reports: Iterable[NodeReport]) -> tuple[Counter[str], Counter[str]]:
    """By version, the containers that take calls, and the calls that run in any."""
    ready, busy = Counter[str](), Counter[str]()
    for report in reports:
        for container in report.containers:
            busy[container.version] += container.running
            if container.state is ContainerState.READY and not report.draining:
                ready[container.version] += 1
    return ready, busy


def is_at_gate(rollout: Rollout, evidence: Evidence, at: float) -> bool:
    """Whether the next step waits for nothing but its gate."""
    terms = rollout.terms
    return (
        rollout.state is RolloutState.RAMP
        and not rollout.paused_by
        and at - rollout.since >= terms.every_s
        and evidence.compared_new - rollout.calls_before >= terms.calls
    )


def _why_no_pairs(registry: RegistryPort, rollout: Rollout) -> str:
    """Why functions of a rollout may not be run as shadows; "": all may."""
    for function in rollout.canary.keys() & rollout.control.keys():
        for version_id in (rollout.control[function], rollout.canary[function]):
            version = registry.version(version_id)
            if version is None:
                return f"a version of {function} is not known here"
            if why := why_no_shadows(version.spec):
                return why
    return ""
