"""The errors that callers get of failed calls."""

from __future__ import annotations

from typing import Any

from pilotlight_core.model.errors import (
    BadInput,
    BadOutput,
    ContainerDied,
    DeadlineExceeded,
    ExecutionTimeout,
    FunctionRaised,
    LoadFailed,
    PilotlightError,
    Preempted,
    Unavailable,
    error_from_code,
)
from pilotlight_core.model.messages.call_messages import Ended, Outcome, Refusal, RemoteError
from pilotlight_core.model.messages.scheduling import Dropped


def failure(ended: Ended) -> PilotlightError:
    """The error of a call that its function failed."""
    match ended.outcome:
        case Outcome.LOAD_FAILED:
            return LoadFailed(_sentence(ended.error, ended.reason), **_more(ended.error))
        case Outcome.TIMEOUT:
            return ExecutionTimeout(ended.reason)
        case Outcome.BAD_INPUT:
            detail = ended.error.message if ended.error is not None else ended.reason
            return BadInput(detail, field="input")
        case Outcome.BAD_OUTPUT:
            return BadOutput(_sentence(ended.error, ended.reason), **_more(ended.error))
        case _:
            return FunctionRaised(_sentence(ended.error, ended.reason), **_more(ended.error))


def died(reason: str) -> ContainerDied:
    """The error of a call that was lost with its container."""
    return ContainerDied(f"The container died during the call: {reason or 'no reason is known'}.")


def stream_lost(reason: str, moved: int, closed: str, *, preempted: bool = False) -> ContainerDied | Preempted:
    """The error of a resumable stream that cannot go on: it has `moved` so often, or its journal is `closed`.

    `preempted`: its agent has ended it, since the node is taken away.
    """
    what = f"could not go on elsewhere: {closed}" if closed else f"had gone on elsewhere {moved} times before"
    if preempted:
        return Preempted(f"The call had not ended in time: {reason or 'its node is taken away'}. It {what}.")
    return ContainerDied(f"The container died during the call: {reason or 'no reason is known'}. It {what}.")


def diverged(seq: int) -> BadOutput:
    """The error of a resumed stream that repeats other events than its caller has."""
    return BadOutput(
        f"The container was lost, and the stream went on in another one, whose event {seq} is not the one that was "
        "sent: a resumable generator has to yield the same again from the same state."
    )


def preempted(reason: str) -> Preempted:
    """The error of a call whose node was taken away before it was done."""
    return Preempted(f"The call had not ended in time: {reason or 'its node is taken away'}.")


def broken_stream() -> ContainerDied:
    """The error of a stream with a gap."""
    return ContainerDied("A part of the stream was lost on its way.")


def turned_away(containers: int, last: Refusal) -> Unavailable:
    """The error of a call that so many containers did not take."""
    return Unavailable(f"{containers} containers in turn could not take the call (last: {last}).")


def deadline_passed(waited_s: float, how: str, why: str = "") -> DeadlineExceeded:
    """The error of a call whose deadline passed; `how` says where it was, and `why` what it waited for."""
    because = f": {why}" if why else ""
    return DeadlineExceeded(f"The deadline passed after {waited_s:.1f} s, while the call {how}{because}.")


def dropped_error(dropped: Dropped) -> PilotlightError:
    """The error of a call that its home dropped."""
    sentence = _sentence(dropped.error, dropped.detail)
    more = _more(dropped.error) | ({"limits": list(dropped.limits)} if dropped.limits else {})
    return error_from_code(dropped.code, sentence, retry_after=dropped.retry_after, **more)


def _sentence(error: RemoteError | None, reason: str) -> str:
    return f"{error.type}: {error.message}" if error is not None else reason


def _more(error: RemoteError | None) -> dict[str, Any]:
    return {"traceback": error.traceback, "type": error.type} if error is not None else {}
