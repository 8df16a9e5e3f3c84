"""Answers requests with idempotency keys."""

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
"""Bytes per tenant within the life of a key."""
GLANCE_S = 1.0
"""Seconds between checks, in memory, that the first request's gateway lives."""
LOOK_S = 15.0
"""Seconds between reads without a ring, which servers of the bus may lose."""


class KeyedRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A request with a key."""

    tenant: str
    key: str
    fingerprint: bytes
    call_id: str
    """The id of the call if the request runs."""
    idempotent: bool
    """Whether its function may run twice."""
    timeout_s: float
    """Seconds within which the call ends."""
    wait_s: float = 0.0
    """Seconds to wait for the first request's answer."""


class KeyedAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """The answer to a request with a key."""

    answer: StoredAnswer
    call_id: str
    replayed: bool


class ClaimedKey(msgspec.Struct, frozen=True, kw_only=True):
    """A key that this request has claimed."""

    place: str
    ask: KeyedRequest
    first: FirstCall
    revision: int


@dataclass(kw_only=True, slots=True)
class KeyStatistics:
    """Requests with a key since the start, by outcome."""

    first: int = 0
    replayed: int = 0
    refused: int = 0


class Idempotency:
    """Runs the first request of each key, and answers the others."""

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
        return self._counts

    async def give(
        self,
        ask: KeyedRequest,
        work: Callable[[], Awaitable[StoredAnswer]],
        stored_error: Callable[[PilotlightError], StoredAnswer],
    ) -> KeyedAnswer:
        """The answer of `work` for the first request of a key, else the first one's answer.

        `stored_error` turns an error of `work` into the answer to store.

        Raises:
            PilotlightError: as `work`, or `idempotency_key_reused`, `answer_not_kept`, `idempotency_key_in_use`,
                `call_lost`.
            TooMuch: the tenant's quota of keys is used up.
            Unavailable: the bucket is full.
            BusError: the state of the key is unknown; nothing has run.
        """
        place = place_of(ask.tenant, ask.key)
        revision = 0  # most keys are new, so claim before reading

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
        try:
            slot = await self._quota.take(ask.tenant, RECORD_BYTES)
        except TooMuch:
            if isinstance(decide(await self._records.read(place), ask.fingerprint), ClaimKey):
                raise
            return None
        at = self._wall()
        first = begun(ask.fingerprint, ask.call_id, self._owner, at=at, timeout_s=ask.timeout_s, tenant=ask.tenant)
        # A record that expires before its call ends would let the call run twice.
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
            # The outcome is unknown. A cancelled call stays RUNNING: this process ends, and others see that it is gone.
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
            self._quota.owe(tenant, size)  # the call has run, so its answer is stored, and counted when the bus is back
        return record

    async def _read_decision(self, place: str, ask: KeyedRequest) -> KeyDecision:
        verdict = decide(await self._records.read(place), ask.fingerprint)
        if not isinstance(verdict, KeyBusy) or await self._lives(verdict.first):
            return verdict
        # The call, and then its gateway, may have ended between the two reads.
        again = decide(await self._records.read(place), ask.fingerprint)
        return decide_orphaned(again, idempotent=ask.idempotent) if again == verdict else again

    async def _lives(self, first: FirstCall) -> bool:
        if is_over(first, self._wall()):
            return False
        return first.owner == self._owner or await self._records.is_alive(first.owner)

    async def _wait(self, place: str, ask: KeyedRequest, busy: KeyBusy) -> ClaimKey | ReplayAnswer | RefuseKey:
        """The decision after the first call's end, or the refusal after `wait_s`."""
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
        """Wait for a change, at most until the first call's gateway seems gone."""
        end = time.monotonic() + timeout_s
        while (left := end - time.monotonic()) > 0.0:
            if await bell.wait(min(self._glance, left)):
                return
            ours = first.owner == self._owner
            if is_over(first, self._wall()) or not (ours or self._records.seems_alive(first.owner)):
                return

    def _in_use(self, busy: KeyBusy) -> RefuseKey:
        return RefuseKey(in_use(busy.first, self._wall()), busy.first.call_id)
