"""What the controller remembers of each function that is called or was: `FunctionMemory` by name. Pure.

Minutes end for some functions at a time, so that all have had their turn once a minute.
"""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping, Set
from dataclasses import dataclass, field
from typing import NamedTuple

from pilotlight_autoscaler.policy.desired import desired
from pilotlight_autoscaler.policy.function_view import FunctionView
from pilotlight_autoscaler.policy.plain_wish import PlainVersion, PlainWish, plain_wish
from pilotlight_autoscaler.policy.prediction.function_memory import MINUTE_S, MOST_MISSED, FunctionMemory, restored
from pilotlight_autoscaler.policy.prewarm_grants import PrewarmGrants
from pilotlight_autoscaler.policy.wish import Wish
from pilotlight_core.model.messages.node_messages import UNPARKED, ContainerReport, ContainerState

MOST_FUNCTIONS = 5_000
"""Of the tenant that has most, the one that was heard of least recently is packed for a further one."""
MOST_PACKED = 20_000
"""Each is at most 2 KiB: as it is stored."""
MOST_AHEAD = 32
"""Containers of one tenant that are there for forecasts alone, or stay for them."""
MOST_TIMED = 50_000
UNKNOWN = FunctionMemory(0.0, 0.0)
"""Of a function that has no container, and that nobody has called. It stays as it is."""
SWEEPS = 600
"""So many end the minutes of all functions: twenty a second do within half a minute."""


class SeenFunction(NamedTuple):
    """What is remembered of a function's instant."""

    name: str
    """`tenant:app.function`."""
    current: str
    """The version that is deployed; "": none is."""
    size: int
    """Containers of all versions, those that come included."""
    needed: int
    """Containers that calls need now, and one if any have come lately."""
    window_s: float
    """How long an idle container stays anyway."""
    service_s: float
    """How long its calls run; 0: nothing says it now."""
    is_foretold: bool
    """Whether what its past foretells may keep or start containers."""


