"""A job as the call that it becomes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import msgspec

from pilotlight_core.model.records.jobs import JobRecord
from pilotlight_core.model.spec import Mode, VersionRecord
from pilotlight_gateway.calls.byte_budget import ByteBudget
from pilotlight_gateway.calls.call_port import CallPort, CallResult, Gate, PreparedCall
from pilotlight_gateway.calls.call_responses import checked_value, is_value
from pilotlight_gateway.calls.collected_chunks import collect_chunks
from pilotlight_gateway.limits.call_usage import CallUsage
from pilotlight_gateway.schemas.schema_validators import Validators
from pilotlight_gateway.tenancy.registry_port import RegistryPort
from pilotlight_gateway.tenancy.scheduling_class import scheduling_class_of


@dataclass(frozen=True, kw_only=True)
class JobCalls:
    """Makes calls of jobs and runs them."""

    calls: CallPort
    registry: RegistryPort
    validators: Validators
    budget: ByteBudget
    clock: Callable[[], float]
    """Monotonic seconds."""

    def prepare(
        self, job: JobRecord, version: VersionRecord, data: bytes, start_in_s: float, usage: CallUsage, gate: Gate
    ) -> PreparedCall:
        """The call of a job with the input `data` (msgpack); it must start within `start_in_s` seconds."""
        spec = version.spec
        standing = scheduling_class_of(self.registry, job.tenant, job.function)
        method, at = spec.method(job.method), self.clock()
        return PreparedCall(
            # A fresh id for each run: what is still said of an earlier run concerns nobody.
            id=self.calls.new_id(),
            client_id=None,
            tenant=job.tenant,
            # The record decides what a failure leads to, and outlives this process.
            version=msgspec.structs.replace(version, spec=msgspec.structs.replace(spec, retries=0, idempotent=False)),
            method=method,
            input=data,
            priority=standing.lowered(job.priority),
            # A job may wait for as long as it has time, however long the queue is.
            standing=msgspec.structs.replace(standing, queue_calls=0, queue_ms=0.0),
            deadline=at + start_in_s + spec.timeout,
            arrived=at,
            stream=method.mode is not Mode.UNARY,
            tab=usage,
            gate=gate,
        )

    async def run(self, call: PreparedCall) -> CallResult:
        """Run the call; a generator's output is the list of its chunks.

        Raises:
            PilotlightError: how it failed; `bad_output`: the output does not match the type hints.
        """
        if not is_value(call):
            return await collect_chunks(self.calls, call, self.validators, self.budget)
        result = await self.calls.run(call)
        checked_value(self.validators, call, result.output, look=False)
        return result
