"""The errors of calls, as their callers are shown them: bounded, and in words."""

from __future__ import annotations

from pilotlight_core.model.messages.call_messages import BodyRef, RemoteError

TYPE_CHARS = 200
MESSAGE_CHARS = 4_000
TRACEBACK_CHARS = 32_000
"""Characters kept of the texts of a tenant's exception."""


def truncated_error(error: RemoteError) -> RemoteError:
    """`error` with bounded texts: the heads of type and message, the end of the traceback."""
    return RemoteError(error.type[:TYPE_CHARS], error.message[:MESSAGE_CHARS], error.traceback[-TRACEBACK_CHARS:])


def not_taken_error(size: int, answer: BodyRef | None) -> RemoteError:
    """Of an answer of `size` bytes that the origin did not take; `answer` is where it would have gone."""
    most = answer.size if answer is not None else 0
    if size > most > 0:
        text = f"an answer of {size} bytes is too large, {most} are the most: answer in parts, as a generator"
    else:
        text = f"the gateway did not take an answer of {size} bytes"
    return RemoteError("AnswerNotTaken", text)
