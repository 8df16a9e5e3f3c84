"""What a home and its versions have to tell those who look on: counts, breakers and slowdowns."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from pilotlight_core.model.scheduling import BreakerTold
from pilotlight_gateway.scheduler.breakers import Breaker, State
from pilotlight_gateway.scheduler.slowdown import SlowFlow
from pilotlight_gateway.scheduler.version import VersionDesk


@dataclass(frozen=True, kw_only=True)
class BreakerCounts:
    """How many breakers are not closed."""

    versions: int = 0
    containers: int = 0

    @classmethod
    def of(cls, desks: Iterable[VersionDesk]) -> BreakerCounts:
        """Of all these versions."""
        versions = containers = 0
        for desk in desks:
            versions += desk.breaker.state is not State.CLOSED
            containers += len(desk.rooms.broken())
        return cls(versions=versions, containers=containers)


@dataclass(frozen=True, kw_only=True)
class HomeStatistics:
    """How a home is: calls waiting, grants not settled, containers known, versions known, versions lost to others."""

    queued: int
    oldest_ms: float
    granted: int
    containers: int
    versions: int
    deposed: int
    shed: dict[int, int] = field(default_factory=dict)
    """Rank of a tier -> its calls that were shed so far."""
    breakers: BreakerCounts = field(default_factory=BreakerCounts)
    slowdown: dict[str, float] = field(default_factory=dict)
    """Class -> the largest slowdown of a flow."""
    slow: tuple[SlowFlow, ...] = ()
    """The flows that others slow down: not empty is an alert."""


def breakers_of(desk: VersionDesk, at: float) -> Iterator[BreakerTold]:
    """The breakers of one version that are not closed, or count failures."""
    if desk.breaker.failures:
        yield _told(desk.version, "", desk.breaker, at)
    for room in desk.rooms.all():
        if room.breaker is not None and room.breaker.failures:
            yield _told(desk.version, room.container, room.breaker, at)


def worst_of(found: Iterable[dict[str, float]]) -> dict[str, float]:
    """The largest of each key."""
    worst: dict[str, float] = {}
    for values in found:
        for key, value in values.items():
            worst[key] = max(worst.get(key, value), value)
    return worst


def _told(version: str, container: str, breaker: Breaker, at: float) -> BreakerTold:
    return BreakerTold(
        version=version,
        container=container,
        state=breaker.state.value,
        failures=breaker.failures,
        retry_after=max(0.0, breaker.until - at) if breaker.state is State.OPEN else 0.0,
    )
