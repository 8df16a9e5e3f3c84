"""What is next for one machine, from its record, what its provider lists, and whether its agent reports. Pure.

Every step may be repeated: launches by their id, terminations since what is gone stays gone. Instants are unix seconds.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from pilotlight_core.model.records.pools import LaunchRecord, LaunchState

UNLISTED_S = 60.0
"""A machine that its provider has not listed for so long is gone: lists may lag behind launches."""
SILENT_S = 300.0
"""A node that has not reported for so long is ended: whatever ran there counts as lost after seconds."""
DRAIN_MOST_S = 3_600.0
"""A node that is not empty after so long ends nevertheless."""
AGAIN_S = 10.0
"""Between two requests for the same."""
POOL_IS_GONE = "its pool was removed"


class LaunchStep(StrEnum):
    NOTHING = "nothing"
    LAUNCH = "launch"  # ask the provider for it, by its id
    ARRIVE = "arrive"  # it reports: it is up
    END = "end"  # it is to be terminated from now on
    TERMINATE = "terminate"  # ask the provider to
    FORGET = "forget"  # it is gone


@dataclass(frozen=True, kw_only=True)
class MachineSight:
    """What is known of a machine beside its record."""

    listed_at: float = 0.0
    """When its provider's list was read last; 0: not yet."""
    is_listed: bool = False
    is_ending: bool = False
    """Whether it is on its way out by its provider's word."""
    unlisted_since: float | None = None
    watched_since: float = 0.0
    """Since when this leader could have heard of it."""
    heard_at: float | None = None
    """When its agent reported last; None: never, or it has stopped in order."""
    is_empty: bool = False
    asked_at: float | None = None
    """When the provider was asked last, to launch or to terminate it; None: not by this leader."""
    is_asking: bool = False
    """Whether a request is under way."""


@dataclass(frozen=True, kw_only=True)
class NextStep:
    step: LaunchStep
    reason: str = ""


NOTHING = NextStep(step=LaunchStep.NOTHING)


def next_step(
    record: LaunchRecord, sight: MachineSight, give_up_after_s: float, at: float, *, has_pool: bool = True
) -> NextStep:
    """What to do about a machine now; without its pool nobody can be asked for it, nor to end it."""
    if sight.is_asking:
        return NOTHING
    if not has_pool and (step := _without_pool(record, at)) is not None:
        return step
    match record.state:
        case LaunchState.LAUNCHING:
            return _while_launching(record, sight, give_up_after_s, at)
        case LaunchState.UP:
            return _while_up(record, sight, at)
        case LaunchState.DRAINING:
            return _while_draining(record, sight, at)
        case LaunchState.ENDING:
            return _while_ending(record, sight, at)


def _without_pool(record: LaunchRecord, at: float) -> NextStep | None:
    if record.state is LaunchState.LAUNCHING and not record.provider_id:
        return NextStep(step=LaunchStep.END, reason=POOL_IS_GONE)
    if record.state is LaunchState.ENDING and at - record.changed_at > UNLISTED_S:
        return NextStep(step=LaunchStep.FORGET, reason=POOL_IS_GONE)
    return None


def _while_launching(record: LaunchRecord, sight: MachineSight, give_up_after_s: float, at: float) -> NextStep:
    if sight.heard_at is not None and sight.heard_at >= record.made_at:
        return NextStep(step=LaunchStep.ARRIVE)
    if sight.is_ending or (record.provider_id and _is_gone(sight)):
        return NextStep(step=LaunchStep.END, reason="its provider took it away before it reported")
    if at - record.made_at > give_up_after_s:
        return NextStep(step=LaunchStep.END, reason=f"its agent did not report within {give_up_after_s:.0f} s")
    if not record.provider_id and not sight.is_listed and sight.listed_at and _is_due(sight, at):
        return NextStep(step=LaunchStep.LAUNCH)
    return NOTHING


def _while_up(record: LaunchRecord, sight: MachineSight, at: float) -> NextStep:
    if sight.is_ending or _is_gone(sight):
        return NextStep(step=LaunchStep.END, reason="its provider has taken it away")
    if at - max(sight.heard_at or 0.0, record.changed_at, sight.watched_since) > SILENT_S:
        return NextStep(step=LaunchStep.END, reason=f"it has not reported for {SILENT_S:.0f} s")
    return NOTHING


def _while_draining(record: LaunchRecord, sight: MachineSight, at: float) -> NextStep:
    if sight.is_empty or sight.is_ending or _is_gone(sight) or at - record.changed_at > DRAIN_MOST_S:
        return NextStep(step=LaunchStep.END, reason=record.reason)
    return NOTHING


def _while_ending(record: LaunchRecord, sight: MachineSight, at: float) -> NextStep:
    if sight.listed_at > record.changed_at and not sight.is_listed:
        # One whose launch was asked for a moment ago may come into the list yet.
        if record.provider_id or at - record.changed_at > UNLISTED_S:
            return NextStep(step=LaunchStep.FORGET)
        return NOTHING
    return NextStep(step=LaunchStep.TERMINATE) if sight.is_listed and _is_due(sight, at) else NOTHING


def _is_gone(sight: MachineSight) -> bool:
    """By two lists so far apart: one that is old, since a provider does not answer, says no more than it did."""
    return sight.unlisted_since is not None and sight.listed_at - sight.unlisted_since > UNLISTED_S


def _is_due(sight: MachineSight, at: float) -> bool:
    return sight.asked_at is None or at - sight.asked_at >= AGAIN_S
