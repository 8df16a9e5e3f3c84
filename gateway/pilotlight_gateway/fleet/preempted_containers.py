"""The containers whose nodes are taken away, as their credits say, each of which is repeated every second."""

from __future__ import annotations

from collections import OrderedDict

MOST = 4_096
"""Of those that were told last; a call in another one that is lost without a word counts as died."""


class PreemptedContainers:
    def __init__(self) -> None:
        self._known: OrderedDict[str, None] = OrderedDict()

    def note(self, container: str, *, is_so: bool) -> bool:
        """Take what a credit says of its container; whether that is news."""
        if not is_so:
            if not self._known or container not in self._known:
                return False
            del self._known[container]
            return True
        if is_new := container not in self._known:
            self._known[container] = None
            if len(self._known) > MOST:
                self._known.popitem(last=False)
        return is_new
