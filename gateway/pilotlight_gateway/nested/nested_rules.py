"""Which nested calls are refused. Pure.

A function may not be called below a call of itself: it would wait for a slot of the containers whose slots its own
callers hold.
"""

from __future__ import annotations

import msgspec

from pilotlight_core.model.errors import NestedRefused, PilotlightError, UnknownCall
from pilotlight_core.model.messages.agent_questions import (
    MOST_AT_ONCE,
    MOST_DEPTH,
    MOST_IN_ALL,
    MOST_OF_TREE,
    MOST_REQUEST,
    AskNested,
)
from pilotlight_gateway.calls.in_flight_call import InFlightCall

HIDDEN = "a caller's function"


class Lineage(msgspec.Struct, frozen=True):
    """Where a call stands: below which call from outside, and whose functions hold slots for it."""

    root: str
    """The id of the call from outside; that one's own id if it is that."""
    functions: tuple[str, ...] = ()
    """`tenant:app.function` of the calls above it, the outermost first."""

    def below(self, function: str) -> Lineage:
        """That of the calls which a call of `function`, with this one, makes."""
        return Lineage(self.root, (*self.functions, function))


class TreeCount(msgspec.Struct):
    """Nested calls below one call from outside."""

    open: int = 0
    total: int = 0


def is_running(live: InFlightCall | None, node: str, grant_number: int, container: str = "") -> bool:
    """Whether a call runs on a node, under that grant; in any container, unless one is named."""
    grant = live.origin.grant if live is not None else None
    if grant is None or (grant.node, grant.grant_number) != (node, grant_number):
        return False
    return container in ("", grant.container)


def claim_fault(live: InFlightCall | None, node: str, asked: AskNested) -> PilotlightError | None:
    """Why a node may not speak for a call: it does not run there, as far as the gateway that sent it knows."""
    if is_running(live, node, asked.grant_number, asked.container or "-"):
        return None
    return UnknownCall("The call that asks does not run in this container, or has ended.")


def bound_fault(lineage: Lineage, at_once: int, tree: TreeCount, asked: AskNested) -> PilotlightError | None:
    """Which bound one more nested call would break. `lineage`: that of its parent, which has `at_once` already."""
    depth = len(lineage.functions) + 1
    if depth > MOST_DEPTH:
        path = path_of(lineage.functions)
        return refused(
            f"depth: calls may be nested {MOST_DEPTH} deep, and this one would be number {depth}, below {path}. "
            "Let the outer function make the call itself."
        )
    if at_once >= MOST_AT_ONCE:
        return refused(
            f"fan-out: a call may wait for {MOST_AT_ONCE} others at a time. Wait for some before making more: .map() "
            "does."
        )
    if tree.open >= MOST_OF_TREE:
        return refused(
            f"fan-out: below one call from outside {MOST_OF_TREE} calls may be open at a time. Make fewer at a time, "
            "or store them as jobs from outside: .spawn()."
        )
    if tree.total >= MOST_IN_ALL:
        return refused(
            f"fan-out: one call from outside may lead to {MOST_IN_ALL} others. Make them from outside, as jobs or as a "
            "batch."
        )
    size = max(len(asked.request), asked.request_size)
    if size > MOST_REQUEST:
        return PilotlightError(f"The request has {size} bytes, {MOST_REQUEST} are the most.", code="too_large")
    return None


def circle_fault(lineage: Lineage, function: str) -> PilotlightError | None:
    """Whether `function` is called below a call of itself. `lineage` is that of the nested call."""
    if function not in lineage.functions:
        return None
    path = f"{path_of(lineage.functions)} > {function}"
    return refused(
        f"circle: {path}. A function cannot be called below a call of itself, which would hold the slot that it waits "
        "for: use a plain Python call, or split the function in two."
    )


def path_of(functions: tuple[str, ...]) -> str:
    """A lineage as the owner of its last function may see it, which may not know who else's functions are above."""
    owner = functions[-1].partition(":")[0]
    return " > ".join(name if name.startswith(f"{owner}:") else HIDDEN for name in functions)


def refused(detail: str) -> NestedRefused:
    """A refusal that begins with the name of its bound."""
    return NestedRefused(detail)
