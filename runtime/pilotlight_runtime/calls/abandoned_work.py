"""Work that the guest goes on with although nobody wants its answer any more. Pure.

A caller that leaves, a deadline that passes and a cancelled job all end in a cancelled call. A generator and an async
function end soon after; a plain function cannot be interrupted, and code may ignore its cancellation. What the guest
works on is a call or a batch: of a batch, one wanted item makes all of it wanted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from pilotlight_runtime.calls.slot_table import AcceptedCall


@dataclass(frozen=True, kw_only=True)
class OverdueWork:
    call_id: str
    """Of one of its calls."""
    is_alone: bool
    """Whether the guest has no other work that is wanted."""


def overdue_work(
    running: Iterable[AcceptedCall], is_batched: Callable[[AcceptedCall], bool], grace_s: float, at: float
) -> OverdueWork | None:
    """Work that nobody has wanted for longer than `grace_s`, if there is any."""
    works: dict[str, list[AcceptedCall]] = {}
    for call in running:
        # The guest has one batch of a method at a time.
        works.setdefault(f".{call.run.method}" if is_batched(call) else call.call_id, []).append(call)
    given_up = {work[0].call_id: since for work in works.values() if (since := _since(work)) is not None}
    for call_id, since in given_up.items():
        if at - since > grace_s:
            return OverdueWork(call_id=call_id, is_alone=len(given_up) == len(works))
    return None


def _since(work: list[AcceptedCall]) -> float | None:
    """Since when nobody wants any of it; None: somebody does."""
    instants = [call.abandoned_at for call in work if call.abandoned_at is not None]
    return max(instants) if len(instants) == len(work) else None
