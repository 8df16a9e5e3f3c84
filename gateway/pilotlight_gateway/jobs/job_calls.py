"""A job as the call that it becomes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import msgspec

from pilotlight_core.model.errors import PilotlightError
from pilotlight_core.model.records.jobs import JobRecord
from pilotlight_core.model.spec import Mode
from pilotlight_core.model.tracing.trace_sampling import UNSAMPLED, TraceSampler
from pilotlight_gateway.bodies.body_codec import BodyCodec
from pilotlight_gateway.bodies.byte_budget import ByteBudget
from pilotlight_gateway.calls.call_port import CallPort, CallResult
from pilotlight_gateway.calls.call_responses import is_value
from pilotlight_gateway.calls.call_sink import CallSink, FailedCall, platforms_words, report_ended, report_failed
from pilotlight_gateway.calls.collected_chunks import collect_chunks
from pilotlight_gateway.calls.prepared_call import PreparedCall, StartHook
from pilotlight_gateway.jobs.job_versions import JobVersions
from pilotlight_gateway.limits.call_usage import CallUsage
from pilotlight_gateway.schemas.version_schemas import VersionSchemas
from pilotlight_gateway.splits.splits import Chosen, Splits
from pilotlight_gateway.tenancy.hook_versions import hook_versions
from pilotlight_gateway.tenancy.registry_port import RegistryPort
from pilotlight_gateway.tenancy.scheduling_class import scheduling_class_of


@dataclass(frozen=True, kw_only=True)
class JobCalls:
    """Makes calls of jobs and runs them."""

    calls: CallPort
    registry: RegistryPort
    schemas: VersionSchemas
    codec: BodyCodec
    budget: ByteBudget
    clock: Callable[[], float]
    """Monotonic seconds."""
    sampler: TraceSampler = UNSAMPLED
    """Which runs are traced though nobody asked."""
    sinks: tuple[CallSink, ...] = ()
    """Who is told of runs that end."""

    @property
    def versions(self) -> JobVersions:
        """Which version runs a job."""
        return JobVersions(registry=self.registry, schemas=self.schemas, splits=Splits(self.registry))

    async def prepare(
        self,
        job: JobRecord,
        chosen: Chosen,
        data: bytes,
        start_in_s: float,
        usage: CallUsage,
        start_hook: StartHook,
    ) -> PreparedCall:
        """The call of a job with the input `data` (msgpack) to the version `chosen` for it.

        It must start within `start_in_s` seconds.

        Raises:
            BlobsDown: its schemas cannot be read.
        """
        version, spec = chosen.version, chosen.version.spec
        scheduling = scheduling_class_of(self.registry, job.tenant, job.function)
        method = await self.schemas.method(version, job.method)
        hooks = await hook_versions(self.registry, version)
        at, call_id = self.clock(), self.calls.new_id()
        return PreparedCall(
            # A fresh id for each run: messages about an earlier run are ignored.
            call_id=call_id,
            client_id=None,
            tenant=job.tenant,
            # The record decides what a failure leads to, and outlives this process.
            version=msgspec.structs.replace(version, spec=msgspec.structs.replace(spec, retries=0, idempotent=False)),
            method=method,
            input=data,
            priority=scheduling.lowered(job.priority),
            # A job may wait for as long as it has time, however long the queue is.
            scheduling=msgspec.structs.replace(scheduling, queue_calls=0, queue_ms=0.0),
            # Each stage behind the first has a start of its own to wait for.
            deadline_at=at + start_in_s + spec.timeout + (spec.stages - 1) * (spec.startup_timeout + spec.timeout),
            arrived_at=at,
            stream=method.mode is not Mode.UNARY,
            traceparent=self.sampler.context_of(call_id),
            link=job.traceparent,
            key=job.key_id,
            usage=usage,
            start_hook=start_hook,
            hooks=hooks,
            lost_ms=job.lost_ms,
            side=chosen.side,
            split=chosen.split,
        )

    async def run(self, call: PreparedCall) -> CallResult:
        """Run the call; a generator's output is the list of its chunks.

        Raises:
            PilotlightError: how it failed; `bad_output`: the output does not match the type hints.
        """
        try:
            result = await self._run(call)
        except PilotlightError as error:
            self._report_failure(call, error)
            raise
        total_ms, stages = (self.clock() - call.arrived_at) * 1000.0, dict(result.stages)
        stages["respond"] = max(0.0, total_ms - sum(stages.values()))
        report_ended(self.sinks, call, result, stages, total_ms)
        return result

    def _report_failure(self, call: PreparedCall, error: PilotlightError) -> None:
        total_ms = (self.clock() - call.arrived_at) * 1000.0
        course = error.course if isinstance(error.course, CallResult) else None
        failed = FailedCall(
            error.wire_code, call.tenant, call.version, call, course, total_ms, is_client_gone=False,
            detail=platforms_words(error, call),
        )  # fmt: skip
        report_failed(self.sinks, failed)

    async def _run(self, call: PreparedCall) -> CallResult:
        if not is_value(call):
            return await collect_chunks(self.calls, call, self.codec, self.budget)
        result = await self.calls.run(call)
        await self.codec.check_output(result.output, call.version.id, call.method, call.tenant)
        return result
