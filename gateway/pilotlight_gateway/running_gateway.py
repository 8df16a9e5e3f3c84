"""The end of a gateway: clients go elsewhere, calls finish, connections close."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

import structlog

from pilotlight_core.host.registry import Registry
from pilotlight_gateway.cluster.identity_guard import NameTaken
from pilotlight_gateway.front_wiring import GrpcFront
from pilotlight_gateway.http.protocol.drain_gate import DrainGate
from pilotlight_gateway.http.quiet_server import QuietServer
from pilotlight_gateway.jobs.job_service import JobService
from pilotlight_gateway.principal_watch import PrincipalWatch

ABORT_SECONDS = 2.0
"""For aborted calls to answer their callers."""

log = structlog.get_logger(__name__)


@dataclass(frozen=True, kw_only=True)
class Gateway:
    """The parts of a running gateway that its shutdown needs."""

    gate: DrainGate
    jobs: JobService
    registry: Registry
    watch: PrincipalWatch
    public: QuietServer
    internal: QuietServer
    grpc: GrpcFront
    superseded: asyncio.Future[NameTaken]

    async def give_notice(self, seconds: float, lost: asyncio.Event) -> None:
        """Have clients go elsewhere for so long, or until nothing can be answered any more; calls are still taken."""
        self.gate.leaving = True
        self.public.end_connections()
        self.jobs.end_waits()
        gone = asyncio.ensure_future(lost.wait())
        try:
            await asyncio.wait((gone, self.superseded), timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        finally:
            gone.cancel()

    async def shut_down(self, drain_seconds: float) -> None:
        """End after all calls that can be answered in time. Every step has a bound."""
        # 1. Take no more calls.
        # 2. Let those inside finish.
        if not await self.gate.drain(drain_seconds):
            # 3. End the rest; their callers hear `draining`.
            aborted = await self.gate.abort(ABORT_SECONDS)
            log.warning("calls were ended by the shutdown", calls=aborted)
        # 4. Close the listeners and idle connections (the server itself waits 2 s for the last bytes). gRPC tells its
        #    clients to go elsewhere, and ends the streams that are idle.
        await self.grpc.stop()
        self.public.stop()
        self.internal.stop()
