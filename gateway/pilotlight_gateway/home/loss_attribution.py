"""Containers of one version that were lost, and whose calls are refused for it. Pure; instants are seconds.

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
from collections.abc import Collection, Iterable

from pilotlight_gateway.home.breakers import VERSION_FAILURES, CircuitState, ContainerVerdict, LossBreaker

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

    def admit(self, call: str, tenant: str, at: float) -> None:
        """Let a call in: see `LossBreaker.admit`, for its tenant and for everybody."""
        own = self.tenants.get(tenant) if self.tenants else None
        if own is not None:
            own.admit(call, at)
        try:
            self.everybody.admit(call, at)
        except Exception:
            self.withdrawn(call, tenant, at)
            raise

    def withdrawn(self, call: str, tenant: str, at: float | None) -> None:
        """A call that was let in has ended without a word on its container; see `Breaker.withdrawn`."""
        self.everybody.withdrawn(call, at)
        if self.tenants and (own := self.tenants.get(tenant)) is not None:
            own.withdrawn(call, at)

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
