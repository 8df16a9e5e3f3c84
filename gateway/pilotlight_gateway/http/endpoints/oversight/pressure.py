"""What is under pressure: queues, slowdowns, breakers, starts. Operators see all; tenants what is theirs, and no
neighbour's name."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from pilotlight_core.model.api.seeing.pressure_api import (
    BreakerInfo,
    BreakerList,
    QueueInfo,
    QueueList,
    SlowdownInfo,
    SlowdownList,
    StartList,
    StartSteps,
    WaitingFlow,
)
from pilotlight_core.model.messages.node_messages import ContainerState
from pilotlight_core.model.messages.scheduling import BreakerReport, GatewayLoad, QueueLoad
from pilotlight_gateway.calls.call_port import CallPort
from pilotlight_gateway.fleet.fleet_view import FleetView
from pilotlight_gateway.http.protocol.api_operations import Operation, json_answer, principal_of
from pilotlight_gateway.metrics.load_exchange import LoadBook
from pilotlight_gateway.tenancy.auth import Principal
from pilotlight_gateway.tenancy.registry_port import RegistryPort
from pilotlight_gateway.tenancy.shown_names import shown_name

STARTING = (ContainerState.BINDING, ContainerState.LOADING, ContainerState.WARMING)
LOOPING = 2
"""Starts in a row that failed: no bad luck."""


@dataclass(frozen=True, kw_only=True)
class PressureServices:
    """The ports of these endpoints. `clock` is monotonic seconds."""

    registry: RegistryPort
    calls: CallPort
    view: FleetView
    loads: LoadBook
    clock: Callable[[], float] = time.monotonic

    def known_loads(self) -> list[GatewayLoad]:
        return [load for load, _ in self.loads.known(self.clock())]


async def show_queues(request: Request, services: PressureServices) -> Response:
    """`GET /v1/queues`."""
    principal, loads = principal_of(request), services.known_loads()
    queues = sorted(
        (
            _queue_info(queue, load.name, principal, services.registry)
            for load in loads
            for queue in load.queues
            if may_see(principal, owner_of(queue.function))
        ),
        key=lambda queue: (-queue.oldest_ms, queue.version),
    )
    if principal.operator:
        queued, left = sum(load.queued for load in loads), sum(load.queues_left for load in loads)
    else:
        queued, left = sum(queue.queued for queue in queues), 0
    return json_answer(QueueList(queued=queued, queues=tuple(queues), left=left))


async def show_slowdowns(request: Request, services: PressureServices) -> Response:
    """`GET /v1/slowdowns`: a tenant sees its own calls, whoever's function they are of."""
    principal = principal_of(request)
    found = [
        SlowdownInfo(
            function=flow.function,
            version=_ref(services.registry, flow.version),
            tenant=flow.tenant,
            priority=flow.priority,
            slowdown=round(flow.slowdown, 3),
            calls=flow.calls,
            neighbour=flow.neighbour if principal.operator else "",
        )
        for load in services.known_loads()
        for flow in load.slow
        if may_see(principal, flow.tenant)
    ]
    return json_answer(SlowdownList(slowdowns=tuple(sorted(found, key=lambda flow: -flow.slowdown))))


async def show_breakers(request: Request, services: PressureServices) -> Response:
    """`GET /v1/breakers`."""
    principal = principal_of(request)
    found = (_breaker_info(report, services.registry) for report in services.view.breakers(services.clock()))
    seen = [info for info in found if principal.operator or (info.tenant == principal.tenant and not info.caller)]
    return json_answer(BreakerList(breakers=tuple(sorted(seen, key=lambda one: (one.state == "closed", one.version)))))


async def show_starts(request: Request, services: PressureServices) -> Response:
    """`GET /v1/starts`."""
    principal = principal_of(request)
    containers = services.calls.containers(None if principal.operator else principal.tenant)
    return json_answer(StartList(starts=start_steps(containers)))


def may_see(principal: Principal, tenant: str) -> bool:
    return principal.operator or tenant == principal.tenant


def owner_of(function: str) -> str:
    """The tenant of `tenant:app.function`."""
    return function.partition(":")[0]


