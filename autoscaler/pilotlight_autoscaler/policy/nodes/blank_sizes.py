"""How many blanks a node should keep, of which base environment, on which kind of its slices. Pure.

A blank is of use where a function of its base environment may start: one for each, a few for each that is called these
days, and as many as a forecast expects to start. The latter weigh most, then what is called, then what is deployed at
all: that is the order in which slices get one where there are too few.

The environment "default" counts as one function more on each kind of slice, as two on CPU slots, so that calls right
after the first deploys find a blank. On CPU slots each other environment counts as one function more: an operator has
named it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from pilotlight_core.model.messages.node_messages import MOST_BLANK_SIZES, BlankSize, NodeReport, SliceKind, SliceReport
from pilotlight_core.model.spec import DEFAULT_BASE, VersionRecord
from pilotlight_placement.asks.ask import CPU, MIB
from pilotlight_placement.asks.memory_need import memory_of
from pilotlight_placement.hardware.catalogue import is_kind

DEPLOYED, CALLED, FORETOLD = 1, 4, 16
"""What a function weighs: of which no call is known, that is called these days, or that is expected to be soon."""
MOST_CLASSES = 64
"""Kinds of slices of one node that are looked at: an honest one has a handful, a hostile one may claim thousands."""
SLICES = (SliceKind.CPU, SliceKind.GPU, SliceKind.MIG)
"""A share is made for its container, of a GPU whose blank it takes."""


@dataclass(frozen=True, kw_only=True)
class BlankNeed:
    """What functions have in common that start from the same blanks."""

    base: str
    types: tuple[str, ...]
    """Of GPUs, and "CPU": those that it takes one of at a time."""
    mib: int
    """Of device memory; 0: not known, so only whole devices hold it."""


class StartableFunctions(NamedTuple):
    """How many starts the functions of one need may have at once, and what they weigh."""

    number: int
    weight: int


ONE, TWO = StartableFunctions(1, DEPLOYED), StartableFunctions(2, DEPLOYED)


@dataclass(frozen=True, kw_only=True)
class _SliceClass:
    kind: SliceKind
    gpu_type: str
    memory: int


def need_of(record: VersionRecord) -> BlankNeed:
    """The need of a version."""
    spec = record.spec
    types = tuple([choice.type for choice in spec.gpu if choice.count == 1]) if spec.gpu else (CPU,)
    return BlankNeed(base=record.base, types=types, mib=-(-memory_of(spec) // MIB))


def is_served(need: BlankNeed, kind: SliceKind, gpu_type: str, memory: int) -> bool:
    """Whether a blank on such a slice is of use to it."""
    if kind is SliceKind.CPU:
        return CPU in need.types
    if not any(is_kind(wanted, gpu_type) for wanted in need.types):
        return False
    return memory >= need.mib * MIB if need.mib else kind is SliceKind.GPU


def blank_sizes(node: NodeReport, needs: Mapping[BlankNeed, StartableFunctions]) -> tuple[BlankSize, ...]:
    """The sizes for a node, the most important first; `needs` are those of all functions that are deployed."""
    bases = node.bases or (DEFAULT_BASE,)
    weighed: list[tuple[int, BlankSize]] = []
    for each, slices in _classes(node.slices).most_common(MOST_CLASSES):
        is_cpu = each.kind is SliceKind.CPU
        found = dict.fromkeys(bases, ONE) if is_cpu else {}
        if DEFAULT_BASE in bases:
            found[DEFAULT_BASE] = TWO if is_cpu else ONE
        for need, functions in needs.items():
            if need.base in bases and is_served(need, each.kind, each.gpu_type, each.memory):
                there = found.get(need.base, StartableFunctions(0, 0))
                found[need.base] = StartableFunctions(there.number + functions.number, there.weight + functions.weight)
        for base, functions in found.items():
            count = min(functions.number, slices)
            size = BlankSize(base=base, gpu_type=each.gpu_type, memory=each.memory, count=count)
            weighed.append((functions.weight, size))
    weighed.sort(key=lambda one: (-one[0], one[1].base, one[1].gpu_type, one[1].memory))
    return tuple([size for _, size in weighed[:MOST_BLANK_SIZES]])


def fits_on(node: NodeReport, need: BlankNeed) -> bool:
    """Whether a function may start there: its base environment is there, and a slice that would do, taken or not."""
    if need.base not in (node.bases or (DEFAULT_BASE,)) or node.draining:
        return False
    return any(is_served(need, part.kind, part.gpu_type, part.memory) for part in node.slices if part.kind in SLICES)


def _classes(slices: Iterable[SliceReport]) -> Counter[_SliceClass]:
    """How many slices of each kind there are, taken ones too: they are free again some time."""
    found: Counter[_SliceClass] = Counter()
    for part in slices:
        if part.kind in SLICES:
            is_cpu = part.kind is SliceKind.CPU
            memory = 0 if is_cpu else part.memory
            found[_SliceClass(kind=part.kind, gpu_type="" if is_cpu else part.gpu_type, memory=memory)] += 1
    return found
