"""A call that is ready to run, and the messages about it for homes and agents."""

from __future__ import annotations

import math
from typing import Protocol

import msgspec

from pilotlight_core.model.messages.call_messages import CallDescriptor, Grant, Run
from pilotlight_core.model.messages.stream_window import WINDOW
from pilotlight_core.model.spec import MethodSpec, Priority, VersionRecord
from pilotlight_gateway.calls.large_bodies import INLINE_BYTES
from pilotlight_gateway.limits.call_usage import CallUsage
from pilotlight_gateway.tenancy.registry_port import LimitRegistry

ORDER = tuple(Priority)
"""The highest first."""


class SchedulingClass(msgspec.Struct, frozen=True, kw_only=True):
    """A tenant's tier and limits at one function, as its home needs them; the fields are `CallDescriptor`'s."""

    weight: float = 1.0
    tier_rank: int = 0
    reserved: float = 0.0
    queue_calls: int = 0
    queue_ms: float = 0.0
    ceiling: Priority = Priority.INTERACTIVE
    """The highest priority that its calls may have."""
    longest_s: float = math.inf
    """What one of its calls may take in all."""

    def lowered(self, priority: Priority) -> Priority:
        """`priority`, or the ceiling if that is lower."""
        if self.ceiling is ORDER[0]:
            return priority
        return max(priority, self.ceiling, key=ORDER.index)


PLAIN = SchedulingClass()


def scheduling_class_of(registry: LimitRegistry, tenant: str, function: str) -> SchedulingClass:
    """Of a tenant's calls to `function` (`tenant:app.function` of its owner)."""
    tier = registry.tier_of(tenant)
    limits = registry.limits(tenant, function).function
    return SchedulingClass(
        weight=registry.weight_of(tenant),
        tier_rank=tier.rank,
        reserved=tier.reserved_share,
        queue_calls=limits.queue_calls or 0,
        queue_ms=(limits.queue_seconds or 0.0) * 1000.0,
        ceiling=tier.priority_ceiling,
        longest_s=limits.timeout_s or math.inf,
    )


class Go(Protocol):
    """Sends the call, or gives it up."""

    def __call__(self, *, allowed: bool) -> bool:
        """Whether it was sent: the grant may have been taken back."""
        ...


class StartHook(Protocol):
    """Runs between a call's grant and its sending, such as to write a job's start."""

    def __call__(self, run: Run, go: Go) -> None:
        """`run` is about to be sent. Calls `go` once, now or later."""
        ...


class PreparedCall(msgspec.Struct, frozen=True, kw_only=True):
    """A call that is authenticated, resolved and validated. Instants are this process's monotonic seconds."""

    call_id: str
    client_id: str | None
    tenant: str
    """Who calls and pays; the version may be another tenant's only where that is allowed."""
    version: VersionRecord
    method: MethodSpec
    input: bytes
    """The msgpack of the named arguments."""
    priority: Priority
    deadline_at: float
    """When the caller gives up."""
    arrived_at: float
    """When the request's head was read."""
    stream: bool
    """Whether the caller wants stages and chunks as they happen; of a generator it always does."""
    scheduling: SchedulingClass = PLAIN
    traceparent: str = ""
    key: str = ""
    """The id of the API key that asked for it."""
    tags: dict[str, str] = {}
    """For the ledger; nothing sets them yet."""
    gateway_ms: float = 0.0
    """From arrival to here: authentication, parsing, validation."""
    usage: CallUsage | None = None
    """Counts the cost of the call before its caller has the answer; None: its tenant has no limits."""
    start_hook: StartHook | None = None

    @property
    def function(self) -> str:
        """`tenant:app.function` of the owner."""
        version = self.version
        return f"{version.tenant}:{version.app}.{version.function}"

    def descriptor(self, at: float, gateway: str, *, grant_number: int, admitted: bool) -> CallDescriptor:
        """What the home queues, as of `at`.

        Args:
            gateway: the process that holds the caller.
            grant_number: of the last grant that was used.
            admitted: whether a home has admitted the call before.
        """
        scheduling = self.scheduling
        return CallDescriptor(
            call_id=self.call_id,
            tenant=self.tenant,
            version=self.version.id,
            function=self.function,
            method=self.method.name,
            priority=self.priority,
            cost=0.0,  # the home estimates it
            age_ms=max(0.0, at - self.arrived_at) * 1000.0,
            remaining_ms=(self.deadline_at - at) * 1000.0,
            gateway=gateway,
            grant_number=grant_number,
            admitted=admitted,
            weight=scheduling.weight,
            tier_rank=scheduling.tier_rank,
            reserved=scheduling.reserved,
            queue_calls=scheduling.queue_calls,
            queue_ms=scheduling.queue_ms,
        )

    def run(self, grant: Grant, at: float, gateway: str) -> Run:
        """What the container's agent gets if the process `gateway` sends the call at `at`.

        An input too large for the bus is left out; the sender offers it by reference.
        """
        remaining_ms = (self.deadline_at - at) * 1000.0
        return Run(
            call_id=self.call_id,
            tenant=self.tenant,
            version=self.version.id,
            container=grant.container,
            method=self.method.name,
            epoch=grant.epoch,
            grant_number=grant.grant_number,
            gateway=gateway,
            home=grant.home,
            start_within_ms=remaining_ms,
            timeout_ms=remaining_ms,
            input=self.input if len(self.input) <= INLINE_BYTES else b"",
            window=WINDOW,
            tell_start=self.stream,
            traceparent=self.traceparent,
            key=self.key,
            tags=self.tags,
        )
