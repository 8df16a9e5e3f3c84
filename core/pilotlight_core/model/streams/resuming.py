"""Streams that go on elsewhere: what a function may ask for, and the bounds of what is kept for it."""

from __future__ import annotations

from collections.abc import Collection

import msgspec
from msgspec import UNSET, UnsetType

MAX_STATE = 256 * 1024
"""Bytes of the msgpack of a checkpoint's state: it travels in one message, beside an input of as many."""
JOURNAL_BYTES = 2**20
"""Of what a gateway keeps of one stream for its next container: the state, and a mark for each event since."""
MARK_BYTES = 16
"""Of an event in the journal: enough to see whether a repeated event is the same."""
RESUME_S = 30.0
"""How long the stream of a resumable function waits for its client, unless the function says otherwise."""
MOST_RESUME_S = 600.0
MIGRATIONS = 2
"""Containers that a stream may lose and still go on, unless the function says otherwise."""
MOST_MIGRATIONS = 10


class Resumable(msgspec.Struct, frozen=True, kw_only=True):
    """How streams of a function go on after what they ran on, or what read them, is gone."""

    resume_s: float = RESUME_S
    """Seconds for which a stream whose client is gone goes on, and can be read again; 0: it is cancelled at once."""
    migrations: int = MIGRATIONS
    """How many times a stream goes on in another container."""


def resumable_fault(resumable: Resumable | UnsetType, modes: Collection[str]) -> str:
    """Why a function with methods of these modes cannot be resumable so; "": it can, or is not."""
    if resumable is UNSET:
        return ""
    if "generator" not in modes:
        return "resumable= is for generators: nothing here yields"
    if not 0 <= resumable.resume_s <= MOST_RESUME_S:
        return f"resume_s must be 0 to {MOST_RESUME_S:g} seconds, not {resumable.resume_s!r}"
    if not 0 <= resumable.migrations <= MOST_MIGRATIONS:
        return f"migrations must be 0 to {MOST_MIGRATIONS}, not {resumable.migrations!r}"
    return ""
