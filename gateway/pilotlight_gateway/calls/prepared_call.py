"""A call that is ready to run, and the messages about it for homes and agents."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from pilotlight_core.model.messages.call_messages import WINDOW, CallDescriptor, Grant, ResumePoint, Run
from pilotlight_core.model.pipelines.pipeline import HookKind
from pilotlight_core.model.rollouts.rollout_record import Arm
from pilotlight_core.model.rollouts.split import Side
from pilotlight_core.model.rollouts.split_units import SaysWho
from pilotlight_core.model.spec import MethodSpec, Priority, VersionRecord
from pilotlight_gateway.calls.engines.engine_calls import engine_affinity, engine_facts
from pilotlight_gateway.calls.large_bodies import INLINE_BYTES
from pilotlight_gateway.limits.call_usage import CallUsage
from pilotlight_gateway.limits.limit_policy import LimitPolicy
from pilotlight_gateway.limits.token_asks import bounded_arguments
from pilotlight_gateway.streams.stream_pace import StreamPace
from pilotlight_gateway.tenancy.auth import Principal
from pilotlight_gateway.tenancy.scheduling_class import PLAIN, SchedulingClass


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


class PreparedCall:
    """A call that is authenticated, resolved and validated; it does not change. Instants are this process's monotonic
    seconds.
    """

    __slots__ = (
        "arrived_at", "call_id", "client_id", "deadline_at", "function", "gateway_ms", "head", "hooks", "input",
        "is_recorded", "key", "last_number", "link", "lost_ms", "method", "pace", "parent", "principal", "priority",
        "scheduling", "shadow", "side", "split", "start_hook", "stream", "tags", "tenant", "traceparent", "usage",
        "version",
    )  # fmt: skip

    def __init__(
        self,
        *,
        call_id: str,
        client_id: str | None,
        tenant: str,
        version: VersionRecord,
        method: MethodSpec,
        input: bytes,  # noqa: A002 - the name of the thing in the API
        priority: Priority,
        deadline_at: float,
        arrived_at: float,
        stream: bool,
        scheduling: SchedulingClass = PLAIN,
        traceparent: str = "",
        link: str = "",
        key: str = "",
        parent: str = "",
        principal: Principal | None = None,
        tags: dict[str, str] | None = None,
        gateway_ms: float = 0.0,
        usage: CallUsage | None = None,
        start_hook: StartHook | None = None,
        hooks: Mapping[HookKind, VersionRecord] | None = None,
        lost_ms: float = 0.0,
        shadow: bool = False,
        side: Side | None = None,
        split: int = -1,
        head: SaysWho | None = None,
        last_number: int = 0,
    ) -> None:
        self.call_id = call_id
        self.client_id = client_id
        self.tenant = tenant
        """Who calls and pays; the version may be another tenant's only where that is allowed."""
        self.version = version
        self.function = f"{version.tenant}:{version.app}.{version.function}"
        """`tenant:app.function` of the owner."""
        self.method = method
        self.input = input
        """The msgpack of the named arguments."""
        self.priority = priority
        self.deadline_at = deadline_at
        """When the caller gives up."""
        self.arrived_at = arrived_at
        """When the request's head was read."""
        self.stream = stream
        """Whether the caller wants stages and chunks as they happen; of a generator it always does."""
        self.scheduling = scheduling
        self.traceparent = traceparent
        """Of its caller, with its tracestate, or of its own root span where its trace is sampled; "": it begins a trace
        that is not."""
        self.link = link
        """Of a job, the traceparent of the request that stored it."""
        self.key = key
        """The id of the API key that asked for it."""
        self.parent = parent
        """The id of the call that made this one; "": it came from outside."""
        self.principal = principal
        """Who asked for it while its caller waits; None: a job's call, whose key is all that is on record."""
        self.tags = tags or {}
        """For the ledger; nothing sets them yet."""
        self.gateway_ms = gateway_ms
        """From arrival to here: authentication, parsing, validation."""
        self.usage = usage
        """Counts the cost of the call before its caller has the answer; None: its tenant has no limits."""
        self.start_hook = start_hook
        self.hooks = hooks
        """Of a class with hooks: the versions of its companions; None: it has none."""

        self.lost_ms = lost_ms
        """How long at most an earlier start of a job is billed that was lost."""
        self.shadow = shadow
        """Whether its answer is dropped: it repeats another call, to compare versions. The operator pays."""
        self.side = side
        """On which side of a rollout it is; None: on none."""
        self.split = split
        """As `CallDescriptor.split`."""
        self.head = head
        """Of its request, should its side have to be chosen anew."""
        self.last_number = last_number
        """The highest grant number that it has used of another version."""
        self.pace: StreamPace | None = None
        """Of a stream whose first chunk has come."""
        self.is_recorded = False
        """Whether its end was counted."""

    @property
    def is_tried_once(self) -> bool:
        """Whether a version that has failed it does not try again: of a rollout the old one runs it then."""
        return self.side is not None and self.side.arm is Arm.CANARY

    def instead(
        self,
        version: VersionRecord,
        method: MethodSpec,
        scheduling: SchedulingClass,
        hooks: Mapping[HookKind, VersionRecord] | None = None,
        side: Side | None = None,
        split: int = -1,
        last_number: int = 0,
    ) -> PreparedCall:
        """This very call, to the method of another version, with the versions of that one's hooks.

        `side` and `split`: of a rollout, where it is still a call of its function. `last_number`: the highest grant
        number that it has used so far: an agent that knows it takes higher ones only.
        """
        if self.usage is not None:
            self.usage.version = version.id
        return PreparedCall(
            call_id=self.call_id,
            client_id=self.client_id,
            tenant=self.tenant,
            version=version,
            method=method,
            input=self.input,
            priority=self.priority,
            deadline_at=self.deadline_at,
            arrived_at=self.arrived_at,
            stream=self.stream,
            scheduling=scheduling,
            traceparent=self.traceparent,
            link=self.link,
            key=self.key,
            parent=self.parent,
            principal=self.principal,
            tags=self.tags,
            gateway_ms=self.gateway_ms,
            usage=self.usage,
            hooks=hooks,
            side=side,
            split=split,
            head=self.head,
            last_number=last_number,
        )

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
            affinity=engine_affinity(self.version, self.tenant, self.input),
            split=self.split,
        )

    def run(
        self, grant: Grant, at: float, gateway: str, resume: ResumePoint | None = None, *, lost_ms: float = 0.0
    ) -> Run:
        """What the container's agent gets if the process `gateway` sends the call at `at`; a stream is to `resume`.

        `lost_ms`: for how long at most an earlier start is billed that was lost.

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
            tell_start=self.stream or is_watched(self),
            groups=self.stream,
            traceparent=self.traceparent,
            key=self.key,
            parent=self.parent,
            tags=self.tags,
            resume=resume,
            facts=engine_facts(self.version, self.tenant, self.scheduling.weight, self.priority),
            lost_ms=lost_ms,
            shadow=self.shadow,
            cold_ms=sum(grant.timeline.values()) if grant.start_ms else 0.0,
        )


def is_watched(call: PreparedCall) -> bool:
    """Whether a judge of a rollout wants to know how long a call runs before it ends."""
    side = call.side
    return side is not None and side.rho > 0.0 and not call.shadow


def limit_tokens(call: PreparedCall, policy: LimitPolicy) -> None:
    """Hold a call to the tokens that one may have: one that says nothing of its answer gets the most that it may be.

    Raises:
        BadInput: `too_many_tokens`.
    """
    if policy.bounds_tokens:
        call.input = bounded_arguments(call.method, call.input, call.tenant, policy.prompt_tokens, policy.output_tokens)