def start_steps(containers: Iterable[dict[str, Any]]) -> tuple[StartSteps, ...]:
    """The mean steps of the starts of each function, the slowest function first."""
    by_function: dict[tuple[str, str], list[dict[str, Any]]] = defaultdict(list)
    for each in containers:
        if each.get("timeline"):
            by_function[each["tenant"], f"{each['tenant']}:{each['app']}.{each['function']}"].append(each)
    found = []
    for (tenant, function), some in by_function.items():
        sums: dict[str, float] = defaultdict(float)
        for each in some:
            for step, ms in each["timeline"].items():
                sums[step] += ms
        totals = [sum(each["timeline"].values()) for each in some]
        found.append(
            StartSteps(
                function=function,
                tenant=tenant,
                containers=len(some),
                starting=sum(each["state"] in STARTING for each in some),
                total_ms=round(sum(totals) / len(some), 3),
                longest_ms=round(max(totals), 3),
                steps={step: round(total / len(some), 3) for step, total in sums.items()},
            )
        )
    return tuple(sorted(found, key=lambda one: -one.total_ms))


def why_waiting(queue: QueueLoad) -> tuple[str, str]:
    """What the calls of a version wait for, in a word and a sentence; "": none waits."""
    if queue.breaker == "open":
        return "breaker_open", "Its containers were lost again and again: calls are let in again by and by."
    if not queue.queued:
        return "", ""
    if queue.failed_starts >= LOOPING and not queue.ready:
        count = queue.failed_starts
        return "crash_loop", f"Its last {count} containers could not be loaded: its logs have the first traceback."
    if queue.shortage and not queue.ready:
        return "no_capacity", queue.shortage
    if queue.ready:
        return "full", f"Its slots are taken: {queue.slots}, of {queue.ready} ready containers."
    if queue.starting:
        return "starting", f"{queue.starting} of its containers are starting."
    return "starting", "It has no container yet."


def _queue_info(queue: QueueLoad, gateway: str, principal: Principal, registry: RegistryPort) -> QueueInfo:
    why, sentence = why_waiting(queue)
    if why == "no_capacity" and not principal.operator:
        sentence = "There is no place for a container now."  # where others are is not a tenant's to know
    expected = queue.queued * queue.service_ms / queue.slots if queue.slots and queue.service_ms else None
    flows = [
        WaitingFlow(tenant=one.tenant, priority=one.priority, queued=one.queued, oldest_ms=round(one.oldest_ms, 3))
        for one in queue.flows
        if may_see(principal, one.tenant)
    ]
    return QueueInfo(
        version=_ref(registry, queue.version), tenant=owner_of(queue.function), function=queue.function,
        gateway=shown_name(gateway, operator=principal.operator), queued=queue.queued,
        oldest_ms=round(queue.oldest_ms, 3), expected_ms=None if expected is None else round(expected, 3),
        running=queue.running, slots=queue.slots, ready=queue.ready, starting=queue.starting, why=why,
        sentence=sentence, flows=tuple(flows), flows_left=queue.flows_left + len(queue.flows) - len(flows),
    )  # fmt: skip


def _ref(registry: RegistryPort, version: str) -> str:
    known = registry.version(version)
    return version if known is None else known.ref


def _breaker_info(report: BreakerReport, registry: RegistryPort) -> BreakerInfo:
    known = registry.version(report.version)
    return BreakerInfo(
        version=report.version if known is None else known.ref,
        function="" if known is None else f"{known.tenant}:{known.app}.{known.function}",
        tenant="" if known is None else known.tenant,
        of="container" if report.container else "tenant" if report.tenant else "version",
        container=report.container,
        caller=report.tenant,
        state=report.state,
        failures=report.failures,
        retry_after_s=round(report.retry_after, 3),
    )


PRESSURE = (
    Operation(
        method="GET", path="/v1/queues", name="listQueues", endpoint=show_queues, scopes=("read", "operator"),
        about="Who waits for what, since when, and why: operators see all tenants', others their own functions'.",
        answer=QueueList,
    ),
    Operation(
        method="GET", path="/v1/slowdowns", name="listSlowdowns", endpoint=show_slowdowns, scopes=("read", "operator"),
        about="Calls that take much longer than they would if their tenant were alone; operators see by whom.",
        answer=SlowdownList,
    ),
    Operation(
        method="GET", path="/v1/breakers", name="listBreakers", endpoint=show_breakers, scopes=("read", "operator"),
        about="Circuit breakers that are not closed, or count failures.", answer=BreakerList,
    ),
    Operation(
        method="GET", path="/v1/starts", name="listStarts", endpoint=show_starts, scopes=("read", "operator"),
        about="How long containers took to start, by step, of those that are there.", answer=StartList,
    ),
)  # fmt: skip
