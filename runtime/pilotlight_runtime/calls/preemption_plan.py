"""Which calls of a container go on when its node is taken away, and which end early. Pure.

not begun           goes back at once, uncharged, and runs elsewhere
fits                runs to its end
does not fit,       ends at once, and is run again elsewhere from the start: waiting for the deadline would only
may be run again    make its caller wait. So is a stream of which nothing was sent
resumable stream    if it does not fit it ends at once too, and goes on elsewhere behind what was sent
does not fit,       has all the time there is, since nothing is gained by ending it before; then it ends with
must not            `preempted`. So does a stream of which a part was sent: its caller has that part, and pays for it
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(kw_only=True)
class PreemptionPlan:
    """Instants are monotonic seconds."""

    until_at: float
    """No call goes on for longer."""
    reason: str
    """For people."""
    hooks_until_at: float = 0.0
    """While the function's own drain hooks run, nothing ends early: they may have calls end by themselves."""

    def ends_call(self, at: float, *, remaining_s: float, may_rerun: bool, has_sent: bool) -> bool:
        """Whether a call that runs, for `remaining_s` still as it seems, is to end now."""
        if at >= self.until_at:
            return True
        if not may_rerun or has_sent or at < self.hooks_until_at:
            return False
        return at + remaining_s > self.until_at
