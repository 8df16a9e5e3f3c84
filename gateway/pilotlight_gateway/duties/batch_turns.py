"""Chooses the batches that run when there are too many: tenants take turns, then their batches. Pure.

Tenants' first batches precede second ones, and the longest waiting tenant is first. A turn lasts at least `TURN_S`,
since a new driver reads all unsettled items again, and until another batch waits. So each of T tenants gets a turn
every T / `DRIVEN_AT_MOST` turns, rounded up.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from pilotlight_core.model.records.batches import BatchRecord, BatchState

DRIVEN_PER_TENANT = 2
DRIVEN_AT_MOST = 128
TURN_S = 60.0


class _Turn(NamedTuple):
    tenant: str
    began_at: float


class BatchTurns:
    """The turns of batches, by monotonic seconds."""

    def __init__(self, *, places: int = DRIVEN_AT_MOST) -> None:
        self._places = places
        self._turns: dict[str, _Turn] = {}
        """By the batch's key."""
        self._rested: dict[str, float] = {}
        """By tenant, the end of its last turn."""

    def begin(self, record: BatchRecord, at: float) -> None:
        self._turns[record.key] = _Turn(record.tenant, at)

    def end(self, record: BatchRecord, at: float) -> None:
        self._turns.pop(record.key, None)
        self._rested[record.tenant] = at

    def choose(self, records: Iterable[BatchRecord], at: float) -> tuple[list[BatchRecord], float | None]:
        """The batches whose turn it is, and when that changes by itself; None: never."""
        ranked = _ranked(records)
        tenants = {record.tenant for _, record in ranked}
        self._rested = {tenant: since for tenant, since in self._rested.items() if tenant in tenants}
        ranked.sort(key=lambda one: self._order(one[0], one[1], at))
        chosen = [record for _, record in ranked[: self._places]]
        if len(ranked) <= self._places:
            return chosen, None
        ends = (turn.began_at + TURN_S for turn in self._turns.values())
        return chosen, min((end for end in ends if end > at), default=at + TURN_S)

    def _order(self, rank: int, record: BatchRecord, at: float) -> tuple[int, int, float, float, str]:
        turn = self._turns.get(record.key)
        if turn is not None and at - turn.began_at < TURN_S:
            return -1, 0, 0.0, record.created_at, record.id
        if turn is not None:
            return rank, 1, -turn.began_at, record.created_at, record.id
        return rank, 0, self._rested.get(record.tenant, float("-inf")), record.created_at, record.id


def _ranked(records: Iterable[BatchRecord]) -> list[tuple[int, BatchRecord]]:
    """The batches that may run, with their rank in their tenant: cancelled first, then the oldest."""
    of: dict[str, list[BatchRecord]] = {}
    for record in records:
        if not record.state.over:
            of.setdefault(record.tenant, []).append(record)
    return [
        (rank, record) for own in of.values() for rank, record in enumerate(sorted(own, key=_age)[:DRIVEN_PER_TENANT])
    ]


def _age(record: BatchRecord) -> tuple[bool, float, str]:
    return record.state is not BatchState.CANCELLING, record.created_at, record.id
