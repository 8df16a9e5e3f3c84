"""What homes tell controllers of the load of their versions, all that changed in a turn in one message."""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from pilotlight_core.model.messages.message import Message


class JobBacklog(NamedTuple):
    """The known jobs of a function that wait behind those that are queued at their home."""

    ready: int
    """Those that could begin."""
    held: int
    """Those that limits of their tenant hold back."""


NO_BACKLOG = JobBacklog(0, 0)


class ClassLoad(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """The calls of one priority class at one version."""

    queued: int = 0
    running: int = 0
    """Of those that this home has granted."""
    oldest_ms: float = 0.0
    """How long the first of the queued ones has waited."""


class Demand(Message, frozen=True, kw_only=True, gc=False):
    """The load of a version's queue. Told at once when calls begin to wait, then each 250 ms while they do or run.

    What is counted since the last word is lost with a home, and with a word that nobody hears. Homes of release 0.1
    tell nothing of what is after `refused`.
    """

    version: str
    tenant: str
    gateway: str
    epoch: int
    queued: int
    oldest_ms: float
    running: int
    arrivals: int
    """Since this home's last Demand for the version."""
    service_ms: float = 0.0
    """A smoothed execution time of one call; 0: unknown."""
    edge: bool = False
    refused: bool = False
    """Whether a call was lately refused for lack of a container, and there still is none."""
    refused_calls: int = 0
    """Calls turned away at their arrival since the last word: for lack of a container, because as many wait as may, or
    because their turn would have come too late. Not counted are those that an open breaker refused: they want no room.
    """
    late: int = 0
    """Calls that left the queue since the last word because they had waited for as long as they could, or because what
    is left of their time, or of the capacity, was not enough for them. None of them is among `refused_calls`."""
    oldest_run_ms: float = 0.0
    """How long ago the oldest of the running calls was granted, of those that this home has granted; 0: none runs."""
    backlog: int = 0
    """Jobs of the function that could begin and wait behind those that are queued here: at least so many. Jobs name
    their version when they begin: each version of a function has the same number."""
    held_jobs: int = 0
    """The same of those that limits of their tenant hold back, which are not in `backlog`: more containers would not
    start them."""
    classes: dict[str, ClassLoad] = msgspec.field(default_factory=dict)
    """By priority class, those with a queued or running call."""
    function: str = ""
    """`tenant:app.function`; "" from an older home, or before a call has named it."""

    @property
    def waiting(self) -> int:
        """The calls that want room: those queued, and one for all that were refused for lack of a container."""
        return self.queued or int(self.refused)


class Demands(Message, frozen=True, kw_only=True, gc=False):
    """The demands of one home that are due in one turn. Homes of release 0.1 send each `Demand` alone."""

    gateway: str
    shard: int
    """The home's."""
    items: tuple[Demand, ...]
