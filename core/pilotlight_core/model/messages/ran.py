"""What agents tell the controller of the work their containers did: what throughput curves are learnt from."""

from __future__ import annotations

import msgspec

from pilotlight_core.model.messages.agent_messages import Message


class BatchesRan(msgspec.Struct, frozen=True, kw_only=True):
    """Batches of one size that one container ended well since the last report."""

    container: str
    version: str
    slice: str
    batch: int
    """Items of a batch; of a function without batches its calls that ran at the same time."""
    count: int
    ms: tuple[float, ...]
    """How long the last of them took."""


class Ran(Message, frozen=True, kw_only=True):
    """Once a second, from a node where anything ran. A lost one is a few samples less."""

    node: str
    instance: str
    batches: tuple[BatchesRan, ...]
