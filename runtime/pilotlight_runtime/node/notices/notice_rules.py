"""What holds of a provider's notices, and how the time until a deadline is spent. Pure: instants are unix seconds.

A provider repeats what it has said, or says it once; it may forget it, correct it, or withdraw it. What an agent acts
by is one notice, which only ever comes nearer: a preemption outranks a recommendation to rebalance, and of two
deadlines the earlier one holds.
"""

from __future__ import annotations

from pilotlight_core.model.messages.node_messages import NodeNotice, NoticeKind

OVER_S = 120.0
"""So long after its deadline a notice is over: the node was not taken away after all, or has been and is back."""
MOST_MARGIN_S = 10.0
LEAST_MARGIN_S = 1.0
MARGIN_PART = 0.2
"""Of the time until the deadline, for the end of the agent itself: 10 s of 120, 6 of 30."""
LEAST_STEP_S = 0.1


def is_over(notice: NodeNotice, at: float) -> bool:
    """Whether a notice's deadline has passed for so long that it does not hold any more."""
    return notice.kind is NoticeKind.PREEMPT and at > notice.deadline + OVER_S


def standing_notice(kept: NodeNotice | None, told: NodeNotice | None, *, revokes: bool, at: float) -> NodeNotice | None:
    """The notice that holds, of the one that held and what the provider says now. `revokes`: as `NoticeSource`."""
    kept = None if kept is None or is_over(kept, at) else kept
    told = None if told is None or is_over(told, at) else told
    if told is None:
        return None if revokes else kept
    if kept is None:
        return told
    if kept.kind is not told.kind:
        return kept if kept.kind is NoticeKind.PREEMPT else told
    is_nearer = told.kind is NoticeKind.PREEMPT and told.deadline < kept.deadline
    return told if is_nearer else kept


def margin_s(left_s: float) -> float:
    """Of the seconds left until a deadline, those that the agent needs for its own end, once no call runs."""
    return min(MOST_MARGIN_S, max(LEAST_MARGIN_S, left_s * MARGIN_PART))


def for_calls_s(notice: NodeNotice, at: float) -> float:
    """How long calls may go on."""
    left_s = notice.deadline - at
    return max(0.0, left_s - margin_s(left_s))


def step_bound_s(notice: NodeNotice | None, most_s: float, steps_left: int, at: float) -> float:
    """The bound of the next of so many steps of an agent's end: `most_s`, or its part of what is left."""
    if notice is None or notice.kind is not NoticeKind.PREEMPT or is_over(notice, at):
        return most_s
    return min(most_s, max(LEAST_STEP_S, (notice.deadline - at) / max(1, steps_left)))
