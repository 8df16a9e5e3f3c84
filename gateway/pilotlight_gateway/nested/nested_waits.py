"""Which nested calls wait for what their own callers hold. Pure; instants are monotonic seconds.

A call that waits for a nested one keeps its slot. Where every slot of a function is held so, by calls that wait for
calls which can never be served either, nobody would ever be: trees of A > B and B > A can meet so, each with one
container. The nested call that began last is refused then, and the others go on. A call in a queue that may move, for
a container starts or leaves, a slot is free, or one of its slots is held by a call that runs, holds nobody up.

Where the fleet has no place for a container of the function at all, it is refused, after a longer while, if all that
might make one is held so: each container there, of whomever, has calls which run, and each of these waits for calls
that can never be served. Else it waits as any call does. What other gateways' calls hold is not known here, and
counts as moving.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence, Set

import msgspec

from pilotlight_core.model.errors import NestedRefused
from pilotlight_core.model.messages.node_messages import ContainerState, NodeReport, SliceKind
from pilotlight_core.model.spec import FunctionSpec
from pilotlight_gateway.calls.in_flight_call import InFlightCall
from pilotlight_gateway.calls.origin import OriginState
from pilotlight_gateway.nested.nested_book import NestedBook, NestedKey, OpenNested
from pilotlight_gateway.nested.nested_rules import refused

CIRCLE_S = 5.0
"""A nested call waits so long for slots that are all held by calls which wait themselves."""
SHORTAGE_S = 15.0
"""A nested call waits so long while the fleet has no place for a container of its function."""
MOVING = frozenset({ContainerState.BINDING, ContainerState.LOADING, ContainerState.WARMING, ContainerState.DRAINING})
"""A container that starts serves soon; one that leaves makes room."""

FindCall = Callable[[str], InFlightCall | None]
Holders = frozenset[tuple[str, int]]
"""Calls that hold slots, and the numbers of their grants."""
Busy = Mapping[str, int]
"""Containers, and how many calls run in each."""


class VersionRoom(msgspec.Struct):
    """A version's containers, as the nodes last reported them."""

    slots: int = 0
    """Of those that are ready."""
    ready: set[str] = msgspec.field(default_factory=set)
    is_moving: bool = False


def rooms_of(versions: Iterable[str], reports: Iterable[NodeReport]) -> dict[str, VersionRoom]:
    """The containers of each version."""
    rooms = {version: VersionRoom() for version in versions}
    for report in reports:
        for container in report.containers:
            if (room := rooms.get(container.version)) is None:
                continue
            if container.state is ContainerState.READY:
                room.slots += container.slots
                room.ready.add(container.id)
            room.is_moving = room.is_moving or container.state in MOVING
    return rooms


def in_the_way(spec: FunctionSpec, reports: Iterable[NodeReport]) -> Busy:
    """The containers of which one would have to go for there to be a place; {}: a place may come without a call's end.

    One that starts, leaves or has nothing to do may go by itself. A function that needs a GPU wants no place of
    processors.
    """
    needs_gpu = bool(spec.gpu) and all(choice.type != "CPU" for choice in spec.gpu)
    found: dict[str, int] = {}
    for report in reports:
        plain = {part.id for part in report.slices if part.kind is SliceKind.CPU} if needs_gpu else frozenset[str]()
        for container in report.containers:
            if container.slice in plain:
                continue
            if container.state is not ContainerState.READY or not container.running:
                return {}
            found[container.id] = container.running
    return found


def stuck_versions(
    candidates: Iterable[str],
    rooms: dict[str, VersionRoom],
    lacking: Mapping[str, Busy],
    book: NestedBook,
    find: FindCall,
) -> dict[str, Holders]:
    """Of the versions that calls wait for those that never serve any, with the calls that hold the slots in the way.

    Each is taken to be stuck until one of its slots is found, or, if it is `lacking` a place, one of the containers in
    the way of one, that is not held by calls which wait for stuck ones.
    """
    stuck = {
        version
        for version in candidates
        if not rooms[version].is_moving and (rooms[version].slots or lacking.get(version))
    }
    while stuck:
        waiting = _waiting_calls(stuck, book, find)
        left = {version for version in stuck if _is_held(version, rooms, lacking, waiting)}
        if left == stuck:
            held = {version: _holders(version, rooms, lacking, waiting) for version in stuck}
            return {version: _in_the_way(version, held, book, find) for version in stuck}
        stuck = left
    return {}


def _waiting_calls(stuck: Set[str], book: NestedBook, find: FindCall) -> dict[str, set[tuple[str, int]]]:
    """By container, the calls all of whose nested calls wait for these versions."""
    found: dict[str, set[tuple[str, int]]] = {}
    for parent in {one.parent for one in book}:
        live = find(parent)
        grant = live.origin.grant if live is not None else None
        if grant is not None and _is_waiting(parent, stuck, book, find):
            found.setdefault(grant.container, set()).add((parent, grant.grant_number))
    return found


def _is_held(
    version: str, rooms: dict[str, VersionRoom], lacking: Mapping[str, Busy], waiting: dict[str, set[tuple[str, int]]]
) -> bool:
    if rooms[version].slots:
        return len(_holders(version, rooms, lacking, waiting)) >= rooms[version].slots
    return all(len(waiting.get(name, ())) >= running for name, running in lacking[version].items())


