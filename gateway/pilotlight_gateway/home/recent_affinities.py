"""What an engine's container likely has in its caches: adapters and beginnings of prompts, by the calls it was given.

The home remembers what it granted; it believes no word of a guest.
"""

from __future__ import annotations

from collections import OrderedDict

from pilotlight_core.model.messages.call_affinity import CallAffinity

PREFIXES_AT_MOST = 4_096
"""Beginnings of prompts that are remembered of one container."""
ADAPTERS_AT_MOST = 64


class RecentAffinities:
    """Of one container; what was used last stays longest."""

    __slots__ = ("_adapters", "_prefixes")

    def __init__(self) -> None:
        self._prefixes: OrderedDict[int, None] = OrderedDict()
        self._adapters: OrderedDict[str, None] = OrderedDict()

    def note(self, affinity: CallAffinity) -> None:
        """The container is given a call."""
        for digest in affinity.prefix:
            self._prefixes[digest] = None
            self._prefixes.move_to_end(digest)
        while len(self._prefixes) > PREFIXES_AT_MOST:
            self._prefixes.popitem(last=False)
        if affinity.adapter:
            self._adapters[affinity.adapter] = None
            self._adapters.move_to_end(affinity.adapter)
            if len(self._adapters) > ADAPTERS_AT_MOST:
                self._adapters.popitem(last=False)

    def worth(self, affinity: CallAffinity) -> tuple[bool, int]:
        """Whether it had the adapter that the call wants, and how many blocks of its prompt; larger is better."""
        blocks = 0
        for digest in affinity.prefix:
            if digest not in self._prefixes:
                break
            blocks += 1
        return bool(affinity.adapter) and affinity.adapter in self._adapters, blocks
