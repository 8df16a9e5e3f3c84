"""What an origin must know of a call to see it through."""

from __future__ import annotations

import msgspec

from pilotlight_core.model.messages.agent_messages import CallDescriptor, Grant, Run
from pilotlight_core.model.spec import Priority
from pilotlight_gateway.calls.call_port import PreparedCall
from pilotlight_gateway.tenancy.scheduling_class import PLAIN, SchedulingClass

WINDOW = 32
"""Chunks that a stream may send before it is told to go on. It is told at half of them, whether they were read or not,
until too much is unread: so small chunks flow, and of the largest (768 KiB) no more than 24 MiB are on their way."""
UNREAD_CHUNKS = 256
UNREAD_BYTES = 2 * 2**20
"""Of what arrived and was not read by the caller: with more than either, a stream is not told to go on."""


class CallPlan(msgspec.Struct, frozen=True, kw_only=True):
    """What an origin must know of a call. Instants are this process's monotonic seconds."""

    id: str
    tenant: str
    version: str
    function: str
    """`tenant:app.function` of the owner."""
    method: str
    priority: Priority
    gateway: str
    arrived: float
    deadline: float
    cost: float = 0.0
    """Estimated GPU-milliseconds; 0: the home's own estimate."""
    idempotent: bool = False
    retries: int = 0
    generator: bool = False
    """It answers in chunks."""
    stages: bool = False
    """Its caller wants to hear of stages."""
    gateway_ms: float = 0.0
    input: bytes = b""
    """Empty where the driver sends it by reference."""
    traceparent: str = ""
    standing: SchedulingClass = PLAIN

    @classmethod
    def of(cls, call: PreparedCall, gateway: str, *, inline: bool) -> CallPlan:
        """The plan of a call that arrived at a gateway's process; `inline`: its input travels with it."""
        version, spec = call.version, call.version.spec
        return cls(
            id=call.id,
            tenant=call.tenant,
            version=version.id,
            function=f"{version.tenant}:{version.app}.{version.function}",
            method=call.method.name,
            priority=call.priority,
            standing=call.standing,
            gateway=gateway,
            arrived=call.arrived,
            deadline=call.deadline,
            idempotent=spec.idempotent,
            retries=spec.retries,
            generator=call.method.mode == "generator",
            stages=call.stream,
            gateway_ms=call.gateway_ms,
            input=call.input if inline else b"",
            traceparent=call.traceparent,
        )

    def descriptor(self, at: float, *, number: int, admitted: bool) -> CallDescriptor:
        """What the home queues, as of `at`; `number` is that of the last grant that was used."""
        standing = self.standing
        return CallDescriptor(
            call_id=self.id,
            tenant=self.tenant,
            version=self.version,
            function=self.function,
            method=self.method,
            priority=self.priority,
            cost=self.cost,
            age_ms=max(0.0, at - self.arrived) * 1000.0,
            remaining_ms=(self.deadline - at) * 1000.0,
            gateway=self.gateway,
            grant_number=number,
            admitted=admitted,
            weight=standing.weight,
            tier_rank=standing.tier_rank,
            reserved=standing.reserved,
            queue_calls=standing.queue_calls,
            queue_ms=standing.queue_ms,
        )

    def run(self, grant: Grant, at: float) -> Run:
        """What the container's agent gets, if it is sent at `at`."""
        remaining = (self.deadline - at) * 1000.0
        return Run(
            call_id=self.id,
            tenant=self.tenant,
            version=self.version,
            container=grant.container,
            method=self.method,
            epoch=grant.epoch,
            grant_number=grant.grant_number,
            gateway=self.gateway,
            home=grant.home,
            start_within_ms=remaining,
            timeout_ms=remaining,
            input=self.input,
            window=WINDOW,
            tell_start=self.stages,
            traceparent=self.traceparent,
        )
