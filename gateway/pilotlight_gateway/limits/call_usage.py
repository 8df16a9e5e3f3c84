"""What calls have taken that count under their tenant's limits, also when nobody waits for them any more.

A caller that hangs up, or whose time is over, leaves a start behind that may run on: a plain function cannot be
interrupted, so it keeps its slot until it returns or is killed. Its tab stays open for as long; then its agent has told
what it took. What nobody can tell any more - its node is gone, or said nothing - is *lost*.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import msgspec

from pilotlight_core.model.messages.agent_messages import Ended, Grant, Refused, Spent

AFTER_TIMEOUT_S = 15.0
"""A container that runs past its function's timeout is killed, and its agent tells so; this is more than that takes."""
OPEN_AT_MOST = 50_000
"""More than there are slots; beyond it the oldest count as lost."""


class CallUsage:
    """Of one call: filled by whoever runs it. GPU-milliseconds."""

    __slots__ = ("_open", "_settled", "cost", "known", "lost")

    def __init__(self) -> None:
        self.cost = 0.0
        """Of all its starts of which that is known."""
        self.known = 0
        """How many those are."""
        self.lost = 0
        """Starts of which nobody can say what they took."""
        self._open = False
        self._settled: Callable[[CallUsage], None] | None = None

    def count(self, cost: float, known: int, lost: int) -> None:
        """What its starts up to now have taken."""
        self.cost, self.known, self.lost = cost, known, lost

    @property
    def is_open(self) -> bool:
        """Whether a start of it may run on."""
        return self._open

    def keep_open(self) -> None:
        """One more start may run on."""
        self._open = True

    def close(self, cost: float | None, *, started: bool = True) -> None:
        """That one has ended; `cost` None: nobody can say what it took."""
        if started and cost is None:
            self.lost += 1
        elif started and cost is not None:
            self.cost += cost
            self.known += 1
        self._open = False
        then, self._settled = self._settled, None
        if then is not None:
            then(self)

    def settle(self, then: Callable[[CallUsage], None]) -> None:
        """Call `then` once nothing of it runs any more: now, or when it is closed. Once per tab."""
        if self._open:
            self._settled = then
        else:
            then(self)


class OpenUsage(msgspec.Struct, frozen=True):
    """A start that may run on though its call has ended."""

    usage: CallUsage
    grant: Grant
    since: float
    expires_at: float
    """When it counts as lost, if nothing is heard of it."""


class UsageTracker:
    """The open tabs of one gateway. Instants are monotonic seconds."""

    def __init__(self) -> None:
        self.open: dict[str, OpenUsage] = {}
        """By call, the oldest first."""

    def __iter__(self) -> Iterator[OpenUsage]:
        return iter(self.open.values())

    def left(self, usage: CallUsage, grant: Grant, timeout: float, at: float) -> None:
        """A call has failed of which a start may run on, for `timeout` seconds: its function's."""
        usage.keep_open()
        self.open[grant.call_id] = OpenUsage(usage, grant, at, at + timeout + AFTER_TIMEOUT_S)
        if len(self.open) > OPEN_AT_MOST:
            self.open.pop(next(iter(self.open))).usage.close(None)

    def on_frame(self, frame: Ended | Refused) -> None:
        """An agent says what became of a start."""
        found = self.open.get(frame.call_id)
        if found is None or found.grant.grant_number != frame.grant_number:
            return
        del self.open[frame.call_id]
        if isinstance(frame, Ended):
            # One without a container is of a call that the agent does not hold: what it took nobody knows there.
            found.usage.close(gpu_ms(frame.spent) or (0.0 if frame.container else None), started=frame.started)
        else:
            found.usage.close(None, started=False)

    def node_gone(self, node: str, instance: str) -> None:
        """Whatever ran there will never be told of."""
        self._lose([c for c, one in self.open.items() if (one.grant.node, one.grant.instance) == (node, instance)])

    def expire(self, at: float) -> None:
        """Give up those that must have ended."""
        self._lose([call for call, one in self.open.items() if one.expires_at <= at])

    def _lose(self, calls: list[str]) -> None:
        for call in calls:
            self.open.pop(call).usage.close(None)


def gpu_ms(spent: Spent | None) -> float | None:
    """GPU-milliseconds that a start has taken; None: nobody has metered it."""
    return spent.ns / 1e6 * (spent.ppm / 1e6) if spent is not None else None
