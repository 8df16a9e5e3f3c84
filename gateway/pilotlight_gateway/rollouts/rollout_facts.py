"""What a decision on a rollout goes by, beside its evidence: ready capacity, breakers, what is deployed, the gate."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from pilotlight_core.model.messages.node_messages import ContainerState, NodeReport
from pilotlight_core.model.rollouts.capacity import next_share, share_carried
from pilotlight_core.model.rollouts.rollout_record import WHOLE, Rollout, RolloutState
from pilotlight_core.model.rollouts.shadow_rules import why_no_shadows
from pilotlight_core.model.rollouts.split import twin_share_of
from pilotlight_core.model.spec import AppRecord
from pilotlight_gateway.judging.decisions import DecisionFacts
from pilotlight_gateway.tenancy.registry_port import RegistryPort

OPEN = "open"
STARTING = frozenset({ContainerState.BINDING, ContainerState.LOADING, ContainerState.WARMING})


class CountedContainers(NamedTuple):
    """By version, what nodes say of its containers."""

    ready: Mapping[str, int]
    """Containers that take calls."""
    busy: Mapping[str, int]
    """Calls that run in any."""
    starting: Mapping[str, int]
    """Containers that will take calls."""

    def of_old(self, version: str) -> int:
        """The containers of an old version: while none is ready those that start, for calls wait for them."""
        return self.ready.get(version, 0) or self.starting.get(version, 0)


@dataclass(frozen=True, kw_only=True)
class FactSources:
    """Where they come from."""

    registry: RegistryPort
    reports: Callable[[], Iterable[NodeReport]]
    """What nodes say now."""
    breaker_of: Callable[[str], str]
    """The state of a version's breaker."""
    has_pairs: bool = True
    """Whether anybody runs pairs of shadows here."""


def facts_of(
    sources: FactSources,
    tenant: str,
    app: str,
    rollout: Rollout,
    containers: CountedContainers,
    *,
    checks: str | None,
    refused: str = "",
    calls_per_hour: float,
) -> DecisionFacts:
    """The facts of an instant, but for what a gate says: that is asked only where nothing else is against a step."""
    record = sources.registry.app_nowait(tenant, app)
    ours = {*rollout.canary.values(), *rollout.twins.values()}
    shut = next((name for name, version in rollout.canary.items() if sources.breaker_of(version) == OPEN), "")
    return DecisionFacts(
        checks=checks,
        refused=refused,
        is_ready=is_ready(rollout, containers),
        has_containers=all(containers.of_old(version) for version in rollout.control.values()),
        has_shadows=sources.has_pairs and bool(rollout.twins) and bool(paired_functions(sources.registry, rollout)),
        carried=carried(rollout, containers),
        breaker=shut,
        superseded=why_superseded(rollout, record),
        calls_per_hour=calls_per_hour,
        is_promoted=is_promoted(rollout, record),
        is_drained=not any(containers.busy.get(version, 0) for version in ours),
    )


def counted(reports: Iterable[NodeReport]) -> CountedContainers:
    """What nodes say of the containers of each version."""
    ready, busy, starting = Counter[str](), Counter[str](), Counter[str]()
    for report in reports:
        for container in report.containers:
            busy[container.version] += container.running
            if not report.draining:
                ready[container.version] += container.state is ContainerState.READY
                starting[container.version] += container.state in STARTING
    return CountedContainers(ready, busy, starting)


def is_ready(rollout: Rollout, containers: CountedContainers) -> bool:
    """Whether the canary, and its twin where one is wanted, have a container wherever the old version has one."""
    compared = rollout.control.keys() & rollout.canary.keys()
    if rollout.terms.twin and not rollout.twins.keys() >= compared:
        return False
    for function in compared:
        sides = [rollout.canary[function], *([rollout.twins[function]] if rollout.terms.twin else [])]
        has_all = all(containers.ready.get(version, 0) for version in sides)
        if containers.of_old(rollout.control[function]) and not has_all:
            return False
    return True


def carried(rollout: Rollout, containers: CountedContainers) -> int:
    """The share that ready capacity of every function carries, of the canary and of the twin beside it.

    Its caller is on one side in all functions, so the function with the least capacity counts.
    """
    steps, step, ready = rollout.terms.steps, rollout.step, containers.ready
    aim = steps[step] if 0 <= step < len(steps) and rollout.share < steps[step] else next_share(rollout)
    found = aim
    for function in rollout.control.keys() & rollout.canary.keys():
        whole = containers.of_old(rollout.control[function])
        found = min(found, share_carried(aim, ready=ready.get(rollout.canary[function], 0), whole=whole))
        if (twin := rollout.twins.get(function)) is not None and rollout.terms.twin:
            of_twin = share_carried(WHOLE, ready=ready.get(twin, 0), whole=whole)
            if of_twin < twin_share_of(found):
                found = min(found, of_twin)
    return found


def paired_functions(registry: RegistryPort, rollout: Rollout) -> dict[str, str]:
    """The functions that pairs of shadows may be made of; "" by each: nothing is against it."""
    found = {}
    for function in sorted(rollout.control.keys() & rollout.canary.keys()):
        if not why_no_pairs(registry, rollout, function):
            found[function] = ""
    return found


def why_no_pairs(registry: RegistryPort, rollout: Rollout, function: str) -> str:
    """Why shadows of a function are not run; "": they may be."""
    for version_id in (rollout.control[function], rollout.canary[function]):
        version = registry.version(version_id)
        if version is None:
            return f"a version of {function} is not known here"
        if why := why_no_shadows(version.spec):
            return why
    return ""


def is_promoted(rollout: Rollout, record: AppRecord | None) -> bool:
    """Whether the new versions are what is deployed."""
    return (
        record is not None
        and not record.stopped
        and all(record.functions.get(name) == version for name, version in rollout.canary.items())
    )


def why_superseded(rollout: Rollout, record: AppRecord | None) -> str:
    """Why what is compared is not what is deployed any more; "": it is."""
    if rollout.state is RolloutState.ROLLING_BACK:
        return ""
    if record is None or record.stopped:
        return "the app is not in service any more"
    gone = [name for name, version in sorted(rollout.control.items()) if record.functions.get(name) != version]
    return f"another version of {gone[0]} was deployed" if gone else ""
