"""The cost of calls that counts under their tenant's limits, also after their callers have left.

When a caller leaves or its time is over, a start of the call may run on: a plain function cannot be interrupted, so it
keeps its slot until it returns or is killed. Its usage stays open until the agent reports the cost. A start whose cost
no agent can report (its node is gone or silent) is *lost*.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

from pilotlight_core.model.messages.call_messages import Ended, Grant, Refused, Spent
from pilotlight_core.model.messages.usage_facts import Fault
from pilotlight_core.model.units import CLOCK_SLACK_MS, MAX_GPU, NS_PER_MS, WHOLE_DEVICE

AFTER_TIMEOUT_S = 15.0
"""More than an agent takes to kill a container after its function's timeout, and to report it."""
NO_UNITS: Mapping[str, int] = {}
OPEN_AT_MOST = 50_000
"""More than there are slots; beyond it the oldest counts as lost."""


class CallUsage:
    """The usage of one call, filled by whatever runs it. GPU-milliseconds."""

    __slots__ = ("_open", "_settled", "cost", "known", "lost", "sold", "spent", "tokens", "version")

    def __init__(self) -> None:
        self.cost = 0.0
        """Of all starts with a known cost."""
        self.known = 0
        self.lost = 0
        """Starts whose cost is not known."""
        self.tokens = 0
        """Of prompts and completions, as the function counted them."""
        self.spent: tuple[Spent, ...] = ()
        """What its tenant pays of the known starts."""
        self.sold: Mapping[str, int] = NO_UNITS
        """What is billed of what the function counted, of a call that ended well."""
        self.version = ""
        """The id of the version that ran, if it took the place of the one that was asked for."""
        self._open = False
        self._settled: Callable[[CallUsage], None] | None = None

    def count(self, cost: float, known: int, lost: int, tokens: int = 0, spent: tuple[Spent, ...] = ()) -> None:
        """Set the cost and the tokens of the starts up to now."""
        self.cost, self.known, self.lost, self.tokens, self.spent = cost, known, lost, tokens, spent

    @property
    def is_open(self) -> bool:
        return self._open

    @property
    def is_begun(self) -> bool:
        """Whether a start may have used something."""
        return bool(self.known or self.lost or self._open)

    def keep_open(self) -> None:
        self._open = True

    def close(self, cost: float | None, *, started: bool = True, spent: Spent | None = None) -> None:
        """The open start has ended; `cost` is None if it is not known."""
        if started and cost is None:
            self.lost += 1
        elif started and cost is not None:
            self.cost += cost
            self.known += 1
            if spent is not None and spent.fault is not Fault.PLATFORM:
                self.spent = (*self.spent, spent)
        self._open = False
        then, self._settled = self._settled, None
        if then is not None:
            then(self)

    def settle(self, then: Callable[[CallUsage], None]) -> None:
        """Call `then` when no start runs: now, or at `close`. Once per usage."""
        if self._open:
            self._settled = then
        else:
            then(self)


def is_plausible(spent: Spent | None, elapsed_ms: float) -> bool:
    """Whether an agent can have metered this of a start that took so long."""
    longest_ns = (elapsed_ms + CLOCK_SLACK_MS) * NS_PER_MS
    return spent is None or (spent.ns <= longest_ns and spent.ppm <= MAX_GPU * WHOLE_DEVICE)


class OpenUsage(NamedTuple):
    """A start that may run on after the end of its call."""

    usage: CallUsage
    grant: Grant
    since: float
    expires_at: float
    """When it counts as lost."""


class UsageTracker:
    """The open usages of one gateway. Instants are monotonic seconds."""

    def __init__(self) -> None:
        self.open: dict[str, OpenUsage] = {}
        """By call id, the oldest first."""

    def __iter__(self) -> Iterator[OpenUsage]:
        return iter(self.open.values())

    def left(self, usage: CallUsage, grant: Grant, timeout: float, at: float) -> None:
        """A call has failed, and its start may run on for the `timeout` of its function."""
        usage.keep_open()
        self.open[grant.call_id] = OpenUsage(usage, grant, at, at + timeout + AFTER_TIMEOUT_S)
        if len(self.open) > OPEN_AT_MOST:
            self.open.pop(next(iter(self.open))).usage.close(None)

    def on_frame(self, node: str, frame: Ended | Refused, at: float) -> None:
        """The agent of `node` reports the end of a start."""
        found = self.open.get(frame.call_id)
        if found is None or (found.grant.node, found.grant.grant_number) != (node, frame.grant_number):
            return
        del self.open[frame.call_id]
        if isinstance(frame, Ended):
            # Without a container the agent does not know the call, nor its cost.
            cost = frame.gpu_ms or (0.0 if frame.container else None)
            longest_s = at - found.since + (found.expires_at - found.since)
            if not is_plausible(frame.spent, longest_s * 1000.0):
                cost = None
            found.usage.close(cost, started=frame.started, spent=frame.spent)
        else:
            found.usage.close(None, started=False)

    def node_gone(self, node: str, instance: str) -> None:
        """The starts at an incarnation of a node are lost."""
        self._lose([c for c, one in self.open.items() if (one.grant.node, one.grant.instance) == (node, instance)])

    def lose_gone(self, is_gone: Callable[[str, str], bool]) -> None:
        """Give up starts at incarnations that were gone already when their calls failed: nobody says so again."""
        self._lose([call for call, one in self.open.items() if is_gone(one.grant.node, one.grant.instance)])

    def expire(self, at: float) -> None:
        """Give up starts that must have ended."""
        self._lose([call for call, one in self.open.items() if one.expires_at <= at])

    def _lose(self, calls: list[str]) -> None:
        for call in calls:
            self.open.pop(call).usage.close(None)
