"""Circuit breakers (Nygard, "Release It!", ch. 5): what fails repeatedly gets no calls for a pause, then one as a
probe.

            too many failures in a row                 the pause is over
    CLOSED ─────────────────────────────▶ OPEN ─────────────────────────────▶ HALF_OPEN
       ▲                                    ▲     (one call goes: the probe)      │  │
       │                                    └──────── it fails: a longer pause ───┘  │
       └────────────────────────────── it succeeds ──────────────────────────────────┘

An exception of the function is an answer, not a failure of the platform. `ContainerBreaker` counts calls that a
container holds far beyond their usual time, and exceptions only while other containers of the version answer: a
container with a broken device context raises for every call.

`LossAttribution` counts containers that are lost (crashed, past the timeout, not loadable), each once. One input can
crash a container, and a function may have several tenants as callers. So a loss counts against the tenants whose calls
the container held; five in a row without an answer to a tenant open the breaker of that tenant for the version. Of
several tenants in one container, it counts against the one with most losses in a row (each if equal), as an innocent
tenant is answered in between. A timeout counts against the tenant of the call alone.

The breaker of the version opens for losses that no tenant explains: five in a row without any answer, of which at least
two held no call of the tenant that is in most of them. So it opens for containers that cannot be loaded or crash for
every caller, and stays closed for bad inputs of one tenant.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Collection, Iterable, Mapping
from enum import StrEnum
from math import inf

from pilotlight_core.model.errors import Unavailable
from pilotlight_core.model.messages.call_messages import Outcome

CONTAINER_FAILURES = 5
VERSION_FAILURES = 5
FIRST_PAUSE_S = 1.0
LONGEST_PAUSE_S = 30.0
"""A pause is twice as long as the one before, up to this."""
PROBE_S = 60.0
"""A probe without a result for this long is given up, and another call may probe."""
LATE_FACTOR = 5.0
LATEST_MS = 1_000.0
"""A cancelled call is a failure of its container if it was held for LATE_FACTOR times the usual and for LATEST_MS: a
caller that gives up early proves nothing."""
UNEXPLAINED = 2
"""Losses in a row without a call of the tenant that is in most of them; fewer may be chance."""
TENANTS_AT_MOST = 256
"""Tenants with losses in a row; beyond it the tenant whose last loss is the oldest is forgotten."""
EVERYBODY = ""


class CircuitState(StrEnum):
    CLOSED = "closed"  # calls go
    OPEN = "open"  # none do
    HALF_OPEN = "half_open"  # one may


class ContainerVerdict(StrEnum):
    """What the end of a call proves about its container."""

    FINE = "fine"  # it was answered
    RAISED = "raised"  # the function raised, or answered what it should not
    LATE = "late"  # it was held far too long, and given up
    LOST = "lost"  # its container is lost
    NOTHING = "nothing"


def verdict(outcome: Outcome | None, hold_ms: float, usual_ms: float | None) -> ContainerVerdict:
    """The verdict on a call that held its slot for `hold_ms`; `outcome` is None if it is unknown."""
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
    """State, pauses and probe; subclasses decide what counts as a failure."""

    __slots__ = ("failures", "probe", "state", "trips", "until")

    def __init__(self) -> None:
        self.state = CircuitState.CLOSED
        self.failures = 0
        """In a row."""
        self.trips = 0
        """How often it opened since it was last closed."""
        self.until = 0.0
        """The end of the pause, or of the wait for the probe."""
        self.probe = ""

    def trip(self, at: float) -> None:
        """Open for the next pause."""
        self.state, self.probe = CircuitState.OPEN, ""
        self.until = at + min(LONGEST_PAUSE_S, FIRST_PAUSE_S * 2.0**self.trips)
        self.trips += 1

    def try_again(self, at: float) -> bool:
        """Become half-open if the pause is over; whether it did."""
        if self.state is CircuitState.CLOSED or at < self.until:
            return False
        self.state, self.probe = CircuitState.HALF_OPEN, ""
        return True

    def send(self, probe: str, at: float) -> None:
        """Make a call the probe."""
        self.state, self.probe, self.until = CircuitState.HALF_OPEN, probe, at + PROBE_S

    def withdrawn(self, call_id: str, at: float | None) -> None:
        """A call ended without a verdict: if it was the probe, another may go from `at` on (None: at once)."""
        if self.probe == call_id and self.state is CircuitState.HALF_OPEN:
            self.probe, self.until = "", at if at is not None else 0.0

    def close(self) -> None:
        self.state, self.failures, self.trips, self.probe = CircuitState.CLOSED, 0, 0, ""


class ContainerBreaker(Breaker):
    """Of one container: calls in a row that it held too long, or that raised."""

    __slots__ = ("_since", "_tenants")

    def __init__(self) -> None:
        super().__init__()
        self._since = 0.0
        self._tenants: set[str] = set()
        """Whose calls failed in this row."""

    def note(self, found: ContainerVerdict, call_id: str, tenant: str, fine: Mapping[str, float], at: float) -> None:
        """Count the end of a call in the container; `fine` is when the version last answered each tenant.

        Failing calls of one tenant may be due to its inputs. They count against the container if other containers
        answered that tenant meanwhile, or if no other tenant uses the version.
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
    """Of a version, or of one tenant's calls to it: containers lost in a row."""

    __slots__ = ("_whose", "reason")

    def __init__(self, whose: str) -> None:
        super().__init__()
        self._whose = whose
        self.reason = ""
        """Of the last loss, for people."""

    def lost(self, reason: str, at: float, *, opens: bool = True) -> bool:
        """Count a loss; whether it opens the breaker."""
        self.failures += 1
        self.reason = reason or self.reason
        enough = opens and self.failures >= VERSION_FAILURES
        if self.state is CircuitState.HALF_OPEN or (self.state is CircuitState.CLOSED and enough):
            self.trip(at)
            return True
        return False

    def admit(self, call_id: str, at: float) -> None:
        """Admit every call while closed, and one as the probe after a pause.

        Raises:
            Unavailable: it is open (`breaker_open`); `retry_after` is when a probe may go.
        """
        if self.state is CircuitState.CLOSED:
            return
        if at < self.until and self.probe != call_id:
            raise self.refusal(at)
        self.send(call_id, at)

    def refusal(self, at: float) -> Unavailable:
        reason = f" (the last: {self.reason})" if self.reason else ""
        pause = self.until - at if self.state is CircuitState.OPEN else FIRST_PAUSE_S
        return Unavailable(
            f"{self.failures} containers {self._whose} were lost in a row{reason}.",
            code="breaker_open",
            retry_after=max(0.0, pause),
        )


