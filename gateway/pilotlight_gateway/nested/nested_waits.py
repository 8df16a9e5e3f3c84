"""Which nested calls wait for what their own callers hold. Pure; instants are monotonic seconds.

A call that waits for a nested one keeps its slot. Where every slot of a function is held so, by calls that wait for
calls in its own queue, nobody would ever be served: trees of A > B and B > A can meet so, each with one container. The
nested call that began last is refused then, and the others go on.

Where the fleet has no place for a container of the function at all, its callers' containers may be what is in the way:
that is refused too, after a longer while. What other gateways' calls hold is not known here, and counts as moving.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable

import msgspec

from pilotlight_core.model.errors import NestedRefused
from pilotlight_core.model.messages.node_messages import ContainerState, NodeReport
from pilotlight_gateway.calls.in_flight_call import InFlightCall
from pilotlight_gateway.nested.nested_book import NestedBook, NestedKey, OpenNested
from pilotlight_gateway.nested.nested_rules import refused

CIRCLE_S = 5.0
"""A nested call waits so long for slots that are all held by calls which wait themselves."""
SHORTAGE_S = 15.0
"""A nested call waits so long while the fleet has no place for a container of its function."""
STARTING = frozenset({ContainerState.BINDING, ContainerState.LOADING})

FindCall = Callable[[str], InFlightCall | None]


class VersionRoom(msgspec.Struct):
    """A version's containers, as the nodes last reported them."""

    slots: int = 0
    """Of those that are ready."""
    is_starting: bool = False


def rooms_of(versions: Iterable[str], reports: Iterable[NodeReport]) -> dict[str, VersionRoom]:
    """The containers of each version."""
    rooms = {version: VersionRoom() for version in versions}
    for report in reports:
        for container in report.containers:
            if (room := rooms.get(container.version)) is None:
                continue
            if container.state is ContainerState.READY:
                room.slots += container.slots
            room.is_starting = room.is_starting or container.state in STARTING
    return rooms


def held_by_waiting(book: NestedBook, find: FindCall) -> Counter[str]:
    """By version: the slots of calls all of whose nested calls wait in queues, or for calls that do."""
    held = Counter[str]()
    for parent in {one.parent for one in book}:
        live = find(parent)
        if live is not None and live.origin.grant is not None and _is_waiting(parent, book, find):
            held[live.call.version.id] += 1
    return held


def _is_waiting(call_id: str, book: NestedBook, find: FindCall) -> bool:
    nested = book.of_parent(call_id)
    return bool(nested) and all(_is_stuck(one, book, find) for one in nested)


def _is_stuck(one: OpenNested, book: NestedBook, find: FindCall) -> bool:
    live = find(one.call_id)
    if live is None:
        return False  # it is on its way into the queue
    return live.origin.grant is None or _is_waiting(one.call_id, book, find)


class NestedWaits:
    """Remembers since when nested calls wait for what their callers hold."""

    def __init__(self) -> None:
        self._since: dict[NestedKey, tuple[str, float]] = {}

    def refuse_one(
        self, book: NestedBook, find: FindCall, reports: Callable[[float], Iterable[NodeReport]], at: float
    ) -> tuple[OpenNested, NestedRefused] | None:
        """The nested call to refuse now, and why. One at a time: without it the others may go on."""
        queued = [(one, live) for one in book if (live := find(one.call_id)) is not None and live.origin.grant is None]
        if not queued:
            self._since.clear()
            return None
        rooms = rooms_of({one.version for one, _ in queued}, reports(at))
        held = held_by_waiting(book, find)
        found: dict[NestedKey, tuple[str, float]] = {}
        due: list[tuple[str, OpenNested, NestedRefused]] = []
        for one, live in queued:
            kind, after_s, error = _held_up(live, rooms[one.version], held[one.version], at)
            if not kind:
                continue
            before = self._since.get(one.key)
            since_at = before[1] if before is not None and before[0] == kind else at
            found[one.key] = kind, since_at
            if error is not None and at - since_at >= after_s:
                due.append((one.call_id, one, error))
        self._since = found
        if not due:
            return None
        _, last, error = max(due, key=lambda each: each[0])  # ids rise with time
        return last, error


def _held_up(live: InFlightCall, room: VersionRoom, held: int, at: float) -> tuple[str, float, NestedRefused | None]:
    """What a queued call waits for that its callers may hold ("": nothing), for how long, and its refusal."""
    function = live.call.function
    if room.is_starting:
        return "", 0.0, None
    if room.slots and held >= room.slots:
        return "circle", CIRCLE_S, refused(
            f"deadlock: all {room.slots} slots of {function} are held by calls that wait for calls in its own queue. "
            "Raise its max_containers or @concurrent(max_inputs=), or let the functions not call each other."
        )  # fmt: skip
    if not room.slots and (shortage := live.origin.shortage(at)):
        return "shortage", SHORTAGE_S, refused(
            f"capacity: for {SHORTAGE_S:.0f} s there has been no place for a container of {function}, while its "
            f"callers hold theirs: {shortage}."
        )  # fmt: skip
    return "", 0.0, None
