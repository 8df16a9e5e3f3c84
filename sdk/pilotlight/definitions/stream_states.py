"""What a resumable generator saves of itself, and goes on from."""

from __future__ import annotations

from typing import Any, TypeVar

from pilotlight.definitions.errors import Misuse
from pilotlight_core.model import values
from pilotlight_core.model.messages.running_code import IN_HOOK, RUNNING_CALL
from pilotlight_core.model.streams.resuming import MAX_STATE
from pilotlight_core.model.streams.running_stream import RUNNING_STREAM

S = TypeVar("S")


def resume(state: S) -> S:
    """Return the state that the running generator goes on from.

    That is what its last `checkpoint` saved, if its stream was begun in another container, which is gone; else `state`,
    the one to begin with. A generator of a function with `resumable=True` calls it before its first `yield`.

    Outside the platform it returns `state`.

    Raises:
        Misuse: in a function without `resumable=True`, or outside its generator.
    """
    stream = RUNNING_STREAM.get()
    if stream is None or not stream.is_resumable:
        _refuse_elsewhere("resume")
        return state
    saved = stream.read_state()
    return values.decode(saved) if saved else state


def checkpoint(state: Any) -> None:
    """Save the state of the running generator, between two `yield`s: what is behind the last one, and nothing more.

    If its container is lost, another one runs the generator again, whose `resume` returns the state. What it yields
    from there has to be what it would have yielded here: what the client has got already is not sent again.

    Args:
        state: numbers, strings, bytes, lists and dicts of them, and whatever else an answer may have; 256 KiB at most.
            It is copied.

    Outside the platform nothing is saved.

    Raises:
        Misuse: if the state cannot travel or is too large; if `resume` was not called before; in a function without
            `resumable=True`, or outside its generator.
    """
    try:
        data = values.encode(state)
    except Exception as error:
        raise Misuse(f"pilotlight.checkpoint(): the state cannot be sent: {error}.", field="state") from error
    if len(data) > MAX_STATE:
        raise Misuse(
            f"pilotlight.checkpoint(): the state is {len(data)} bytes, of which {MAX_STATE} are the most.",
            field="state",
        )
    stream = RUNNING_STREAM.get()
    if stream is None or not stream.is_resumable:
        _refuse_elsewhere("checkpoint")
    elif why := stream.save_state(data):
        raise Misuse(f"pilotlight.checkpoint(): {why}.", field="state")


def _refuse_elsewhere(verb: str) -> None:
    """Refuse in a call that has no state to save; code that no call runs may do it for nothing."""
    if RUNNING_CALL.get() not in ("", IN_HOOK):
        raise Misuse(f"pilotlight.{verb}() is for generators of functions with resumable=True.", field="resumable")
