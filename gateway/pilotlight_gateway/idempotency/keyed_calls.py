"""The rim of idempotency: reads and writes records as `decision` says, and runs what has to run."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

import msgspec

from pilotlight_core.bus import BusError, KeyConflict, retry_conflicts
from pilotlight_core.model.errors import Conflict, PilotlightError, TooMuch, Unavailable
from pilotlight_gateway.idempotency.key_decision import (
    ClaimKey,
    FailureRetention,
    KeyBusy,
    KeyDecision,
    RefuseKey,
    ReplayAnswer,
    decide,
    decide_orphaned,
    fate_of,
    in_use,
    is_over,
)
from pilotlight_gateway.idempotency.key_record import CallOwner, FirstCall, StoredAnswer, begun, ended, place_of, voided
from pilotlight_gateway.idempotency.key_record_port import Doorbell, KeyRecords
from pilotlight_gateway.idempotency.memory_key_records import MemoryKeyRecords
from pilotlight_gateway.storage_quota.memory_quota import MemoryQuotaRecords
from pilotlight_gateway.storage_quota.quota_lease import StorageQuota
from pilotlight_gateway.storage_quota.quota_shares import RECORD_BYTES

DAY_S = 86_400.0
KEY_BYTES = 256 * 2**20
"""Of one tenant, in the life of a key."""
GLANCE_S = 1.0
"""How often a waiting request looks, in this process's memory, whether the first one's gateway lives."""
LOOK_S = 15.0
"""How often it reads the record although nothing rang: between several servers of the bus a ring may be lost."""


class KeyedRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A request with a key."""

    tenant: str
    key: str
    fingerprint: bytes
    call_id: str
    """The id that the call gets if it runs."""
    idempotent: bool
    """Whether its function may run twice."""
    timeout_s: float
    """Seconds within which the call ends."""
    wait_s: float = 0.0
    """Seconds that it would wait for the first one."""


class KeyedAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """What it gets."""

    answer: StoredAnswer
    call_id: str
    replayed: bool


class ClaimedKey(msgspec.Struct, frozen=True, kw_only=True):
    """A key that is this request's to run."""

    place: str
    ask: KeyedRequest
    first: FirstCall
    revision: int


@dataclass(kw_only=True, slots=True)
class KeyStatistics:
    """How often a key meant what, since the start."""

    first: int = 0
    replayed: int = 0
    refused: int = 0


