"""Makes shadow calls and runs them: as calls of their tenant that wait behind all others, and that nobody pays for but
the operator.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

import msgspec

from pilotlight_core.model.errors import NotFound, PilotlightError
from pilotlight_core.model.spec import Mode, Priority, VersionRecord
from pilotlight_gateway.bodies.body_codec import BodyCodec
from pilotlight_gateway.bodies.byte_budget import ByteBudget
from pilotlight_gateway.calls.call_port import CallPort, CallResult
from pilotlight_gateway.calls.collected_chunks import collect_chunks
from pilotlight_gateway.calls.prepared_call import PreparedCall
from pilotlight_gateway.schemas.version_schemas import VersionSchemas
from pilotlight_gateway.tenancy.registry_port import RegistryPort
from pilotlight_gateway.tenancy.scheduling_class import scheduling_class_of


@dataclass(frozen=True, kw_only=True)
class Shadowed:
    """What a shadow came to."""

    call: PreparedCall
    result: CallResult | None
    error: PilotlightError | None
    total_ms: float
    first_ms: float = 0.0
    """To its first chunk; 0: it has none."""


@dataclass(kw_only=True)
class _FirstChunk:
    """When the first chunk of a shadow came."""

    clock: Callable[[], float]
    since: float
    ms: float = 0.0

    def note(self) -> None:
        self.ms = self.ms or (self.clock() - self.since) * 1000.0


@dataclass(frozen=True, kw_only=True)
class ShadowCalls:
    calls: CallPort
    registry: RegistryPort
    schemas: VersionSchemas
    codec: BodyCodec
    budget: ByteBudget
    clock: Callable[[], float]
    """Monotonic seconds."""

    async def run(self, primary: PreparedCall, version_id: str) -> Shadowed:
        """Run what `primary` asked once more, by another version.

        Raises:
            NotFound: there is no such version any more.
            Unavailable: this gateway has no identity yet.
        """
        call = await self._prepared(primary, version_id)
        await asyncio.sleep(0)  # callers go first: nobody waits for this
        result, error, first = None, None, _FirstChunk(clock=self.clock, since=call.arrived_at)
        try:
            result = await self._answer(call, first)
        except PilotlightError as failed:
            error = failed
        total_ms = (self.clock() - call.arrived_at) * 1000.0
        return Shadowed(call=call, result=result, error=error, total_ms=total_ms, first_ms=first.ms)

    async def _prepared(self, primary: PreparedCall, version_id: str) -> PreparedCall:
        version = self.registry.version(version_id) or await self.registry.fetch_version(version_id)
        if version is None:
            raise NotFound(f"There is no version {version_id} any more.")
        method = await self.schemas.method(version, primary.method.name)
        scheduling = scheduling_class_of(self.registry, primary.tenant, primary.function)
        spec, at = version.spec, self.clock()
        return PreparedCall(
            call_id=self.calls.new_id(),
            client_id=None,
            tenant=primary.tenant,
            version=_once(version),
            method=method,
            input=primary.input,
            priority=scheduling.lowered(Priority.BATCH),
            scheduling=scheduling,
            deadline_at=at + spec.startup_timeout + spec.timeout,
            arrived_at=at,
            stream=method.mode is not Mode.UNARY,
            key=primary.key,
            shadow=True,
        )

    async def _answer(self, call: PreparedCall, first: _FirstChunk) -> CallResult:
        if call.stream:
            return await collect_chunks(self.calls, call, self.codec, self.budget, first.note)
        result = await self.calls.run(call)
        if result.output:
            await self.codec.check_output(result.output, call.version.id, call.method, call.tenant)
        return result


def _once(version: VersionRecord) -> VersionRecord:
    """The version as a shadow calls it: one that fails is not run again."""
    return msgspec.structs.replace(version, spec=msgspec.structs.replace(version.spec, retries=0, idempotent=False))
