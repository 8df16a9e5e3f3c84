"""Erases a tenant in two steps: a plan, which disables it and can be taken back, and the erasure, which cannot.

    (active) ── plan ──▶ PLANNED ── confirmed ──▶ ERASING ── all is gone ──▶ ERASED
        ◀── enabled ────────┘                     │      ▲
                                                  └──────┘ asked again: after a crash, or while something is not there

The second step, in this order, each part of which finds what is there and can be repeated:

    1. the tenant's record says that it is erased, from which there is no way back
    2. its containers are ended, and a moment passes in which all gateways hear of it and nodes send the last log lines
    3. its data keys are destroyed, and marks left in their places by which no process makes another: secrets and sealed
       blobs are unreadable from here on, wherever there are copies
    4. its records on the bus are deleted, API keys first
    5. its blobs are deleted
    6. its data keys are looked for once more

The record stays, so that nobody takes the name and with it the former owner's lines in the ledger.
"""

from __future__ import annotations

import asyncio
import secrets
import time
from collections import Counter
from collections.abc import Callable, Iterable
from typing import Protocol

import structlog
from msgspec.structs import replace

from pilotlight_core.bus import BusError
from pilotlight_core.host.blobs import BlobsDown, ErasedBlobs
from pilotlight_core.model.api.erasure_api import ErasureInfo, ErasureState
from pilotlight_core.model.errors import BadInput, Conflict, PilotlightError
from pilotlight_core.model.ids import NAME, token
from pilotlight_core.model.messages.bindings import Binding
from pilotlight_core.model.messages.controller_questions import StopContainer
from pilotlight_core.model.tenancy import TenantRecord
from pilotlight_gateway.erasure.tenant_traces import TenantTraces
from pilotlight_gateway.fleet.container_stopper import ContainerStopper
from pilotlight_gateway.tenancy.auth import Principal
from pilotlight_gateway.tenancy.registry_port import RegistryPort
from pilotlight_gateway.tenancy.tenants import no_tenant

ENDS_WITHIN_S = 2.0
"""Of a container's calls: nobody waits for their answers any more."""
ENDED_WITHIN_S = 20.0
"""Until then its containers are gone, or a node does not answer."""
LOOK_S = 0.25
SETTLED_S = 2.0
"""Within this other gateways have refused its keys and ended its calls (`PrincipalWatch`, each second), so that nothing
is written behind what deletes."""
ANSWERED_WITHIN_S = 40.0
"""An answer says how far it is then; the erasure goes on."""
SEALED, BLOBS = "data keys", "blobs"
KEEPS = (
    "its lines in the ledger and what they were made of, so that usage and invoices stay explainable",
    "its credits, which are money",
    "the audit log, with this erasure in it",
    "its name, which nobody can take again",
)
REASON = "its tenant is erased"

log = structlog.get_logger(__name__)


class ErasableKeys(Protocol):
    """A kind of data keys. Raises BusError."""

    async def erase(self, tenant: str) -> bool:
        """Destroy the tenant's, here and where it is stored, and let none be made; False: there was none."""
        ...

    async def is_there(self, tenant: str) -> bool: ...


class ErasableBlobs(Protocol):
    """The blobs of tenants. Raises BlobsDown."""

    async def measure(self, tenant: str) -> ErasedBlobs: ...

    async def erase(self, tenant: str) -> ErasedBlobs: ...


