"""How long a chat template may take, and what it is told when it is over. Knows no jinja.

A template that runs for ever would keep its container from all other calls. Nothing from outside can stop a thread of
Python, so what is rendered asks by itself whether its time is over. It is time of the processor: on a busy machine, or
beside a step of the engine, a template is not refused that took no longer elsewhere.
"""

from __future__ import annotations

from contextvars import ContextVar
from time import thread_time

MOST_S = 2.0
"""Templates of models take microseconds for a message."""

_ends_at: ContextVar[float | None] = ContextVar("_ends_at", default=None)
"""Of what this thread renders, by its processor time."""


class TemplateRefusal(ValueError):
    """The messages do not fit the template, in its own words; or the template is at fault."""


def allow_time() -> None:
    """What this thread renders from here on ends after MOST_S."""
    _ends_at.set(thread_time() + MOST_S)


def check_time() -> None:
    """Raise TemplateRefusal if the time of what is rendered is over."""
    ends_at = _ends_at.get()
    if ends_at is not None and thread_time() > ends_at:
        raise TemplateRefusal(f"the chat template takes longer than {MOST_S:g} s of processor time")
