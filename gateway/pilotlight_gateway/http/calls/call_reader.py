"""Makes calls of requests that were read."""

from __future__ import annotations

from collections.abc import Callable

from msgspec import UNSET

from pilotlight_core.model.api.call_api import CallRequest
from pilotlight_core.model.rollouts.split import Side
from pilotlight_core.model.rollouts.split_units import asker_of
from pilotlight_core.model.spec import MethodSpec, Mode, VersionRecord
from pilotlight_core.model.tracing.trace_sampling import UNSAMPLED, TraceSampler
from pilotlight_core.model.values import TooManyValues
from pilotlight_gateway.bodies.body_codec import BodyCodec
from pilotlight_gateway.bodies.call_requests import BodyFormat, priority_of, seconds_to_wait
from pilotlight_gateway.calls.prepared_call import PreparedCall
from pilotlight_gateway.http.calls.call_head import CallHead
from pilotlight_gateway.http.calls.call_limits import AdmittedRequest, function_of, usage_of_call
from pilotlight_gateway.metrics.call_recorder import CallRecorder
from pilotlight_gateway.schemas.version_schemas import VersionSchemas
from pilotlight_gateway.splits.splits import NAMED, UNKNOWN, Chosen, Splits
from pilotlight_gateway.tenancy.hook_versions import hook_versions
from pilotlight_gateway.tenancy.registry_port import RegistryPort
from pilotlight_gateway.tenancy.scheduling_class import SchedulingClass, scheduling_class_of
from pilotlight_gateway.tenancy.timeout_limit import check_job_time, check_seconds

ReadBody = tuple[CallRequest, MethodSpec, bytes]
"""The request without its arguments, its method, and the arguments as msgpack."""


class CallReader:
    """Makes calls of requests. `clock`: monotonic seconds."""

    def __init__(
        self,
        registry: RegistryPort,
        schemas: VersionSchemas,
        codec: BodyCodec,
        recorder: CallRecorder,
        clock: Callable[[], float],
        sampler: TraceSampler = UNSAMPLED,
        splits: Splits | None = None,
    ) -> None:
        """`sampler`: which calls that came without a traceparent are traced. `splits`: None: of this registry."""
        self._splits = Splits(registry) if splits is None else splits
        self._recorder = recorder
        self._registry = registry
        self._schemas = schemas
        self._codec = codec
        self._clock = clock
        self._sampler = sampler

    async def prepare(
        self,
        request: AdmittedRequest,
        head: CallHead,
        version: VersionRecord,
        body: bytes,
        *,
        as_job: bool = False,
        beside: Side | None = None,
    ) -> tuple[CallRequest, PreparedCall]:
        """The request, and the call that it asks for, of the version that its rollout gives it.

        `beside`: the side of the call that makes it.

        Raises:
            BadInput: `bad_request`, or naming the field.
            BlobsDown: the schemas of the version cannot be read.
            UnknownFunction: a hook of its class is deleted.
        """
        tenant = request.principal.tenant
        if as_job:  # its sides are chosen when it starts
            chosen = Chosen(version, None, NAMED if "@" in head.ref else UNKNOWN)
        else:
            chosen = self._choose(request, head, version, beside)
        version = chosen.version
        whole = await self._schemas.whole(version) if version.schemas_apart else version
        read = await self._codec.read_call(body, head.kind, whole, tenant)
        scheduling = scheduling_class_of(self._registry, tenant, function_of(version))
        call = self._call(request, head, chosen, read, scheduling, as_job=as_job)
        call.hooks = await hook_versions(self._registry, version)
        return read[0], call

    def prepare_now(
        self, request: AdmittedRequest, head: CallHead, version: VersionRecord, body: bytes, scheduling: SchedulingClass
    ) -> tuple[CallRequest, PreparedCall]:
        """As `prepare`, on the event loop, of a version that has its schemas.

        Raises:
            BadInput: as `prepare`.
            TooManyValues: it would take too long here.
        """
        chosen = self._choose(request, head, version, None)
        if (now := chosen.version) is not version and not is_plain(now):
            raise TooManyValues  # another version than the one that this way is known for
        read = self._codec.at_once.read_call(body, head.kind, now)
        return read[0], self._call(request, head, chosen, read, scheduling)

    def _choose(self, request: AdmittedRequest, head: CallHead, version: VersionRecord, beside: Side | None) -> Chosen:
        """Which version runs the call; one that is named runs it itself."""
        if "@" in head.ref:
            return Chosen(version, None, NAMED)
        record = self._splits.record_of(version)
        if record is None:
            return Chosen(version, None, UNKNOWN)
        principal = request.principal
        asker = asker_of(principal.tenant, principal.key_id, request.call_id, head)
        return self._splits.choose(record, version, asker, beside)

    def _call(
        self,
        request: AdmittedRequest,
        head: CallHead,
        chosen: Chosen,
        read: ReadBody,
        scheduling: SchedulingClass,
        *,
        as_job: bool = False,
    ) -> PreparedCall:
        asked, method, arguments = read
        version = chosen.version
        spec, tenant, arrived_at = version.spec, request.principal.tenant, request.arrived_at
        wait_s = seconds_to_wait(asked.deadline_ms, spec.longest_call_s)
        if as_job:
            check_job_time(self._registry, tenant, version)
        elif asked.deadline_ms is None:
            wait_s = min(wait_s, scheduling.longest_s)
        else:
            check_seconds(wait_s, scheduling.longest_s, tenant, "deadline_ms")
        call = PreparedCall(
            call_id=request.call_id,
            client_id=asked.id,
            tenant=tenant,
            version=version,
            method=method,
            input=arguments,
            priority=scheduling.lowered(priority_of(spec.priority, head.priority)),
            scheduling=scheduling,
            deadline_at=arrived_at + wait_s,
            arrived_at=arrived_at,
            stream=head.answer is BodyFormat.EVENTS or method.mode is not Mode.UNARY,
            # A job is sampled when it runs.
            traceparent=head.traceparent or ("" if as_job else self._sampler.context_of(request.call_id)),
            key=request.principal.key_id,
            principal=request.principal,
            gateway_ms=(self._clock() - arrived_at) * 1000,
            usage=usage_of_call(request),
            side=chosen.side,
            split=chosen.split,
            head=head,
        )
        if chosen.side is not None and call.usage is not None:
            call.usage.version = version.id
        if not as_job:  # which is no call yet: one that is refused is a request that has failed
            request.call = call
            self._recorder.call_arrived(call)
        return call


def is_plain(version: VersionRecord) -> bool:
    """Whether calls of a version may be read and begun without waiting for anything."""
    if version.schemas_apart or any(one.mode is not Mode.UNARY for one in version.spec.methods):
        return False
    return version.spec.pipeline is UNSET  # between its stages it has values that must have room
