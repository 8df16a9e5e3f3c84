"""Circuit breakers: what fails again and again gets no calls for a while, then one as a probe.

            too many failures in a row                 the pause is over
    CLOSED ─────────────────────────────▶ OPEN ─────────────────────────────▶ HALF_OPEN
       ▲                                    ▲     (one call goes: the probe)      │  │
       │                                    └──────── it fails: a longer pause ───┘  │
       └────────────────────────────── it succeeds ──────────────────────────────────┘

(Nygard, "Release It!", ch. 5.) An exception that the function raises is an answer, not a failure of the platform: its
caller learns it, and the next call may do better. So what counts is

per container   calls that it kept far beyond their usual time without an answer; and exceptions, but only while other
                containers of the version answer: one whose device context is broken raises for every call.
per version     containers in a row that were lost - crashed, ran past the timeout, could not be loaded - without
and per tenant  one call that was answered in between. Each container counts once, however many calls it held. Whether
                all callers or one tenant's are refused is for `losses` to say.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from math import inf

from pilotlight_core.model.errors import Unavailable
from pilotlight_core.model.messages.agent_messages import Outcome

CONTAINER_FAILURES = 5
VERSION_FAILURES = 5
FIRST_PAUSE_S = 1.0
LONGEST_PAUSE_S = 30.0
"""A pause is twice as long as the one before, at most this."""
PROBE_S = 60.0
"""A probe that is not heard of for so long is given up, and another may go."""
LATE_FACTOR = 5.0
LATEST_MS = 1_000.0
"""A call that was given up is the container's failure if it was held for five times as long as is usual, and a
second: a caller with little patience proves nothing."""


class CircuitState(StrEnum):
    """Of a breaker."""

    CLOSED = "closed"  # calls go
    OPEN = "open"  # none do
    HALF_OPEN = "half_open"  # one may


class ContainerVerdict(StrEnum):
    """What the end of a call says of where it ran."""

    FINE = "fine"  # it was answered
    RAISED = "raised"  # the function raised, or answered what it should not
    LATE = "late"  # it was held far too long, and given up
    LOST = "lost"  # its container is lost
    NOTHING = "nothing"


def verdict(outcome: Outcome | None, hold_ms: float, usual_ms: float | None) -> ContainerVerdict:
    """What the end of a call means that was held for `hold_ms`; None: nobody said how it ended."""
    if outcome is Outcome.OK:
        return ContainerVerdict.FINE
    match outcome:
        case Outcome.BAD_INPUT:
            return ContainerVerdict.FINE
        case Outcome.RAISED | Outcome.BAD_OUTPUT:
            return ContainerVerdict.RAISED
        case Outcome.DIED | Outcome.TIMEOUT | Outcome.LOAD_FAILED:
            return ContainerVerdict.LOST
        case Outcome.CANCELLED if usual_ms is not None and hold_ms > max(LATEST_MS, LATE_FACTOR * usual_ms):
            return ContainerVerdict.LATE
    return ContainerVerdict.NOTHING


class Breaker:
    """The state and the pauses; who has one says what counts as a failure."""

    __slots__ = ("failures", "probe", "state", "trips", "until")

    def __init__(self) -> None:
        self.state = CircuitState.CLOSED
        self.failures = 0
        """In a row."""
        self.trips = 0
        """Times that it opened since it was last closed."""
        self.until = 0.0
        """When the pause, or the wait for the probe, is over."""
        self.probe = ""
        """The call that probes."""

    def trip(self, at: float) -> None:
        """Open, for longer than the last time."""
        self.state, self.probe = CircuitState.OPEN, ""
        self.until = at + min(LONGEST_PAUSE_S, FIRST_PAUSE_S * 2.0**self.trips)
        self.trips += 1

    def try_again(self, at: float) -> bool:
        """Whether a probe may go now."""
        if self.state is CircuitState.CLOSED or at < self.until:
            return False
        self.state, self.probe = CircuitState.HALF_OPEN, ""
        return True

    def send(self, probe: str, at: float) -> None:
        """This call is the probe."""
        self.state, self.probe, self.until = CircuitState.HALF_OPEN, probe, at + PROBE_S

    def withdrawn(self, call: str, at: float | None) -> None:
        """The probe, if it was that, came to nothing: another may go, at once or (None) when that is known best."""
        if self.probe == call and self.state is CircuitState.HALF_OPEN:
            self.probe, self.until = "", at if at is not None else 0.0

    def close(self) -> None:
        """All is well."""
        self.state, self.failures, self.trips, self.probe = CircuitState.CLOSED, 0, 0, ""


class ContainerBreaker(Breaker):
    """Of one container: calls in a row that it kept too long, or that raised."""

    __slots__ = ("_since", "_tenants")

    def __init__(self) -> None:
        super().__init__()
        self._since = 0.0
        """When the present row of failures began."""
        self._tenants: set[str] = set()
        """Whose calls they were."""

    def note(self, found: ContainerVerdict, call: str, tenant: str, fine: Mapping[str, float], at: float) -> None:
        """A call has ended in the container; `fine`: when the version last answered a call of each tenant.

        One tenant's calls that fail may be the tenant's own doing. They prove something of the container if other
        containers answered that tenant meanwhile, or nobody else uses the version.
        """
        if found is ContainerVerdict.FINE:
            self.close()
        elif found in (ContainerVerdict.RAISED, ContainerVerdict.LATE):
            if not self.failures:
                self._since, self._tenants = at, set()
            self.failures += 1
            self._tenants.add(tenant)
            probed = self.state is CircuitState.HALF_OPEN and self.probe == call
            if probed or (
                self.state is CircuitState.CLOSED and self.failures >= CONTAINER_FAILURES and self._proves(found, fine)
            ):
                self.trip(at)
        else:
            self.withdrawn(call, at)

    def _proves(self, found: ContainerVerdict, fine: Mapping[str, float]) -> bool:
        if any(fine.get(tenant, -inf) >= self._since for tenant in self._tenants):
            return True
        return found is ContainerVerdict.LATE and (len(self._tenants) > 1 or fine.keys() <= self._tenants)


class LossBreaker(Breaker):
    """Containers lost in a row, as `losses` counts them: of a version, or of one tenant's calls to it."""

    __slots__ = ("_whose", "reason")

    def __init__(self, whose: str) -> None:
        super().__init__()
        self._whose = whose
        """In the refusal, which containers they were."""
        self.reason = ""
        """Of the last loss, for people."""

    def lost(self, reason: str, at: float, *, opens: bool = True) -> bool:
        """One more; whether that opens it."""
        self.failures += 1
        self.reason = reason or self.reason
        enough = opens and self.failures >= VERSION_FAILURES
        if self.state is CircuitState.HALF_OPEN or (self.state is CircuitState.CLOSED and enough):
            self.trip(at)
            return True
        return False

    def admit(self, call: str, at: float) -> None:
        """Let a call in: all while it is closed, one as the probe after a pause.

        Raises:
            Unavailable: it is open (`breaker_open`); `retry_after` is when a probe may go.
        """
        if self.state is CircuitState.CLOSED:
            return
        if at < self.until and self.probe != call:
            raise self.refusal(at)
        self.send(call, at)

    def refusal(self, at: float) -> Unavailable:
        """What a call is told that may not go."""
        reason = f" (the last: {self.reason})" if self.reason else ""
        pause = self.until - at if self.state is CircuitState.OPEN else FIRST_PAUSE_S
        return Unavailable(
            f"{self.failures} containers {self._whose} were lost in a row{reason}.",
            code="breaker_open",
            retry_after=max(0.0, pause),
        )
