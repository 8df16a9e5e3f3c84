"""How a guest ends: always at once, with its output flushed, and with a line that says why."""

from __future__ import annotations

import os
import sys
import traceback
from contextlib import suppress
from typing import NoReturn

from pilotlight_runtime.guest.agent_channel import AgentGone
from pilotlight_runtime.guest.frames import MalformedFrame

IN_ORDER = 0
NOT_LOADED = 1
DEVICE_DEAD = 69
"""EX_UNAVAILABLE"""
MALFORMED = 70
"""EX_SOFTWARE"""


def exit_now(code: int, why: str = "") -> NoReturn:
    """End the process. Never waits: threads of the tenant's code may be anywhere."""
    with suppress(Exception):
        if why:
            print(f"pilotlight: {why}", file=sys.stderr)  # noqa: T201 - standard error is the tenant's log
        sys.stdout.flush()
        sys.stderr.flush()
    os._exit(code)


class with_agent:  # noqa: N801 - reads as the statement that it is
    """End the process with the agent, or when either of us makes a mistake: a guest that hangs helps nobody.

    A class, since each call passes through it and a generator would cost a microsecond more.
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
