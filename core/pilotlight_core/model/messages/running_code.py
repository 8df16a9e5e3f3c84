"""What the code of a function finds in its container: where it counts what it used, and what it calls others through.

It counts units of a call, such as tokens: `pilotlight.count_units` adds, the guest reads. It calls other functions
through a port that the guest opens; a process without one runs outside, where the SDK calls over HTTP.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Protocol

from pilotlight_core.model.messages.usage_facts import units_fault

if TYPE_CHECKING:
    from concurrent.futures import Future  # `import pilotlight` need not pay for it

IN_BATCH = "*"
"""In the place of a call's id: several calls run as one."""
IN_HOOK = "-"
"""In the place of a call's id: a hook runs, whatever calls run beside it."""
RUNNING_CALL: ContextVar[str] = ContextVar("pilotlight_running_call", default="")
"""The id of the call that runs here; "": the code was not begun by one, or in a thread without its context."""

RUNNING_TRACE: ContextVar[str] = ContextVar("pilotlight_running_trace", default="")
"""The traceparent that it came with, and its tracestate behind it; "": it begins a trace."""


class RunningItems(Protocol):
    """The calls of the batch that runs."""

    def traced_calls(self) -> list[tuple[str, str]]:
        """The id of each, and its traceparent."""
        ...


RUNNING_ITEMS: ContextVar[RunningItems | None] = ContextVar("pilotlight_running_items", default=None)
"""Of the batch that runs here, where one does (`IN_BATCH`)."""


class UnitSink(Protocol):
    """The call or batch that runs."""

    items: int
    """The number of a batch's items; 0: it is one call."""
    counted: list[dict[str, int]] | None
    """The units of the call, or of each item; None: nothing was counted."""


COUNTING: ContextVar[UnitSink | None] = ContextVar("pilotlight_counting", default=None)
"""What runs here; a thread or a task of the tenant's own adds to the same one if it has the context."""


def add_units(sink: UnitSink | None, counts: Mapping[str, Any]) -> str:
    """Add `counts` to what runs: a number of each unit, or for a batch a list with one for each item.

    Returns why they cannot be, naming the unit, and adds nothing then; "": they are added. Without a sink, which is
    code that does not run on the platform, they are only checked.
    """
    rows = _rows_of(sink, counts)
    if isinstance(rows, str):
        return rows
    for row in rows:
        if why := units_fault(row):
            return why
    if sink is None:
        return ""
    before = sink.counted or [{} for _ in rows]
    sums = [
        old | {name: old.get(name, 0) + count for name, count in new.items()}
        for old, new in zip(before, rows, strict=True)
    ]
    for one in sums:
        if why := units_fault(one):
            return f"together {why}"
    sink.counted = sums
    return ""


def _rows_of(sink: UnitSink | None, counts: Mapping[str, Any]) -> list[dict[str, Any]] | str:
    """The units of each item."""
    items = sink.items if sink is not None else 0
    if not items:
        return [dict(counts)]
    for name, column in counts.items():
        if isinstance(column, str) or not isinstance(column, Sequence) or len(column) != items:
            return f"{name} must be a list with a number for each of the {items} items of the batch"
    return [{name: column[number] for name, column in counts.items()} for number in range(items)]


class NestedReply(Protocol):
    """How a nested call ended: one of both is not empty."""

    @property
    def body(self) -> bytes:
        """As that of an answer over HTTP, in msgpack."""
        ...

    @property
    def problem(self) -> bytes:
        """As that of a failed call over HTTP, in JSON."""
        ...


class NestedPort(Protocol):
    """Makes calls in the name of the call that runs."""

    own_app: str
    """The name that this container's app has in its source."""

    def begin(self, function: str, request: bytes, *, of_app: bool, blocking: bool) -> Future[NestedReply]:
        """Make a call of `function`, with a request as its body over HTTP in msgpack.

        Args:
            of_app: it belongs to the app of the call that runs, however that is called on the platform.
            blocking: the thread waits for it.

        Raises:
            NestedRefused: no call runs here, it has as many nested calls as it may, or the thread may not wait.
            BadInput: `too_large`.
        """
        ...

    def leave(self, begun: Future[NestedReply]) -> None:
        """The answer is not wanted any more."""
        ...


_port: NestedPort | None = None


def open_nested_port(port: NestedPort | None) -> None:
    """Let the code of this process call through `port`; None: over HTTP."""
    global _port
    _port = port


def nested_port() -> NestedPort | None:
    """What calls from here go through; None: this process does not run a function of the platform."""
    return _port
