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
                one call that was answered in between. Each container counts once, however many calls it held.
"""

from __future__ import annotations

from collections import deque
from enum import StrEnum

from pilotlight_core.model.errors import Unavailable
from pilotlight_core.model.messages import Outcome

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


class State(StrEnum):
    """Of a breaker."""

    CLOSED = "closed"  # calls go
    OPEN = "open"  # none do
    HALF_OPEN = "half_open"  # one may


class Verdict(StrEnum):
    """What the end of a call says of where it ran."""

    FINE = "fine"  # it was answered
    RAISED = "raised"  # the function raised, or answered what it should not
    LATE = "late"  # it was held far too long, and given up
    LOST = "lost"  # its container is lost
    NOTHING = "nothing"


def verdict(outcome: Outcome | None, hold_ms: float, usual_ms: float | None) -> Verdict:
    """What the end of a call means that was held for `hold_ms`; None: nobody said how it ended."""
    if outcome is Outcome.OK:
        return Verdict.FINE
    match outcome:
        case Outcome.BAD_INPUT:
            return Verdict.FINE
        case Outcome.RAISED | Outcome.BAD_OUTPUT:
            return Verdict.RAISED
        case Outcome.DIED | Outcome.TIMEOUT | Outcome.LOAD_FAILED:
            return Verdict.LOST
        case Outcome.CANCELLED if usual_ms is not None and hold_ms > max(LATEST_MS, LATE_FACTOR * usual_ms):
            return Verdict.LATE
    return Verdict.NOTHING


class Breaker:
    """The state and the pauses; who has one says what counts as a failure."""

    __slots__ = ("failures", "probe", "state", "trips", "until")

    def __init__(self) -> None:
        self.state = State.CLOSED
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
        self.state, self.probe = State.OPEN, ""
        self.until = at + min(LONGEST_PAUSE_S, FIRST_PAUSE_S * 2.0**self.trips)
        self.trips += 1

    def try_again(self, at: float) -> bool:
        """Whether a probe may go now."""
        if self.state is State.CLOSED or at < self.until:
            return False
        self.state, self.probe = State.HALF_OPEN, ""
        return True

    def send(self, probe: str, at: float) -> None:
        """This call is the probe."""
        self.state, self.probe, self.until = State.HALF_OPEN, probe, at + PROBE_S

    def withdrawn(self, call: str, at: float | None) -> None:
        """The probe, if it was that, came to nothing: another may go, at once or (None) when that is known best."""
        if self.probe == call and self.state is State.HALF_OPEN:
            self.probe, self.until = "", at if at is not None else 0.0

    def close(self) -> None:
        """All is well."""
        self.state, self.failures, self.trips, self.probe = State.CLOSED, 0, 0, ""


class ContainerBreaker(Breaker):
    """Of one container. `since` is when the present row of failures began."""

    __slots__ = ("since",)

    def __init__(self) -> None:
        super().__init__()
        self.since = 0.0

    def note(self, found: Verdict, call: str, others_fine_at: float, at: float) -> None:
        """A call has ended in the container; another one of the version answered at `others_fine_at`."""
        if found is Verdict.FINE:
            self.close()
        elif found in (Verdict.RAISED, Verdict.LATE):
            self.since = self.since if self.failures else at
            self.failures += 1
            probed = self.state is State.HALF_OPEN and self.probe == call
            counts = found is Verdict.LATE or others_fine_at >= self.since
            if probed or (self.state is State.CLOSED and self.failures >= CONTAINER_FAILURES and counts):
                self.trip(at)
        else:
            self.withdrawn(call, at)


class VersionBreaker(Breaker):
    """Of one version: containers lost in a row."""

    __slots__ = ("_counted", "reason")

    def __init__(self) -> None:
        super().__init__()
        self.reason = ""
        """Of the last loss, for people."""
        self._counted: deque[str] = deque(maxlen=2 * VERSION_FAILURES)

    def note(self, found: Verdict, container: str, at: float) -> bool:
        """A call has ended; whether that opens it."""
        if found is Verdict.LOST:
            return self.lost(container, "", at)
        if found in (Verdict.FINE, Verdict.RAISED) and (self.failures or self.state is not State.CLOSED):
            self.close()
        return False

    def lost(self, container: str, reason: str, at: float) -> bool:
        """A container was lost; whether that opens it."""
        if container in self._counted:
            return False
        self._counted.append(container)
        self.failures += 1
        self.reason = reason or self.reason
        if self.state is State.HALF_OPEN or (self.state is State.CLOSED and self.failures >= VERSION_FAILURES):
            self.trip(at)
            return True
        return False

    def admit(self, call: str, at: float) -> None:
        """Let a call in: all while it is closed, one as the probe after a pause.

        Raises:
            Unavailable: it is open (`breaker_open`); `retry_after` is when a probe may go.
        """
        if self.state is State.CLOSED:
            return
        if at < self.until and self.probe != call:
            raise self.refusal(at)
        self.send(call, at)

    def refusal(self, at: float) -> Unavailable:
        """What a call is told that may not go."""
        reason = f" (the last: {self.reason})" if self.reason else ""
        pause = self.until - at if self.state is State.OPEN else FIRST_PAUSE_S
        return Unavailable(
            f"{self.failures} containers of this version were lost in a row{reason}.",
            code="breaker_open",
            retry_after=max(0.0, pause),
        )
