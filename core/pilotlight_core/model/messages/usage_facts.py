"""What usage says besides time: why a container exists, whose fault the end of a call was, and what a call used of its
own.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

MOST_UNITS = 2**53
"""Of one kind in one call: the largest whole number that every reader of JSON has exactly."""


class Purpose(StrEnum):
    """Why a container is there: why it was started, or is kept since."""

    CALL = "call"  # calls ran or waited
    FLOOR = "floor"  # `min_containers`
    BUFFER = "buffer"  # `buffer_containers`
    WARM = "warm"  # a declared time
    PREWARM = "prewarm"  # a forecast, or what else the platform keeps beyond what its function asks for
    MOVE = "move"  # in place of one elsewhere
    TRIAL = "trial"  # to learn how fast it is
    SHADOW = "shadow"  # for calls whose answers are dropped


GUESSES = frozenset({Purpose.PREWARM, Purpose.MOVE})
"""Why the platform starts or keeps containers that no tenant has asked for."""


def is_guess(purpose: Purpose, *, used: bool) -> bool:
    """Whether a container is there by the platform's own guess, and has begun no call since."""
    return purpose in GUESSES and not used


class Fault(StrEnum):
    """Whose fault it is that a call did not end well."""

    NONE = "none"  # it ended well, was cancelled, or has not ended
    TENANT = "tenant"  # the function's code, its limits or its input
    PLATFORM = "platform"  # its container was ended for other reasons


class CallUnit(StrEnum):
    """What a function may count of a call, in whole numbers."""

    PROMPT_TOKENS = "prompt_tokens"
    COMPLETION_TOKENS = "completion_tokens"
    CACHED_TOKENS = "cached_tokens"
    IMAGES = "images"
    SECONDS = "seconds"
    CUSTOM = "custom"


UNITS = frozenset(CallUnit)


def units_fault(units: Mapping[str, int]) -> str:
    """Why these are no units of a call, naming the first that is wrong; "": they are."""
    for name, count in units.items():
        if name not in UNITS:
            return f"there is no unit {name!r}: expected some of {', '.join(CallUnit)}"
        if not isinstance(count, int) or isinstance(count, bool) or not 0 <= count <= MOST_UNITS:
            return f"{name} must be a whole number from 0 to 2**53, not {count!r:.40}"
    return ""


def tokens_of(units: Mapping[str, int]) -> int:
    """What limits of tokens count: those of the prompt and of the completion."""
    return units.get(CallUnit.PROMPT_TOKENS, 0) + units.get(CallUnit.COMPLETION_TOKENS, 0)
