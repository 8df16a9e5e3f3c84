"""Which free slice should have a blank, and of which base environment. Pure.

A blank that is there stays if it is of use: to end it and make another costs seconds of a core.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from pilotlight_core.model.messages.node_messages import BlankSize, SliceReport

Sizes = Sequence[BlankSize]


def planned_blanks(free: Sequence[SliceReport], sizes: Sizes, there: Mapping[str, str], most: int) -> dict[str, str]:
    """The blanks that are wanted on the slices of GPUs: slice -> base environment.

    Args:
        free: the slices that no container has.
        sizes: in the order of importance; those of CPU slots count for nothing here.
        there: the blanks that there are, by slice.
        most: of all slices together.
    """
    left = {size: size.count for size in sizes if size.gpu_type}
    planned: dict[str, str] = {}
    for part in free:
        size = next((each for each in left if each.base == there.get(part.id) and is_on(each, part)), None)
        if size is not None and left[size] and len(planned) < most:
            left[size] -= 1
            planned[part.id] = size.base
    spare = [part for part in free if part.id not in planned]
    # One of each before a second of any: nobody waits because another function may be called often.
    while len(planned) < most and (given := _next_of_each(spare, left, most - len(planned))):
        planned |= given
        spare = [part for part in spare if part.id not in given]
    return planned


def is_on(size: BlankSize, part: SliceReport) -> bool:
    """Whether a size speaks of slices such as this one."""
    return size.gpu_type == part.gpu_type and size.memory == part.memory


def everywhere(base: str, free: Iterable[SliceReport]) -> list[BlankSize]:
    """The sizes of a node to which nobody has said any: a blank of one base environment on each slice of a GPU."""
    counts: dict[tuple[str, int], int] = {}
    for part in free:
        if part.gpu_type:
            kind = (part.gpu_type, part.memory)
            counts[kind] = counts.get(kind, 0) + 1
    return [BlankSize(base=base, gpu_type=kind[0], memory=kind[1], count=count) for kind, count in counts.items()]


def _next_of_each(spare: Sequence[SliceReport], left: dict[BlankSize, int], most: int) -> dict[str, str]:
    given: dict[str, str] = {}
    for size in left:
        part = next((each for each in spare if each.id not in given and is_on(size, each)), None)
        if part is not None and left[size] > 0 and len(given) < most:
            left[size] -= 1
            given[part.id] = size.base
    return given