@dataclass(kw_only=True)
class ScalingMemories:
    _memories: dict[str, FunctionMemory] = field(default_factory=dict)
    """By `tenant:app.function`."""
    _due: dict[str, None] = field(default_factory=dict)
    """Those whose minute is to be ended in this round."""
    _coming: dict[str, int] = field(default_factory=dict)
    """What those of them have needed in the minute that they are not in yet."""
    _round: int = 0
    """The minute of which it is."""
    _timed: OrderedDict[str, None] = field(default_factory=OrderedDict)
    """Containers whose start was counted; not a dict, which would look for its first one for longer each time."""
    changed: dict[str, None] = field(default_factory=dict)
    """Those of which a minute with calls or a start has ended since `take_changed`."""
    _stirred: set[str] = field(default_factory=set)
    """Functions whose minute has ended, or that may have more or fewer containers ahead, since `take_stirred`."""
    _grants: dict[str, PrewarmGrants] = field(default_factory=dict)
    """By tenant, of those whose functions' pasts foretell anything."""
    ahead: dict[str, int] = field(default_factory=dict)
    """Functions for which a forecast has containers there, and how many."""
    _of_tenant: dict[str, dict[str, None]] = field(default_factory=dict)
    """The functions of each tenant, the one heard of last at the end."""
    _packed: OrderedDict[str, bytes] = field(default_factory=OrderedDict)
    """Records of functions that were not heard of for a while, the one packed last at the end."""

    def __len__(self) -> int:
        return len(self._memories)

    def get(self, function: str) -> FunctionMemory | None:
        return self._memories.get(function)

    def functions(self) -> Set[str]:
        """Those of which something is remembered, but for what is packed."""
        return self._memories.keys()

    def load_s(self, function: str) -> float:
        """How long a start of a function takes, in seconds; 0: nothing is known of it."""
        memory = self._memories.get(function)
        return memory.load_s if memory is not None else 0.0

    def knows(self, function: str, minutes: int) -> bool:
        """Whether as much is known of a function as a record of so many minutes says."""
        known = self._memories.get(function)
        return known is not None and known.age_minutes >= minutes

    def restore(self, memories: Mapping[str, FunctionMemory]) -> None:
        """Take over what a leader before this one knew, where it knew more."""
        for name, memory in memories.items():
            if not self.knows(name, memory.age_minutes):
                self._remember(name, memory)
        self._due, self._round = {}, 0

    def take_changed(self, most: int) -> dict[str, bytes]:
        """The records of functions of which something is to be stored, as many as `most`; they count as stored."""
        names = list(self.changed)[:most]
        for name in names:
            del self.changed[name]
        found = ((name, self._memories.get(name)) for name in names)
        records = {name: self._packed.get(name) if memory is None else memory.record() for name, memory in found}
        return {name: record for name, record in records.items() if record is not None}

    def take_stirred(self) -> set[str]:
        """The functions whose pasts say something new since the last time."""
        stirred, self._stirred = self._stirred, set()
        return stirred

    def observe(self, view: FunctionView, at: float) -> FunctionMemory:
        """Count what a function's calls need at the unix second `at`; its memory."""
        seen = SeenFunction(
            view.name, view.current, view.size, max(view.needed, int(view.is_called)), view.window_s, view.service_s,
            view.is_foretold,
        )  # fmt: skip
        return self.note(seen, [each for version in view.versions.values() for each in version.containers], at)

    def note(self, seen: SeenFunction, containers: Iterable[ContainerReport], at: float) -> FunctionMemory:
        """The same, of what was seen of a function; of `containers` those are timed that have started since."""
        name = seen.name
        memory = self._memories.get(name)
        # What was only wished for warms nothing: a burst that found no place leaves no containers behind.
        needed = seen.needed if seen.needed < seen.size else seen.size
        if memory is None:
            if not seen.size:
                return UNKNOWN
            packed = self._packed.pop(name, None)
            memory = FunctionMemory(seen.window_s, at) if packed is None else restored(packed, seen.window_s, at)
            self._remember(name, memory)
        elif needed:
            self._touch(name)
        if seen.current:
            memory.on_deploy(seen.current, seen.window_s, at)
            memory.service_s = seen.service_s or memory.service_s
            if memory.is_asked is not seen.is_foretold:
                memory.is_asked = seen.is_foretold
                self._ask(name, memory, at)
        if name in self._due:  # the sweep ends its minute: those of all at once would take long
            self._coming[name] = max(needed, self._coming.get(name, 0))
        elif memory.observe(needed, at):
            self.changed[name] = None
        self._time_starts(name, memory, containers)
        return memory

    def wish(self, view: FunctionView, at: float) -> Wish:
        """What a function should have at the unix second `at`; what of it a forecast asks for uses up its budget."""
        memory = self.observe(view, at)
        wish = desired(view, memory, at)
        if wish.ahead:
            memory.note_ahead(wish.ahead)
        return wish

    def plain_wish(
        self, seen: SeenFunction, version: PlainVersion, containers: Iterable[ContainerReport], at: float
    ) -> PlainWish:
        """The same of a plain function; `containers`: those of which nobody has said before that they are ready."""
        memory = self.note(seen, containers, at)
        wish = plain_wish(version, memory, at)
        if wish.ahead:
            memory.note_ahead(wish.ahead)
        return wish

    def on_up(self, function: str, at: float) -> None:
        """Containers of a function are started."""
        if (memory := self._memories.get(function)) is not None:
            memory.on_up(at)

    def sweep(self, at: float, sweeps: int = SWEEPS) -> None:
        """End the minutes of some functions; so many sweeps end those of all."""
        if not self._due and int(at // MINUTE_S) != self._round:
            self._due, self._round = dict.fromkeys(self._memories), int(at // MINUTE_S)
        for _ in range(min(math.ceil(len(self._memories) / sweeps), len(self._due))):
            self.end_minutes(self._due.popitem()[0], at)

    def end_minutes(self, function: str, at: float, most_missed: int = MOST_MISSED) -> int:
        """End the minutes of a function that are over; how many containers what it foretells asks for now.

        Args:
            most_missed: minutes without a word in which nobody called it.
        """
        memory = self._memories.get(function)
        if memory is None:
            return 0
        if memory.advance(at, most_missed):
            self.changed[function] = None
        if coming := self._coming.pop(function, 0):
            memory.observe(coming, at)
        self._ask(function, memory, at)
        return self.ahead.get(function, 0)

    def _ask(self, name: str, memory: FunctionMemory, at: float) -> None:
        """A function's past asks for containers that calls do not use; its tenant's others leave it some."""
        tenant = tenant_of(name)
        grants = self._grants.get(tenant)
        if grants is None:
            grants = self._grants[tenant] = PrewarmGrants(most=MOST_AHEAD)
        self._stirred.add(name)
        for function, count in grants.ask(name, max(0, memory.foretold() - memory.used), at).items():
            if (other := self._memories.get(function)) is not None:
                if other.most_ahead != count:
                    other.most_ahead = count
                    self._stirred.add(function)
                if ahead := other.ahead():
                    self.ahead[function] = ahead
                else:
                    self.ahead.pop(function, None)
        if not grants:
            del self._grants[tenant]

    def _forget_grant(self, name: str) -> None:
        if (grants := self._grants.get(tenant_of(name))) is not None:
            grants.forget(name)
            if not grants:
                del self._grants[tenant_of(name)]

    def _touch(self, name: str) -> None:
        """Make it the one heard of last, of its tenant."""
        of_tenant = self._of_tenant.setdefault(tenant_of(name), {})
        of_tenant.pop(name, None)
        of_tenant[name] = None

    def _remember(self, name: str, memory: FunctionMemory) -> None:
        memory.most_ahead = 0  # until it has asked
        self._memories[name] = memory
        self._packed.pop(name, None)
        self._touch(name)
        while len(self._memories) > MOST_FUNCTIONS:
            most = max(self._of_tenant.values(), key=lambda functions: len(functions))
            self._pack(next(iter(most)))

    def _pack(self, name: str) -> None:
        """Keep of a function what is stored of it."""
        of_tenant = self._of_tenant[tenant_of(name)]
        del of_tenant[name]
        if not of_tenant:
            del self._of_tenant[tenant_of(name)]
        self._packed[name] = self._memories.pop(name).record()
        self._forget_grant(name)
        for known in (self.ahead, self._due, self._coming):
            known.pop(name, None)
        while len(self._packed) > MOST_PACKED:
            forgotten, _ = self._packed.popitem(last=False)
            self.changed.pop(forgotten, None)

    def _time_starts(self, name: str, memory: FunctionMemory, containers: Iterable[ContainerReport]) -> None:
        if not containers:
            return
        for container in _new_ones(containers, self._timed):
            memory.on_load(min(container.age_s, sum(container.timeline.values()) / 1000.0))
            self.changed[name] = None
            self._timed[container.id] = None
        while len(self._timed) > MOST_TIMED:
            self._timed.popitem(last=False)


def tenant_of(function: str) -> str:
    """The owner of `tenant:app.function`."""
    return function.partition(":")[0]


def _new_ones(containers: Iterable[ContainerReport], timed: Mapping[str, None]) -> Iterator[ContainerReport]:
    for each in containers:
        is_timed = bool(each.timeline) and UNPARKED not in each.timeline
        if each.state is ContainerState.READY and is_timed and each.id not in timed:
            yield each