class Idempotency:
    """Gives every request with a key its answer."""

    def __init__(
        self,
        records: KeyRecords | None = None,
        quota: StorageQuota | None = None,
        *,
        owner: CallOwner | None = None,
        ttl: float = DAY_S,
        wall: Callable[[], float] = time.time,
        glance: float = GLANCE_S,
    ) -> None:
        self._records: KeyRecords = MemoryKeyRecords() if records is None else records
        self._owner = owner or CallOwner(name="", instance="")
        self._ttl = ttl
        self._wall = wall
        self._quota = quota or StorageQuota(MemoryQuotaRecords(), limit=KEY_BYTES, life=ttl, wall=wall)
        self._glance = glance
        self._counts = KeyStatistics()

    def statistics(self) -> KeyStatistics:
        """Counts since the start."""
        return self._counts

    async def give(
        self,
        ask: KeyedRequest,
        work: Callable[[], Awaitable[StoredAnswer]],
        stored_error: Callable[[PilotlightError], StoredAnswer],
    ) -> KeyedAnswer:
        """The answer of `work`, if this is the key's first request, else the first one's.

        `stored_error` turns an error into the answer that is remembered of it.

        Raises:
            PilotlightError: `work`'s own; or why there is no answer: `idempotency_key_reused`, `answer_not_kept`,
                `idempotency_key_in_use`, `call_lost`.
            TooMuch, Unavailable: there is no room for another key, of the tenant's or at all.
            BusError: it is not known what the key stands for; nothing was run.
        """
        place = place_of(ask.tenant, ask.key)
        revision = 0  # most keys are new, so that is tried before it is asked

        async def attempt() -> ClaimedKey | ReplayAnswer | RefuseKey:
            nonlocal revision
            if (claimed := await self._claim(place, ask, revision)) is not None:
                return claimed
            verdict = await self._read_decision(place, ask)
            if isinstance(verdict, KeyBusy):
                verdict = await self._wait(place, ask, verdict)
            if isinstance(verdict, ClaimKey):
                revision = verdict.revision
                raise KeyConflict("The key was somebody else's for a moment.")
            return verdict

        crowded = Conflict("Too many requests with this key at once.", code="idempotency_key_in_use", retry_after=1.0)
        match await retry_conflicts(attempt, failed=crowded):
            case ClaimedKey() as claimed:
                return await self._first(claimed, work, stored_error)
            case ReplayAnswer(answer=answer, call_id=call_id):
                self._counts.replayed += 1
                return KeyedAnswer(answer=answer, call_id=call_id, replayed=True)
            case RefuseKey(error=error):
                self._counts.refused += 1
                raise error

    async def _claim(self, place: str, ask: KeyedRequest, revision: int) -> ClaimedKey | None:
        """The key, unless another request was first."""
        try:
            slot = await self._quota.take(ask.tenant, RECORD_BYTES)
        except TooMuch:
            if isinstance(decide(await self._records.read(place), ask.fingerprint), ClaimKey):
                raise
            return None
        first = begun(ask.fingerprint, ask.call_id, self._owner, at=self._wall(), timeout_s=ask.timeout_s)
        # No record may expire before its call has ended, or the call could be run a second time.
        ttl = max(self._ttl, first.ends_at - first.began_at)
        try:
            revision = await self._records.claim(place, first, revision, ttl)
        except (KeyConflict, Unavailable) as error:
            self._quota.give_back(ask.tenant, RECORD_BYTES, slot)
            if isinstance(error, KeyConflict):
                return None
            raise
        return ClaimedKey(place=place, ask=ask, first=first, revision=revision)

    async def _first(
        self,
        claimed: ClaimedKey,
        work: Callable[[], Awaitable[StoredAnswer]],
        stored_error: Callable[[PilotlightError], StoredAnswer],
    ) -> KeyedAnswer:
        self._counts.first += 1
        try:
            answer = await work()
        except PilotlightError as error:
            await self._failed(claimed, error, stored_error)
            raise
        except Exception:
            # What it came to is not known. Cancelled, it stays RUNNING: this process ends, and is missed by the others.
            await self._failed(claimed, PilotlightError(code="internal"), stored_error)
            raise
        await self._settle(claimed, await self._ended(claimed, answer))
        return KeyedAnswer(answer=answer, call_id=claimed.first.call_id, replayed=False)

    async def _failed(
        self, claimed: ClaimedKey, error: PilotlightError, stored_error: Callable[[PilotlightError], StoredAnswer]
    ) -> None:
        forget = fate_of(error, idempotent=claimed.ask.idempotent) is FailureRetention.FORGET
        await self._settle(
            claimed, voided(claimed.first) if forget else await self._ended(claimed, stored_error(error))
        )

    async def _settle(self, claimed: ClaimedKey, record: FirstCall) -> None:
        await self._records.settle(claimed.place, record, claimed.revision, self._ttl)

    async def _ended(self, claimed: ClaimedKey, answer: StoredAnswer) -> FirstCall:
        record = ended(claimed.first, answer)
        if record.answer is None:
            return record
        tenant, size = claimed.ask.tenant, len(answer.body)
        try:
            await self._quota.take(tenant, size)
        except (TooMuch, Unavailable) as error:
            if not isinstance(error, BusError):
                return ended(claimed.first, answer, keep=False)
            self._quota.owe(tenant, size)  # it has run, so its answer is kept: it is written when the bus is back
        return record

    async def _read_decision(self, place: str, ask: KeyedRequest) -> KeyDecision:
        verdict = decide(await self._records.read(place), ask.fingerprint)
        if not isinstance(verdict, KeyBusy) or await self._lives(verdict.first):
            return verdict
        # It may have ended between the two questions, and its gateway with it.
        again = decide(await self._records.read(place), ask.fingerprint)
        return decide_orphaned(again, idempotent=ask.idempotent) if again == verdict else again

    async def _lives(self, first: FirstCall) -> bool:
        if is_over(first, self._wall()):
            return False
        return first.owner == self._owner or await self._records.is_alive(first.owner)

    async def _wait(self, place: str, ask: KeyedRequest, busy: KeyBusy) -> ClaimKey | ReplayAnswer | RefuseKey:
        """The verdict once the first call has ended, or the refusal when the request has waited long enough."""
        end = time.monotonic() + ask.wait_s
        if ask.wait_s <= 0.0:
            return self._in_use(busy)
        async with self._records.watch(place) as bell:
            while isinstance(verdict := await self._read_decision(place, ask), KeyBusy):
                left = end - time.monotonic()
                if left <= 0.0:
                    return self._in_use(verdict)
                await self._wait_change(bell, verdict.first, min(left, LOOK_S))
            return verdict

    async def _wait_change(self, bell: Doorbell, first: FirstCall, timeout_s: float) -> None:
        """Until something was written, or its gateway seems to be gone, or `timeout_s` seconds have passed."""
        end = time.monotonic() + timeout_s
        while (left := end - time.monotonic()) > 0.0:
            if await bell.wait(min(self._glance, left)):
                return
            ours = first.owner == self._owner
            if is_over(first, self._wall()) or not (ours or self._records.seems_alive(first.owner)):
                return

    def _in_use(self, busy: KeyBusy) -> RefuseKey:
        return RefuseKey(in_use(busy.first, self._wall()), busy.first.call_id)
