"""The cost of a place on a shared device to later asks: the drop of the device's expected load.

FGD (Weng et al., USENIX ATC 2023) calls free milli-GPU stranded when a typical task does not fit into it. Here a device
looks further ahead: it is offered HORIZON typical tasks in turn, and accepts one only if its gain exceeds what it
blocks, the stochastic knapsack with a deadline (Papastavrou, Rajagopalan, Kleywegt, Management Science 42(12), 1996).
With K_0 = 0 and typical tasks of weight p, size s and c cores,

    K_t(r, C) = sum over tasks of p * max(K_{t-1}(r, C), s + K_{t-1}(r - s, C - c))

is the expected load of a device with r free milli-GPU and C cores. Quantities are milli-GPU and milli-CPU.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import groupby

WHOLE = 1000
"""Milli-GPU of a device."""
GRAIN = 10
"""Milli-GPU of a table row."""
CORE = 1000
"""Milli-CPU of a table column."""
MOST_CORES = 40
"""More cores for one device add nothing."""
HORIZON = 28
"""Tasks that a device is offered: few make it greedy, many make it wait. 20 to 40 do as well."""
HOSTING = 0.3
"""Weight of the room for tasks of several devices, beside the expected load of the single ones."""
TIDINESS = (0.025, 0.0015625)
"""Cost of a free milli-GPU and milli-CPU beside a task without GPU: best fit."""
ALIKE = 10.0
"""Costs this close, in milli-GPU, are equal: the fixed order of nodes then fills one after the other."""

ShareRow = tuple[float, ...]
ShareTable = tuple[ShareRow, ...]


@dataclass(frozen=True, kw_only=True)
class TypicalTask:
    """A typical task: its frequency (an outlook makes the weights sum to 1), and its needs.

    `models` empty means any; `count` 0 means that it needs no GPU.
    """

    weight: float
    cpu: int
    milli: int
    count: int = 1
    models: frozenset[str] = frozenset()

    def may_use(self, model: str) -> bool:
        return not self.models or model in self.models


@dataclass(frozen=True, kw_only=True)
class FreeCapacity:
    """The free capacity of a node: milli-CPU, and milli-GPU on each device."""

    model: str
    cpu: int
    free: tuple[int, ...]

    @property
    def whole(self) -> int:
        return self.free.count(WHOLE)

    def after(self, task: TypicalTask) -> Iterator[FreeCapacity]:
        """The capacities that the task may leave: one per device for a share, one for whole devices."""
        cpu = self.cpu - task.cpu
        if cpu < 0 or (task.count and not task.may_use(self.model)):
            return
        if task.count == 1 and task.milli < WHOLE:
            for index, free in enumerate(self.free):
                if free >= task.milli:
                    left = (*self.free[:index], free - task.milli, *self.free[index + 1 :])
                    yield FreeCapacity(model=self.model, cpu=cpu, free=left)
        elif self.whole >= task.count:
            yield FreeCapacity(model=self.model, cpu=cpu, free=_without_whole(self.free, task.count))


@dataclass(frozen=True, kw_only=True)
class Outlook:
    """The expected load of each model's devices under the typical tasks. Immutable."""

    tasks: tuple[TypicalTask, ...]
    tables: Mapping[str, ShareTable]
    """For each model: rows of GRAIN milli-GPU, columns of CORE milli-CPU."""

    @cached_property
    def several(self) -> tuple[TypicalTask, ...]:
        return tuple(task for task in self.tasks if task.count > 1)

    def expected(self, model: str, milli: int, cpu: float) -> float:
        """A device's expected load in milli-GPU."""
        row = self.tables[model][milli // GRAIN]
        if cpu >= MOST_CORES * CORE:
            return row[-1]
        column, part = divmod(cpu / CORE, 1)
        low = row[int(column)]
        return low + (row[int(column) + 1] - low) * part

    def worth(self, room: FreeCapacity) -> float:
        """A node's expected load in milli-GPU; its cores are divided by what each device could use at best."""
        rows = self.tables[room.model]
        best = [rows[free // GRAIN][-1] for free in room.free]
        total = sum(best)
        if not total:
            return 0.0
        pairs = zip(room.free, best, strict=True)
        return sum(self.expected(room.model, free, room.cpu * part / total) for free, part in pairs)

    def hosting(self, room: FreeCapacity) -> float:
        """Milli-GPU of whole devices, weighted by the tasks of several devices that they could host together (FGD)."""
        whole = room.whole
        fitting = (t for t in self.several if t.count <= whole and t.cpu <= room.cpu and t.may_use(room.model))
        return WHOLE * whole * sum(task.weight for task in fitting)

    def cost(self, before: FreeCapacity, left: FreeCapacity, price: float = 0.0) -> float:
        """Lost expected load in milli-GPU if `left` remains of `before`; `price` is its model's scarcity."""
        lost = (1.0 + price) * (self.worth(before) - self.worth(left))
        return lost + HOSTING * (self.hosting(before) - self.hosting(left))

    def cheapest(self, room: FreeCapacity, task: TypicalTask, price: float = 0.0) -> tuple[float, FreeCapacity] | None:
        """The task's cost at its best place on a node, and what that leaves; None if it does not fit."""
        offers = zip(self.costs(room, task, price), room.after(task), strict=True)
        return min(offers, key=lambda offer: offer[0], default=None)

    def costs(self, room: FreeCapacity, task: TypicalTask, price: float = 0.0) -> list[float]:
        tidy = 0.0 if task.count else 1.0
        return [self.cost(room, left, price) + tidy * leftover_cost(left) for left in room.after(task)]


def round_to_step(cost: float) -> int:
    return round(cost / ALIKE)


def leftover_cost(left: FreeCapacity) -> float:
    return TIDINESS[0] * sum(left.free) + TIDINESS[1] * left.cpu


def outlook(tasks: Iterable[TypicalTask], models: Iterable[str]) -> Outlook:
    """The outlook of each model under a mix of tasks; models with the same usable tasks share one table."""
    given = tuple(tasks)
    total = sum(task.weight for task in given)
    mix = tuple(replace(task, weight=task.weight / total) for task in given)
    tables: dict[tuple[TypicalTask, ...], ShareTable] = {}
    by_model: dict[str, ShareTable] = {}
    for model in models:
        usable = tuple(task for task in mix if task.count and task.may_use(model))
        if usable not in tables:
            tables[usable] = table_of(usable, offers=sum(task.weight * max(1, task.count) for task in mix))
        by_model[model] = tables[usable]
    return Outlook(tasks=mix, tables=by_model)


def table_of(
    usable: Iterable[TypicalTask],
    offers: float,
    horizon: int = HORIZON,
    *,
    whole: int = WHOLE,
    grain: int = GRAIN,
    most_cores: int = MOST_CORES,
) -> ShareTable:
    """K_horizon by free parts and cores for a device that these tasks may use; `offers` is the weight of all tasks.

    `TypicalTask.milli` counts parts of which a device has `whole`; a row of the table is `grain` of them. A task of
    several devices is offered as so many whole ones, each with its part of the cores.
    """
    kinds = sorted((-(-t.milli // grain), -(-t.cpu // (t.count * CORE)), t.weight * t.count / offers) for t in usable)
    merged = [(*key, sum(kind[2] for kind in same)) for key, same in groupby(kinds, key=lambda kind: kind[:2])]
    fitting = [kind for kind in merged if kind[1] <= most_cores]
    table = [[0.0] * (most_cores + 1) for _ in range(whole // grain + 1)]
    for _ in range(horizon):
        table = _offered(table, fitting, grain)
    return tuple(tuple(row) for row in table)


def _offered(table: list[list[float]], kinds: list[tuple[int, int, float]], grain: int) -> list[list[float]]:
    """One step of the recurrence: K_t from K_{t-1}."""
    offered = [row[:] for row in table]
    for rows, cores, part in kinds:
        size = float(rows * grain)
        for index in range(rows, len(table)):
            sums = zip(offered[index][cores:], table[index][cores:], table[index - rows], strict=False)
            offered[index][cores:] = [
                now + part * gain if (gain := size + rest - keep) > 0 else now for now, keep, rest in sums
            ]
    return offered


def _without_whole(free: tuple[int, ...], count: int) -> tuple[int, ...]:
    left = []
    for milli in free:
        taken = count > 0 and milli == WHOLE
        count -= taken
        left.append(0 if taken else milli)
    return tuple(left)
