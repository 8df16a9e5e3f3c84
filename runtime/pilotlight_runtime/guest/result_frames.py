"""From what the tenant's code returned or raised to the frames that say so."""

from __future__ import annotations

from typing import Any

from pilotlight_core.model import values
from pilotlight_core.model.messages.agent_messages import Outcome
from pilotlight_runtime.guest.call_table import GuestCall
from pilotlight_runtime.guest.frames import MAX_VALUE, Result
from pilotlight_runtime.guest.remote_errors import BadAnswer, BadArguments, remote_error, type_name

NOTHING = values.encode(None)


def encoded(value: Any, most: int = MAX_VALUE) -> bytes:
    """The msgpack of an answer of at most `most` bytes.

    Raises:
        BadAnswer: naming its type or its size.
    """
    try:
        data = values.encode(value)
    except Exception as error:
        raise BadAnswer(f"{error} (the answer is {with_article(type(value))})") from error
    if len(data) > most:
        raise BadAnswer(f"the answer is {len(data)} bytes: {most} are the most that can be sent of it")
    return data


def outcome_of(error: BaseException) -> Outcome:
    """What a failure is to the platform."""
    if isinstance(error, BadArguments):
        return Outcome.BAD_INPUT
    return Outcome.BAD_OUTPUT if isinstance(error, BadAnswer) else Outcome.RAISED


def answered(call: GuestCall, value: Any, execute_ns: int) -> Result:
    """The Result of a call that returned `value`.

    Raises:
        BadAnswer
    """
    if call.cancelled:
        return cancelled(call, execute_ns)
    return Result(call_id=call.frame.call_id, output=encoded(value), execute_ns=execute_ns)


def streamed(call: GuestCall, execute_ns: int, last_seq: int) -> Result:
    """The Result of a stream that came to its end."""
    if call.cancelled:
        return cancelled(call, execute_ns, last_seq)
    return Result(call_id=call.frame.call_id, output=NOTHING, execute_ns=execute_ns, last_seq=last_seq)


def failed(call: GuestCall, error: BaseException, execute_ns: int, last_seq: int = 0) -> Result:
    """The Result of a call whose code, input or output failed; whatever a cancelled one raised, it was cancelled."""
    if call.cancelled:
        return cancelled(call, execute_ns, last_seq)
    return Result(
        call_id=call.frame.call_id,
        outcome=outcome_of(error),
        error=remote_error(error),
        execute_ns=execute_ns,
        last_seq=last_seq,
    )


def cancelled(call: GuestCall, execute_ns: int, last_seq: int = 0) -> Result:
    """The Result of a call that had begun when it was cancelled."""
    return Result(call_id=call.frame.call_id, outcome=Outcome.CANCELLED, execute_ns=execute_ns, last_seq=last_seq)


def with_article(cls: type) -> str:
    """Its name, as in "a list" or "an int"."""
    name = type_name(cls)
    return f"an {name}" if name[:1].lower() in "aeiou" else f"a {name}"
