"""Reports of executed batches, from which the controller learns throughput curves."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

from pilotlight_core.model.bounded import Count, Duration, ShortText
from pilotlight_core.model.messages.message import Message


class BatchesRan(msgspec.Struct, frozen=True, kw_only=True):
    """Successful batches of one size in one container since the last report."""

    container: ShortText
    version: ShortText
    slice: ShortText
    batch: Annotated[int, Meta(ge=1, le=1_000_000)]
    """Items per batch; for a function without batches its concurrent calls."""
    count: Count
    ms: Annotated[tuple[Duration, ...], Meta(max_length=256)]
    """Durations of the last of them, from the agent to the guest and back."""


class Ran(Message, frozen=True, kw_only=True):
    """The batches of a node, once a second if there were any. A lost one costs a few samples."""

    node: ShortText
    instance: ShortText
    batches: Annotated[tuple[BatchesRan, ...], Meta(max_length=4_096)]
