"""The port to whoever makes a pool's machines: four verbs, each of which may be repeated.

list       the machines of the pool that are there, found by their tags: nobody's memory is needed
launch     one machine; asked again with the same id it is the same one
terminate  one machine; that it is gone already is no error
notices    what the provider has said of machines since the last time, each at least once
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from pilotlight_core.model.records.pools import LaunchRecord, PoolRecord

MOST_LISTED = 2_000
"""Machines of one pool."""
MOST_NOTICES = 100
"""At a time; there may be more the next time."""


class PoolError(Exception):
    """A provider could not do what it was asked; the message says why, and it may be asked again."""


class NoCapacity(PoolError):
    """The provider has no such machine now."""


class LaunchRefused(PoolError):
    """The provider will not launch such a machine, however often it is asked: what the pool says of it is wrong."""


@dataclass(frozen=True, kw_only=True)
class PoolMachine:
    """A machine of a pool, as its provider lists it."""

    launch: str
    """The id of its launch; "": it does not say, and nobody knows of it."""
    provider_id: str
    node: str = ""
    type: str = ""
    zone: str = ""
    is_ending: bool = False


@dataclass(frozen=True, kw_only=True)
class LaunchOrder:
    """One machine to launch. `types` are those that would do, the one on record first."""

    pool: PoolRecord
    launch: LaunchRecord
    types: tuple[str, ...]
    join_text: str = ""
    """The token by which its node joins, used up by that; "": it has an identity of its own."""


class NoticeAbout(StrEnum):
    INTERRUPTION = "interruption"
    REBALANCE = "rebalance"
    STATE = "state"  # it stops, or has been ended


@dataclass(frozen=True, kw_only=True)
class PoolNotice:
    """What a provider has said of one machine. `deadline_at` is unix seconds; 0: there is none."""

    provider_id: str
    about: NoticeAbout
    deadline_at: float = 0.0
    reason: str = ""


class NodePool(Protocol):
    """The machines of one pool. Methods raise `PoolError`, and end within their provider's bounds of time."""

    async def list_machines(self) -> Sequence[PoolMachine]: ...

    async def launch(self, order: LaunchOrder) -> PoolMachine:
        """Launch a machine, or find the one that this launch has made before.

        Raises:
            NoCapacity. LaunchRefused. PoolError.
        """
        ...

    async def terminate(self, machine: PoolMachine) -> None: ...

    async def notices(self) -> Sequence[PoolNotice]: ...

    async def aclose(self) -> None: ...
