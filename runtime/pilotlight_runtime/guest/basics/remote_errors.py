"""Turning an exception of the tenant's code into bounded text."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterable
from pathlib import Path
from types import TracebackType

from pilotlight_core.model.engines.generation import UnfitGeneration
from pilotlight_core.model.messages.call_messages import RemoteError

MAX_MESSAGE = 4 * 1024
MAX_TRACEBACK = 32 * 1024
MAX_FRAMES = 64
"""Of one traceback; the innermost are kept."""
OURS = (str(Path(__file__).parents[1]), "<frozen importlib")
"""The platform's frames, left out before the tenant's code."""


_hide: Callable[[str], str] = str
"""Hides the values of secrets. A guest's process has one function, and errors come from everywhere in it."""


def hide_in_errors(values: Iterable[str]) -> None:
    """Hide these values in all errors from now on. They are hidden before a text is shortened, which could cut one."""
    global _hide
    # Late: few functions have secrets, and every blank would import it.
    from pilotlight_core.model.secrets.secret_masks import SecretMask

    _hide = SecretMask(values).hide


class BadArguments(ValueError):
    """The arguments do not fit the function's parameters; the message names the parameter."""

    shown_as = "BadInput"
    """The `type` of the error that the caller reads."""


class BadAnswer(TypeError):
    """The answer cannot be sent; the message names its type or its size."""

    shown_as = "BadOutput"


def remote_error(error: BaseException, most: int = MAX_TRACEBACK, note: str = "") -> RemoteError:
    """The error's type, message, and `most` characters of its traceback in the tenant's code. Never raises.

    `note` is the traceback's last line: what the author of the function can do.
    """
    if isinstance(error, BadArguments | BadAnswer):
        return RemoteError(type=error.shown_as, message=_message(error))
    if isinstance(error, UnfitGeneration):
        return RemoteError(type=BadArguments.shown_as, message=_message(error))
    return RemoteError(type=type_name(type(error)), message=_message(error), traceback=_traceback(error, most, note))


def type_name(cls: type) -> str:
    """`ValueError`, `app.MyError`."""
    module = cls.__module__
    return cls.__qualname__ if module in ("builtins", "__main__") else f"{module}.{cls.__qualname__}"


def _message(error: BaseException) -> str:
    try:
        text = str(error)
    except BaseException as second:  # noqa: BLE001 - __str__ is the tenant's code too
        text = f"<{type_name(type(error))}.__str__ raised {type_name(type(second))}>"
    return _sendable(_shorten(_hide(text), MAX_MESSAGE))


def _traceback(error: BaseException, most: int, note: str) -> str:
    note = f"{note}\n" if note else ""
    try:
        shown = traceback.TracebackException(type(error), error, _tenant_frames(error.__traceback__), limit=-MAX_FRAMES)
        return _sendable(_shorten(_hide("".join(shown.format())) + note, most))
    except BaseException:  # noqa: BLE001 - __cause__, __notes__ and source lines are the tenant's
        return f"{type_name(type(error))}: {_message(error)}\n(its traceback cannot be shown)\n{note}"


def _tenant_frames(trace: TracebackType | None) -> TracebackType | None:
    while trace is not None and trace.tb_frame.f_code.co_filename.startswith(OURS):
        trace = trace.tb_next
    return trace


def _shorten(text: str, most: int) -> str:
    """Within `most` characters: the head has the beginning and the tail the error."""
    if len(text) <= most:
        return text
    head = most // 4
    cut = len(text) - most
    return f"{text[:head]}\n… {cut} characters left out …\n{text[head + cut :]}"


def _sendable(text: str) -> str:
    return text.encode("utf-8", "replace").decode()
