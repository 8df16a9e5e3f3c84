"""What gateways tell the judge of calls of a rollout: one entry per call, in the stream of compared calls.

A message's place in the stream orders the judge's folding; a gateway that repeats one gives it the same message id.
"""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

from pilotlight_core.model.bounded import Count, Duration, Rising, ShortText

MOST_COMPARED = 256
"""Calls of one message."""
MOST_FIELDS = 8


class ComparedCall(msgspec.Struct, frozen=True, array_like=True):
    """One call that ended, or grew slower than the threshold, on one side of a rollout."""

    rollout: ShortText
    revision: Count
    """Of the rollout's record, by which it was sent."""
    function: ShortText
    method: ShortText
    arm: ShortText
    """As `Arm`."""
    rho: Annotated[float, Meta(ge=0, le=1)]
    """The probability with which it was sent to the canary."""
    call_id: ShortText
    tenant: ShortText
    """Who called."""
    unit: ShortText
    """The sticky unit, hashed; "": each call was drawn by itself."""
    at: float
    """When it ended, in unix seconds."""
    code: ShortText
    """Of its error; "": it ended well."""
    execute_ms: Duration = 0.0
    total_ms: Duration = 0.0
    first_ms: Duration = 0.0
    """To the first chunk, of a stream; 0: it has none."""
    gap_ms: Duration = 0.0
    """The mean time between two chunks; 0: there are none."""
    gpu_ns: Rising = 0
    """What it is billed of whole GPUs."""
    cost: Annotated[float, Meta(ge=0)] = 0.0
    """The declared cost parameter's value; 0: none is declared."""
    body_bytes: Count = 0
    gpu_type: ShortText = ""
    node: ShortText = ""
    container: ShortText = ""
    nth_call: Count = 0
    """Of its container, from 1; 0: it is not known."""
    is_cold: bool = False
    start_ms: Duration = 0.0
    batch: ShortText = ""
    """Of calls that ran together, the same text; "": it ran alone."""
    batch_size: Count = 1
    is_degraded: bool = False
    """Whether a fallback ran it."""
    pair: ShortText = ""
    """Of two shadows of one input, the same text; "": it is no shadow."""
    differs: bool = False
    """Of a pair: whether its answer differs from the control's."""
    fields: Annotated[dict[ShortText, float], Meta(max_length=MOST_FIELDS)] = {}
    """Of custom guards, by name."""
    tokens: Count = 0
    is_running: bool = False
    """Whether it has not ended: it runs longer than the old version usually does, and is told of again at its end."""
    also_failed: bool = False
    """Whether the old version has failed on the same input too, so that it is nobody's fault."""
    is_again: bool = False
    """Whether its failure was told before, `is_asked`: nothing is counted anew. `also_failed` takes it back."""
    is_asked: bool = False
    """Whether it failed on an input that the old version is asked too, and has not answered yet."""
    code_ns: Rising = 0
    """Of a shadow that ran alone: what of `gpu_ns` its own code took, as its guest says; 0: it is not known."""