class LossAttribution:
    """The breakers of one version that open for lost containers."""

    __slots__ = ("_counted", "_row", "everybody", "tenants")

    def __init__(self) -> None:
        self.everybody = LossBreaker("of this version")
        self.tenants: OrderedDict[str, LossBreaker] = OrderedDict()
        """Of tenants with losses since their last answer, ordered by their last loss."""
        self._row: deque[frozenset[str]] = deque(maxlen=VERSION_FAILURES)
        """For each loss of the present row, the tenants whose calls the container held."""
        self._counted: deque[str] = deque(maxlen=2 * VERSION_FAILURES)

    def answered(self, found: ContainerVerdict, tenant: str) -> None:
        if found in (ContainerVerdict.FINE, ContainerVerdict.RAISED):
            if self.everybody.failures or self.everybody.state is not CircuitState.CLOSED:
                self.everybody.close()
                self._row.clear()
            if self.tenants:
                self.tenants.pop(tenant, None)

    def is_counted(self, container: str) -> bool:
        """Whether the loss of this container is already counted."""
        return container in self._counted

    def lost(self, container: str, tenants: Collection[str], reason: str, at: float) -> list[str]:
        """Count the loss of a container that held calls of `tenants` (none: it could not be loaded).

        Returns the tenants whose breakers open, EVERYBODY for the breaker of the version.
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
        """Admit a call at the breakers of its tenant and of the version; raises as `LossBreaker.admit`."""
        own = self.tenants.get(tenant) if self.tenants else None
        if own is not None:
            own.admit(call_id, at)
        try:
            self.everybody.admit(call_id, at)
        except Exception:
            self.withdrawn(call_id, tenant, at)
            raise

    def withdrawn(self, call_id: str, tenant: str, at: float | None) -> None:
        """An admitted call ended without a verdict; see `Breaker.withdrawn`."""
        self.everybody.withdrawn(call_id, at)
        if self.tenants and (own := self.tenants.get(tenant)) is not None:
            own.withdrawn(call_id, at)

    @property
    def row(self) -> tuple[tuple[str, ...], ...]:
        return tuple(tuple(sorted(held)) for held in self._row)

    @row.setter
    def row(self, row: Iterable[Iterable[str]]) -> None:
        self._row.extend(frozenset(held) for held in row)

    def breaker_of(self, tenant: str) -> LossBreaker:
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
        # A lost probe has failed, whatever other calls the container held.
        return [
            tenant
            for tenant in tenants
            if not most
            or (tenant in known and (known[tenant].failures == most or known[tenant].state is CircuitState.HALF_OPEN))
        ]

    def _is_unexplained(self) -> bool:
        suspects = frozenset[str]().union(*self._row)
        return all(sum(suspect not in held for held in self._row) >= UNEXPLAINED for suspect in suspects)
