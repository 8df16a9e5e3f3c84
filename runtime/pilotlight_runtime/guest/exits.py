"""How a guest ends: at once, with its output flushed and a line with the reason."""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import wraps
from typing import NoReturn

from pilotlight_core.model.messages.call_messages import RemoteError
from pilotlight_runtime.guest.agent_channel import AgentGone, Channel
from pilotlight_runtime.guest.frames import BatchResult, MalformedFrame, Result

IN_ORDER = 0
NOT_LOADED = 1
DEVICE_DEAD = 69
"""EX_UNAVAILABLE"""
MALFORMED = 70
"""EX_SOFTWARE"""
FATAL_CUDA_ERRORS = ("device-side assert", "illegal memory access", "unspecified launch failure", "illegal instruction")
"""After these a process's context is gone: every later call fails too."""


def exit_now(code: int, why: str = "") -> NoReturn:
    """End the process. Never waits: threads of the tenant's code may be anywhere."""
    with suppress(Exception):
        if why:
            print(f"pilotlight: {why}", file=sys.stderr)  # noqa: T201 - standard error is the tenant's log
        sys.stdout.flush()
        sys.stderr.flush()
    os._exit(code)


@contextmanager
def flushed_before_exit(channel: Channel) -> Iterator[None]:
    """Lets tenants' code end the process only once the answers are sent that the channel keeps.

    They are of calls that had ended. What a signal ends cannot be helped.
    """
    ends = os._exit, os.abort

    @wraps(os._exit)
    def exit_at_once(status: int) -> NoReturn:
        channel.flush_at_exit()
        ends[0](status)

    @wraps(os.abort)
    def abort() -> NoReturn:
        channel.flush_at_exit()
        ends[1]()

    os._exit, os.abort = exit_at_once, abort
    try:
        yield
    finally:
        channel.flush_at_exit()
        os._exit, os.abort = ends


class with_agent:  # noqa: N801 - reads as the statement that it is
    """Ends the process with the agent, or after a protocol error or bug: a guest must not hang.

    A class, since each call passes it and a generator would cost a microsecond more.
    """

    def __enter__(self) -> None:
        pass

    def __exit__(self, cls: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        if error is None:
            return
        if isinstance(error, AgentGone):
            exit_now(IN_ORDER)
        if isinstance(error, MalformedFrame):
            exit_now(MALFORMED, f"the agent sent what cannot be understood, so this container ends: {error}")
        text = "".join(traceback.format_exception(error))
        exit_now(MALFORMED, f"a mistake of the platform ends this container:\n{text}")


def exit_if_fatal(frame: Result | BatchResult, flush: Callable[[], None]) -> None:
    """After an answer was sent: end the process if its device is dead, empty the device's cache if it was full.

    Only then are the exception and the frames that held tensors gone. `flush` returns once the answer is out.
    """
    error = frame.error if isinstance(frame, Result) else _of_batch(frame)
    if error is None:
        return
    if is_fatal(error):
        with suppress(AgentGone):
            flush()
        exit_now(DEVICE_DEAD, f"the device's context is dead, so this container ends: {error.message}")
    if error.type == "torch.OutOfMemoryError":
        _empty_cache()


def is_fatal(error: RemoteError) -> bool:
    return "CUDA" in error.message and any(sign in error.message for sign in FATAL_CUDA_ERRORS)


def _of_batch(frame: BatchResult) -> RemoteError | None:
    return frame.results[0].error if frame.whole and frame.results else None


def _empty_cache() -> None:
    torch = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_initialized():
        torch.cuda.empty_cache()