class TenantEraser:
    """Methods raise NotFound, Conflict, BadInput, BusError and BlobsDown."""

    def __init__(
        self,
        registry: RegistryPort,
        traces: TenantTraces,
        blobs: ErasableBlobs,
        keys: Iterable[ErasableKeys],
        stopper: ContainerStopper,
        bound: Callable[[], Iterable[Binding]],
        *,
        ended_within_s: float = ENDED_WITHIN_S,
        settled_s: float = SETTLED_S,
    ) -> None:
        self._registry = registry
        self._traces = traces
        self._blobs = blobs
        self._keys = tuple(keys)
        self._stopper = stopper
        self._bound = bound
        self._ended_within_s = ended_within_s
        self._settled_s = settled_s
        self._running: dict[str, asyncio.Task[ErasureInfo]] = {}

    async def plan(self, principal: Principal, tenant: str) -> ErasureInfo:
        """Disable the tenant, and say what would go, and by which word it goes. Nothing is deleted.

        Of a tenant whose erasure was begun it says how far that is.
        """
        if tenant == principal.tenant:
            raise Conflict("This would erase the tenant of the key that asks for it: use one of another tenant.")

        def planned(present: TenantRecord | None) -> TenantRecord:
            if present is None:
                raise no_tenant(tenant)
            return replace(present, disabled=True, erasing=present.erasing or token())

        if not NAME.fullmatch(tenant):
            raise no_tenant(tenant)
        record = await self._registry.change_tenant(tenant, planned)
        found, blobs = await self._traces.count(tenant), await self._blobs.measure(tenant)
        found[BLOBS] = blobs.blobs
        found[SEALED] = sum([await keys.is_there(tenant) for keys in self._keys])
        if record.erased_at:
            left = len(self._containers(tenant))
            is_over = not left and not +found and tenant not in self._running
            state = ErasureState.ERASED if is_over else ErasureState.ERASING
            why = "" if is_over else f"still there: {', '.join(sorted(+found)) or 'containers'}"
            return _info(record, Counter(record.gone), state, blob_bytes=blobs.size, containers=left, why=why)
        left = len(self._containers(tenant))
        return _info(record, +found, ErasureState.PLANNED, blob_bytes=blobs.size, containers=left)

    async def erase(self, principal: Principal, tenant: str, confirmation: str) -> ErasureInfo:
        """Erase a tenant whose plan gave this word; an answer after ANSWERED_WITHIN_S says that it goes on."""
        if tenant == principal.tenant:
            raise Conflict("This would erase the tenant of the key that asks for it: use one of another tenant.")
        record = await self._begun(tenant, confirmation)
        running = self._running.get(tenant)
        if running is None:
            running = self._running[tenant] = asyncio.create_task(self._erased(tenant))
            running.add_done_callback(lambda task: self._ended(tenant, task))
        done, _ = await asyncio.wait({running}, timeout=ANSWERED_WITHIN_S)
        if done:
            return running.result()
        why = "it goes on: ask again how far it is"
        return _info(record, Counter(record.gone), ErasureState.ERASING, why=why)

    async def aclose(self) -> None:
        """Break off what goes on."""
        running = list(self._running.values())
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)

    async def _begun(self, tenant: str, confirmation: str) -> TenantRecord:
        def begun(present: TenantRecord | None) -> TenantRecord:
            if present is None:
                raise no_tenant(tenant)
            if not present.erasing:
                raise Conflict("Nobody has planned to erase it: ask for what would go first.")
            if not secrets.compare_digest(present.erasing.encode(), confirmation.encode()):
                raise BadInput("confirmation: it is not that of the plan: plan it again.", field="confirmation")
            began = present.erased_at or time.time()
            return replace(present, disabled=True, network=(), erased_at=began, erasure_open=True)

        if not NAME.fullmatch(tenant):
            raise no_tenant(tenant)
        return await self._registry.change_tenant(tenant, begun)

    async def _erased(self, tenant: str) -> ErasureInfo:
        found, why = Counter[str](), ""
        left = await self._end_containers(tenant)
        if left:
            why = f"{left} of its containers have not ended: a node does not answer"
        await asyncio.sleep(self._settled_s)
        for keys in self._keys:
            found[SEALED] += await keys.erase(tenant)
        found += await self._traces.erase(tenant)
        blobs = await self._blobs.erase(tenant)
        found[BLOBS] += blobs.blobs
        for keys in self._keys:  # a process of an earlier release makes keys without looking for the mark
            found[SEALED] += await keys.erase(tenant)

        def noted(present: TenantRecord | None) -> TenantRecord:
            assert present is not None  # noqa: S101 - no tenant's record is deleted
            return replace(present, gone=dict(Counter(present.gone) + found), erasure_open=bool(left))

        record = await self._registry.change_tenant(tenant, noted)
        log.info("a tenant was erased", tenant=tenant, found=dict(+found), containers=left)
        state = ErasureState.ERASING if left else ErasureState.ERASED
        return _info(record, Counter(record.gone), state, blob_bytes=blobs.size, containers=left, why=why)

    async def _end_containers(self, tenant: str) -> int:
        """Ask for the ends of a tenant's containers, and wait for them; how many are still there."""
        for binding in self._containers(tenant):
            asked = StopContainer(
                container=binding.container, tenant=tenant, within_ms=ENDS_WITHIN_S * 1000, reason=REASON
            )
            try:
                await self._stopper.stop(asked)
            except PilotlightError as error:  # the controller ends those of a disabled tenant in any case
                log.info("a container could not be asked to end", container=binding.container, why=error.detail)
        for _ in range(int(self._ended_within_s / LOOK_S)):
            if not self._containers(tenant):
                break
            await asyncio.sleep(LOOK_S)
        return len(self._containers(tenant))

    def _containers(self, tenant: str) -> list[Binding]:
        return [binding for binding in self._bound() if binding.tenant == tenant]

    def _ended(self, tenant: str, task: asyncio.Task[ErasureInfo]) -> None:
        del self._running[tenant]
        if not task.cancelled() and (error := task.exception()) is not None:
            what = error.detail if isinstance(error, (BusError, BlobsDown)) else type(error).__name__
            log.error("an erasure broke off: it has to be asked for again", tenant=tenant, why=what)


def _info(
    record: TenantRecord,
    found: Counter[str],
    state: ErasureState,
    *,
    blob_bytes: int = 0,
    containers: int = 0,
    why: str = "",
) -> ErasureInfo:
    return ErasureInfo(
        tenant=record.name,
        state=state,
        found=dict(sorted(found.items())),
        blob_bytes=blob_bytes,
        containers=containers,
        confirmation=record.erasing,
        why=why,
        keeps=list(KEEPS),
    )
