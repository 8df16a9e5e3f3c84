"""How an engine is, as its container tells it: a tenant's word, as all that a container says."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from pilotlight_core.model.bounded import Count, Duration, ShortText


class EngineReport(msgspec.Struct, frozen=True, kw_only=True, array_like=True, gc=False):
    """Counters are since the engine's start. Fields are only appended."""

    kv_used: Count = 0
    """Tokens whose keys and values running calls hold."""
    kv_total: Count = 0
    running: Count = 0
    waiting: Count = 0
    prefill_tokens: Count = 0
    """Tokens of prompts that were computed."""
    decode_tokens: Count = 0
    """Tokens of answers that were computed one by one: all but the first of each, which comes of its prompt."""
    preempted: Count = 0
    """How often a call gave up its room for another one."""
    prefix_tokens: Count = 0
    """Tokens of prompts that were stored, and not computed."""
    adapters: tuple[ShortText, ...] = ()
    """Those that are loaded."""
    step_us: Count = 0
    """Of the last step."""
    token_budget: Count = 0
    """The most tokens of one step, which a lack of memory halves."""
    steps: Count = 0
    first_token_ms: Duration = 0.0
    """95 % of its calls lately had their first token so soon after they came to it; 0: too few came to say."""
    inter_token_ms: Duration = 0.0
    """The same of the time between two tokens of a call."""
    waited_ms: Duration = 0.0
    """How long the call has waited that waits longest for its first token."""

    @property
    def kv_used_ratio(self) -> float:
        """How full the room for keys and values is: 0 to 1."""
        return min(1.0, self.kv_used / self.kv_total) if self.kv_total else 0.0

    @property
    def lacks_room(self) -> bool:
        """Whether calls wait since there is no room for them, and not only for their turn."""
        return calls_lack_room(self.waiting, self.running, self.kv_used, self.kv_total)


def calls_lack_room(waiting: int, running: int, kv_used: int, kv_total: int) -> bool:
    """Whether calls that wait have no room: what is left is less than one that runs has. Who tells of no room has none
    for those that wait.
    """
    return waiting > 0 and (not kv_total or (kv_total - kv_used) * running < kv_used)


MOST_ADAPTERS_TOLD = 64
_reporter: Callable[[EngineReport], None] | None = None


def open_engine_reports(reporter: Callable[[EngineReport], None] | None) -> None:
    """Have what this process's engine tells passed to `reporter`, from any thread; None: to nobody."""
    global _reporter
    _reporter = reporter


def report_engine(report: EngineReport) -> None:
    """Tell how this process's engine is."""
    if _reporter is not None:
        _reporter(report)