def _holders(
    version: str, rooms: dict[str, VersionRoom], lacking: Mapping[str, Busy], waiting: dict[str, set[tuple[str, int]]]
) -> set[tuple[str, int]]:
    room = rooms[version]
    return {call for name in (room.ready if room.slots else lacking[version]) for call in waiting.get(name, ())}


def _in_the_way(version: str, held: dict[str, set[tuple[str, int]]], book: NestedBook, find: FindCall) -> Holders:
    """Who holds the slots of a stuck version, and of those that its holders wait for, and so on."""
    found, seen, todo = set[tuple[str, int]](), {version}, [version]
    while todo:
        holders = held[todo.pop()]
        found |= holders
        below = {name for call_id, _ in holders for name in _waited_for(call_id, book, find)} - seen
        seen |= below
        todo += below
    return frozenset(found)


def _waited_for(call_id: str, book: NestedBook, find: FindCall) -> set[str]:
    """The versions in whose queues a call's nested ones are, and theirs."""
    found: set[str] = set()
    for one in book.of_parent(call_id):
        found |= {one.version} if is_queued(find(one.call_id)) else _waited_for(one.call_id, book, find)
    return found


def _is_waiting(call_id: str, stuck: Set[str], book: NestedBook, find: FindCall) -> bool:
    nested = book.of_parent(call_id)
    return bool(nested) and all(_is_stuck(one, stuck, book, find) for one in nested)


def _is_stuck(one: OpenNested, stuck: Set[str], book: NestedBook, find: FindCall) -> bool:
    live = find(one.call_id)
    if live is None:
        return False  # it is on its way into the queue
    if live.origin.grant is None:
        return is_queued(live) and one.version in stuck
    return _is_waiting(one.call_id, stuck, book, find)


def is_queued(live: InFlightCall | None) -> bool:
    """Whether a call waits for a slot, and not for the end of a backoff."""
    return live is not None and live.origin.grant is None and live.origin.state is OriginState.QUEUED


class Wait(msgspec.Struct, frozen=True):
    """What a queued call waits for that its callers may hold."""

    kind: str
    after_s: float
    """Before it is refused."""
    holders: Holders = frozenset()


class NestedWaits:
    """Remembers since when nested calls wait for what their callers hold."""

    def __init__(self) -> None:
        self._since: dict[NestedKey, tuple[Wait, float]] = {}

    def refuse_one(
        self, book: NestedBook, find: FindCall, reports: Callable[[float], Iterable[NodeReport]], at: float
    ) -> tuple[OpenNested, NestedRefused] | None:
        """The nested call to refuse now, and why. One at a time: without it the others may go on."""
        queued = [(one, live) for one in book if (live := find(one.call_id)) is not None and is_queued(live)]
        if not queued:
            self._since.clear()
            return None
        for one, live in queued:
            one.version = live.origin.call.version.id  # of a class with hooks that of the stage
        told = tuple(reports(at))
        rooms = rooms_of({one.version for one, _ in queued}, told)
        found: dict[NestedKey, tuple[Wait, float]] = {}
        due: list[tuple[str, OpenNested, NestedRefused]] = []
        for one, live, wait in _waits_of(queued, rooms, told, book, find, at):
            before = self._since.get(one.key)
            since_at = before[1] if before is not None and before[0] == wait else at
            found[one.key] = wait, since_at
            if at - since_at >= wait.after_s:
                due.append((one.call_id, one, _refusal(wait, live, rooms[one.version], at)))
        self._since = found
        if not due:
            return None
        _, last, error = max(due, key=lambda each: each[0])  # ids rise with time
        return last, error


def _waits_of(
    queued: list[tuple[OpenNested, InFlightCall]],
    rooms: dict[str, VersionRoom],
    reports: Sequence[NodeReport],
    book: NestedBook,
    find: FindCall,
    at: float,
) -> list[tuple[OpenNested, InFlightCall, Wait]]:
    """The queued calls that wait for what their callers may hold.

    A version that lacks a place may get one: calls which wait for it may be stuck, but only after a longer while.
    """
    short = {one.version: live.origin.call.version.spec for one, live in queued if live.origin.shortage(at)}
    lacking = {version: in_the_way(spec, reports) for version, spec in short.items() if not rooms[version].slots}
    firm = stuck_versions(rooms.keys() - short.keys(), rooms, {}, book, find)
    loose = stuck_versions(rooms, rooms, lacking, book, find) if short else firm
    found: list[tuple[OpenNested, InFlightCall, Wait]] = []
    for one, live in queued:
        version = one.version
        if version in firm:
            found.append((one, live, Wait("circle", CIRCLE_S, firm[version])))
        elif version in loose:
            kind = "shortage" if version in lacking else "full"
            found.append((one, live, Wait(kind, SHORTAGE_S, loose[version])))
    return found


def _refusal(wait: Wait, live: InFlightCall, room: VersionRoom, at: float) -> NestedRefused:
    function = live.origin.call.function
    if wait.kind != "shortage":
        return refused(
            f"deadlock: all {room.slots} slots of {function} are held by calls that wait for calls which wait for "
            "them. Raise its max_containers or @concurrent(max_inputs=), or let the functions not call each other."
        )  # fmt: skip
    return refused(
        f"capacity: for {SHORTAGE_S:.0f} s there has been no place for a container of {function}, and its callers, "
        f"with others that wait so, hold all that might make one: {live.origin.shortage(at)}."
    )
