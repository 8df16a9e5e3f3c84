"""Makes calls of requests that were read."""

from __future__ import annotations

from collections.abc import Callable

from pilotlight_core.model.api.call_api import CallRequest
from pilotlight_core.model.spec import MethodSpec, Mode, VersionRecord
from pilotlight_core.model.tracing.trace_sampling import UNSAMPLED, TraceSampler
from pilotlight_gateway.bodies.body_codec import BodyCodec
from pilotlight_gateway.bodies.call_requests import BodyFormat, priority_of, seconds_to_wait
from pilotlight_gateway.calls.prepared_call import PreparedCall
from pilotlight_gateway.http.calls.call_head import CallHead
from pilotlight_gateway.http.calls.call_limits import AdmittedRequest, function_of, usage_of_call
from pilotlight_gateway.metrics.call_recorder import CallRecorder
from pilotlight_gateway.schemas.version_schemas import VersionSchemas
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
    ) -> None:
        """`sampler`: which calls that came without a traceparent are traced."""
        self._recorder = recorder
        self._registry = registry
        self._schemas = schemas
        self._codec = codec
        self._clock = clock
        self._sampler = sampler

    async def prepare(
        self, request: AdmittedRequest, head: CallHead, version: VersionRecord, body: bytes, *, as_job: bool = False
    ) -> tuple[CallRequest, PreparedCall]:
        """The request, and the call that it asks for.

        Raises:
            BadInput: `bad_request`, or naming the field.
            BlobsDown: the schemas of the version cannot be read.
            UnknownFunction: a hook of its class is deleted.
        """
        tenant = request.principal.tenant
        whole = await self._schemas.whole(version) if version.schemas_apart else version
        read = await self._codec.read_call(body, head.kind, whole, tenant)
        scheduling = scheduling_class_of(self._registry, tenant, function_of(version))
        call = self._call(request, head, version, read, scheduling, as_job=as_job)
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
        read = self._codec.at_once.read_call(body, head.kind, version)
        return read[0], self._call(request, head, version, read, scheduling)

    def _call(
        self,
        request: AdmittedRequest,
        head: CallHead,
        version: VersionRecord,
        read: ReadBody,
        scheduling: SchedulingClass,
        *,
        as_job: bool = False,
    ) -> PreparedCall:
        asked, method, arguments = read
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
        )
        if not as_job:  # which is no call yet: one that is refused is a request that has failed
            request.call = call
            self._recorder.call_arrived(call)
        return call
