"""What is not whole yet: batches and sticky units of which more calls come, pairs of which one side is seen."""

from __future__ import annotations

import msgspec

from pilotlight_core.model.messages.seeing.compared_calls import ComparedCall
from pilotlight_gateway.judging.bets import median, spread_of

MOST_OPEN = 512
MOST_ENDED = 8_000
"""Units and deaths that are remembered: none counts twice."""
LEARNT_FROM = 50


class GroupMean(msgspec.Struct):
    """A batch, or a sticky unit, so far."""

    arm: str
    rho: float
    size: int
    """With so many calls it is whole."""
    seen: int
    latency: float
    """The sum of what its calls were off by; and of their cost."""
    cost: float


class KnownAmount(msgspec.Struct):
    """The level of an amount on the old side, by its first calls."""

    values: list[float] = []
    middle: float = 0.0
    scale: float = 0.0

    @property
    def is_settled(self) -> bool:
        return self.scale > 0.0

    def learn(self, value: float) -> None:
        if self.is_settled:
            return
        self.values.append(value)
        if len(self.values) >= LEARNT_FROM:
            self.middle, self.scale = median(self.values), max(1.4826 * spread_of(self.values), 0.01)
            self.values = []


class OpenGroups(msgspec.Struct):
    groups: dict[str, GroupMean] = {}
    ended: dict[str, None] = {}
    firsts: dict[str, ComparedCall] = {}
    """By pair, the side that came first."""
    amounts: dict[str, KnownAmount] = {}

    def add(self, name: str, fresh: GroupMean, latency: float, cost: float) -> list[GroupMean]:
        """One more call of a group; the groups that are whole now, or had to make room."""
        if name in self.ended:
            return []
        group = self.groups.get(name)
        if group is None:
            group = self.groups[name] = fresh
        elif group.arm != fresh.arm:
            # It has changed sides: it says nothing of either.
            del self.groups[name]
            self.is_first(name)
            return []
        group.seen += 1
        group.latency += latency
        group.cost += cost
        found = []
        if group.seen >= group.size:
            found.append(self.groups.pop(name))
            self.is_first(name)
        if len(self.groups) > MOST_OPEN:
            oldest = next(iter(self.groups))
            found.append(self.groups.pop(oldest))
            self.is_first(oldest)
        return found

    def is_first(self, name: str) -> bool:
        """Whether it is seen for the first time; it counts as seen."""
        if name in self.ended:
            return False
        if len(self.ended) >= MOST_ENDED:
            del self.ended[next(iter(self.ended))]
        self.ended[name] = None
        return True

    def take_first(self, call: ComparedCall) -> ComparedCall | None:
        """The other side of a pair; None: this one is the first."""
        first = self.firsts.pop(call.pair, None)
        if first is not None and first.arm != call.arm:
            return first
        if len(self.firsts) >= MOST_OPEN:
            del self.firsts[next(iter(self.firsts))]
        self.firsts[call.pair] = call
        return None

    def known(self, guard: str) -> KnownAmount:
        return self.amounts.setdefault(guard, KnownAmount())
