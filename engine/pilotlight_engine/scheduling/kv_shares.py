"""Who holds how much of the room for keys and values, against the share that is the tenant's."""

from __future__ import annotations

from dataclasses import dataclass, replace


@dataclass(slots=True, kw_only=True)
class _Holding:
    weight: float
    sequences: int = 0
    """Running and waiting ones."""
    blocks: int = 0
    slots: int = 0


class KvShares:
    """Tenants that have sequences here, what they hold, and what of the whole is theirs by weight."""

    def __init__(self, *, blocks: int, slots: int) -> None:
        self._blocks = blocks
        self._slots = slots
        self._tenants: dict[str, _Holding] = {}

    def copy(self) -> KvShares:
        """The same, to try what would be."""
        other = KvShares(blocks=self._blocks, slots=self._slots)
        other._tenants = {tenant: replace(holding) for tenant, holding in self._tenants.items()}
        return other

    def join(self, tenant: str, weight: float) -> None:
        """A tenant has a sequence more. Its last one says its weight."""
        holding = self._tenants.setdefault(tenant, _Holding(weight=weight))
        holding.weight = weight
        holding.sequences += 1

    def leave(self, tenant: str) -> bool:
        """A tenant has a sequence less; returns whether it was the last."""
        holding = self._tenants[tenant]
        holding.sequences -= 1
        if holding.sequences == 0:
            del self._tenants[tenant]
        return holding.sequences == 0

    def hold(self, tenant: str, *, blocks: int, slots: int = 0) -> None:
        """A tenant holds more than before, or less."""
        holding = self._tenants[tenant]
        holding.blocks += blocks
        holding.slots += slots

    def slots_of(self, tenant: str) -> int:
        """How many sequences of a tenant run."""
        return self._tenants[tenant].slots

    def is_within(self, tenant: str, *, blocks: int, alone: bool = True) -> bool:
        """Whether a tenant is within its share with one sequence more that takes `blocks`. One sequence is always
        within it, unless `alone` is false.
        """
        holding = self._tenants[tenant]
        if alone and not holding.slots:
            return True
        part = self._part(holding)
        return holding.blocks + blocks <= part * self._blocks and holding.slots + 1 <= max(1.0, part * self._slots)

    def is_beyond(self, tenant: str) -> bool:
        """Whether a tenant holds more than its share, with more than one sequence: two tenants with one large sequence
        each would else take the room from each other for ever.
        """
        holding = self._tenants[tenant]
        part = self._part(holding)
        return holding.slots > 1 and (holding.blocks > part * self._blocks or holding.slots > part * self._slots)

    def _part(self, holding: _Holding) -> float:
        return holding.weight / sum(each.weight for each in self._tenants.values())
