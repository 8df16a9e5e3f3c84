"""Makes room in the stream of usage, which refuses new messages when it is full.

Agents keep what is refused and send it again, so a full stream loses nothing, and stands still until something goes.
What goes is the oldest that is folded, once the ledger's database has it on its disk; never what is not folded yet. As
long as there is room everything stays, for a ledger that is restored from a copy.
"""

from __future__ import annotations

import asyncio

import structlog

from pilotlight_core.bus import Bus
from pilotlight_core.model.subjects import USAGE_STREAM
from pilotlight_gateway.ledger.ledger_store import Ledger

FULL = 0.75
"""The filled part of the stream from which on room is made."""
ROOMY = 0.5
"""The filled part that is left, if so much is folded."""

log = structlog.get_logger(__name__)


class UsageRoom:
    """The room in the stream of usage."""

    def __init__(self, bus: Bus, ledger: Ledger) -> None:
        self._bus = bus
        self._ledger = ledger
        self.filled = 0.0
        """The filled part of the stream, from 0.0 to 1.0, when it was last looked at."""

    async def make(self) -> int:
        """Remove the oldest folded messages if the stream is nearly full; their number.

        Raises:
            BusError, SQLAlchemyError.
        """
        stream = self._bus.jetstream
        self.filled = await stream.filled(USAGE_STREAM)
        if self.filled < FULL:
            return 0
        first, last = await stream.span(USAGE_STREAM)
        folded = await asyncio.to_thread(self._ledger.last_seq, USAGE_STREAM)
        below = first_kept(first, last, folded, self.filled)
        if below <= first:
            log.error("the stream of usage is full of what is not folded yet: agents keep theirs", folded=folded)
            return 0
        await asyncio.to_thread(self._ledger.settle)
        gone = await self._bus.purge_before(USAGE_STREAM, "usage.>", below)
        log.info("room is made in the stream of usage", messages=gone, below=below)
        return gone


def first_kept(first: int, last: int, folded: int, filled: float) -> int:
    """The first sequence to keep, so that `ROOMY` of the stream is filled, of messages that are alike in size.

    Of a stream from `first` to `last` that is `filled` (0.0 to 1.0); nothing behind `folded` goes. At most `first`:
    nothing can go.
    """
    if folded > last:  # another stream than what was folded
        return first
    goes = round((last - first + 1) * (1 - ROOMY / filled)) if filled else 0
    return min(first + max(goes, 1), folded + 1)
