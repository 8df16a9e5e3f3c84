"""What a failure says: which are one event, and what of them stands only until the old version has answered.

What the old version makes of the same input is asked of the new one's failures alone, and only some functions may be
run again. So it counts where nothing is compared: in `crash`. Bets between both sides get inputs on which both fail
on either of them by chance, and to leave them out on one side alone would hide as many failures of its own.
"""

from __future__ import annotations

from pilotlight_core.model.messages.seeing.compared_calls import ComparedCall
from pilotlight_gateway.judging.batch_observations import PendingBatch
from pilotlight_gateway.judging.failures import DEADLY, OF_VERSION, is_repeated
from pilotlight_gateway.judging.function_evidence import FunctionEvidence

ALSO_FAILED = "the old version failed on it too"


def fold_failure(evidence: FunctionEvidence, call: ComparedCall, batch: PendingBatch | None, *, canary: bool) -> None:
    """Whether a call failed, if that says anything: each cause of failures is one event."""
    if call.code and call.code not in OF_VERSION:
        return
    failed, why = bool(call.code), None
    if failed:
        if (why := _why_no_event(evidence, call, batch)) is None:
            evidence.note_event("errors", call, canary=canary)
        else:
            evidence.leave_out(why)
    if canary:
        _note_crash(evidence, call)
    elif why is None:
        evidence.crash.note_other(failed=failed)


def resolve_doubt(evidence: FunctionEvidence, call: ComparedCall) -> None:
    """The old version has answered what the new one had failed: if it failed too, that was nobody's.

    Nothing is left to say of one that was in doubt for so long, or before so many others, that it counts for good.
    """
    was_in_doubt = evidence.crash.resolve(call.call_id, failed=not call.also_failed)
    if was_in_doubt and call.also_failed:
        evidence.leave_out(ALSO_FAILED)


def _note_crash(evidence: FunctionEvidence, call: ComparedCall) -> None:
    if not call.code:
        evidence.crash.note(failed=False)
    elif call.also_failed:
        evidence.leave_out(ALSO_FAILED)
    elif call.is_asked:
        evidence.crash.note_doubted(call.call_id, call.at, _causes_of(evidence, call))
    else:
        evidence.crash.note(failed=True, causes=_causes_of(evidence, call))


def _causes_of(evidence: FunctionEvidence, call: ComparedCall) -> tuple[str, ...]:
    """What a failure may share with others, which are the same one then; as `_why_no_event` has it."""
    by_unit = bool(call.unit) and evidence.is_sticky
    found = []
    if call.code in DEADLY and call.container:
        found.append(f"container {call.container}")
    if call.batch and call.batch_size > 1 and not by_unit:
        found.append(f"batch {call.batch}")
    if by_unit:
        found.append(f"unit {call.unit}")
    return tuple(found)


def _why_no_event(evidence: FunctionEvidence, call: ComparedCall, batch: PendingBatch | None) -> str | None:
    """Why a failure is no event of its own; None: it is one."""
    if call.code in DEADLY and call.container and is_repeated(evidence.dead, call.container):
        return "its container's death is counted"
    if batch is not None:
        if "errors" in batch.events:
            return "its batch's failure is counted"
        batch.events.append("errors")
    elif call.batch in evidence.parted:
        if evidence.parted[call.batch]:
            return "its batch's failure is counted"
        evidence.parted[call.batch] = True
    if call.unit and evidence.is_sticky and is_repeated(evidence.dead, f"unit {call.unit}"):
        return "its unit's failure is counted"
    return None
