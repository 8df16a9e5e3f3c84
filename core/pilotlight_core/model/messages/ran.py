"""Reports of executed batches, from which the controller learns throughput curves."""

from __future__ import annotations

import msgspec

from pilotlight_core.model.messages.agent_messages import Message


class BatchesRan(msgspec.Struct, frozen=True, kw_only=True):
    """Successful batches of one size in one container since the last report."""

    container: str
    version: str
    slice: str
    batch: int
    """Items per batch; for a function without batches its concurrent calls."""
    count: int
    ms: tuple[float, ...]
    """Durations of the last of them."""


class Ran(Message, frozen=True, kw_only=True):
    """The batches of a node, once a second if there were any. A lost one costs a few samples."""

    node: str
    instance: str
    batches: tuple[BatchesRan, ...]
