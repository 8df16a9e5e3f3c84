"""The base of all messages: tagged structs, msgpack on the wire.

Times on the wire are *remaining* or *elapsed* milliseconds (nanoseconds where metered), never instants: each process
adds them to its own monotonic clock on arrival. Every credit, grant and command has the epoch of its sender's lease; an
agent keeps the highest it has seen and refuses lower ones.

A node may be hostile: what it sends has the bounds of `bounded`.
"""

from __future__ import annotations

import msgspec


class Message(msgspec.Struct, frozen=True, kw_only=True, tag=True, omit_defaults=True):
    """The base of all messages: frozen, keyword-only, tagged by class name; unknown fields are ignored."""
