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
                all callers or one tenant's are refused is for `LossAttribution` to say.

Containers of one version that were lost, and whose calls are refused for it. Pure; instants are seconds.

A function may be called by several tenants, and an input can kill the container that works on it. So a loss counts
against those whose calls the container held, and opens a breaker of *that tenant* for the version: five in a row
without an answer to this tenant in between. Where a container held calls of several tenants, nobody can say whose it
was that killed it: it counts against the one of them that has lost most in a row already (of several with as many,
against each), since who is innocent gets answers in between. A call that ran past its timeout names its tenant.

The breaker *of the version* opens for what no tenant explains: five in a row without any answered call, of which at
least two held no call of the tenant that is in most of them. So it opens for containers that cannot be loaded, or that
die under whoever calls, and stays closed for one tenant's bad inputs, however many.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Collection, Iterable, Mapping
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

    def withdrawn(self, call_id: str, at: float | None) -> None:
        """The probe, if it was that, came to nothing: another may go, at once or (None) when that is known best."""
        if self.probe == call_id and self.state is CircuitState.HALF_OPEN:
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

    def note(self, found: ContainerVerdict, call_id: str, tenant: str, fine: Mapping[str, float], at: float) -> None:
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
            probed = self.state is CircuitState.HALF_OPEN and self.probe == call_id
            if probed or (
                self.state is CircuitState.CLOSED and self.failures >= CONTAINER_FAILURES and self._proves(found, fine)
            ):
                self.trip(at)
        else:
            self.withdrawn(call_id, at)

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

    def admit(self, call_id: str, at: float) -> None:
        """Let a call in: all while it is closed, one as the probe after a pause.

        Raises:
            Unavailable: it is open (`breaker_open`); `retry_after` is when a probe may go.
        """
        if self.state is CircuitState.CLOSED:
            return
        if at < self.until and self.probe != call_id:
            raise self.refusal(at)
        self.send(call_id, at)

    def refusal(self, at: float) -> Unavailable:
        """What a call is told that may not go."""
        reason = f" (the last: {self.reason})" if self.reason else ""
        pause = self.until - at if self.state is CircuitState.OPEN else FIRST_PAUSE_S
        return Unavailable(
            f"{self.failures} containers {self._whose} were lost in a row{reason}.",
            code="breaker_open",
            retry_after=max(0.0, pause),
        )


UNEXPLAINED = 2
"""Losses in a row without a call of the tenant that is in most of them: fewer may be chance."""
TENANTS_AT_MOST = 256
"""That have lost containers in a row; beyond it the one whose last loss is the oldest is forgotten."""
EVERYBODY = ""


class LossAttribution:
    """The breakers of one version that open for lost containers."""

    __slots__ = ("_counted", "_row", "everybody", "tenants")

    def __init__(self) -> None:
        self.everybody = LossBreaker("of this version")
        self.tenants: OrderedDict[str, LossBreaker] = OrderedDict()
        """Of those that have lost one since they were last answered; handed over in the order of their last losses."""
        self._row: deque[frozenset[str]] = deque(maxlen=VERSION_FAILURES)
        """Whose calls the containers held that were lost in the present row."""
        self._counted: deque[str] = deque(maxlen=2 * VERSION_FAILURES)

    def answered(self, found: ContainerVerdict, tenant: str) -> None:
        """A call has ended in a container that lives on."""
        if found in (ContainerVerdict.FINE, ContainerVerdict.RAISED):
            if self.everybody.failures or self.everybody.state is not CircuitState.CLOSED:
                self.everybody.close()
                self._row.clear()
            if self.tenants:
                self.tenants.pop(tenant, None)

    def is_counted(self, container: str) -> bool:
        """Whether the loss of a container has been told already."""
        return container in self._counted

    def lost(self, container: str, tenants: Collection[str], reason: str, at: float) -> list[str]:
        """A container was lost that held calls of these tenants (none: it could not be loaded).

        Returns whose breaker that opens: tenants, or EVERYBODY.
        """
        if container in self._counted:
            return []
        self._counted.append(container)
        self._row.append(frozenset(tenants))
        opened = [tenant for tenant in self._blamed(tenants) if self.breaker_of(tenant).lost(reason, at)]
        if self.everybody.lost(reason, at, opens=self._is_unexplained()):
            opened.append(EVERYBODY)
        return opened

    def admit(self, call_id: str, tenant: str, at: float) -> None:
        """Let a call in: see `LossBreaker.admit`, for its tenant and for everybody."""
        own = self.tenants.get(tenant) if self.tenants else None
        if own is not None:
            own.admit(call_id, at)
        try:
            self.everybody.admit(call_id, at)
        except Exception:
            self.withdrawn(call_id, tenant, at)
            raise

    def withdrawn(self, call_id: str, tenant: str, at: float | None) -> None:
        """A call that was let in has ended without a word on its container; see `Breaker.withdrawn`."""
        self.everybody.withdrawn(call_id, at)
        if self.tenants and (own := self.tenants.get(tenant)) is not None:
            own.withdrawn(call_id, at)

    @property
    def row(self) -> tuple[tuple[str, ...], ...]:
        """Whose calls the containers held that were lost in the present row."""
        return tuple(tuple(sorted(held)) for held in self._row)

    @row.setter
    def row(self, row: Iterable[Iterable[str]]) -> None:
        self._row.extend(frozenset(held) for held in row)

    def breaker_of(self, tenant: str) -> LossBreaker:
        """The breaker of a tenant, or of EVERYBODY."""
        if tenant == EVERYBODY:
            return self.everybody
        breaker = self.tenants.get(tenant)
        if breaker is None:
            breaker = self.tenants[tenant] = LossBreaker("that worked on calls of this tenant")
            if len(self.tenants) > TENANTS_AT_MOST:
                self.tenants.popitem(last=False)
        self.tenants.move_to_end(tenant)
        return breaker

    def _blamed(self, tenants: Collection[str]) -> list[str]:
        known = {tenant: self.tenants[tenant] for tenant in tenants if tenant in self.tenants}
        most = max((breaker.failures for breaker in known.values()), default=0)
        # A probe that died has failed, whoever else was there.
        return [
            tenant
            for tenant in tenants
            if not most
            or (tenant in known and (known[tenant].failures == most or known[tenant].state is CircuitState.HALF_OPEN))
        ]

    def _is_unexplained(self) -> bool:
        suspects = frozenset[str]().union(*self._row)
        return all(sum(suspect not in held for held in self._row) >= UNEXPLAINED for suspect in suspects)
