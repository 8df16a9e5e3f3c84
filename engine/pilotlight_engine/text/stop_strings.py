"""Finds where an answer ends: at one of several texts, also if that comes in pieces."""

from __future__ import annotations

from collections.abc import Sequence


class StopStrings:
    """Passes text on as long as no stop can begin in it. A stop itself is not passed on, nor what comes behind."""

    def __init__(self, stops: Sequence[str]) -> None:
        self._stops = tuple(stop for stop in stops if stop)
        self._kept = ""
        """The end of the text so far, if a stop may begin there."""
        self.has_stopped = False

    def add(self, text: str) -> str:
        """The text that may be passed on now."""
        if not self._stops or self.has_stopped:
            return "" if self.has_stopped else text
        whole = self._kept + text
        found = [place for stop in self._stops if (place := whole.find(stop)) >= 0]
        if found:
            self.has_stopped, self._kept = True, ""
            return whole[: min(found)]
        kept = max(_overlap(whole, stop) for stop in self._stops)
        self._kept = whole[len(whole) - kept :]
        return whole[: len(whole) - kept]

    def flush(self) -> str:
        """What was kept, at the end of the answer."""
        kept, self._kept = self._kept, ""
        return kept


def _overlap(text: str, stop: str) -> int:
    """How many characters at the end of `text` are the beginning of `stop`."""
    for length in range(min(len(text), len(stop) - 1), 0, -1):
        if text.endswith(stop[:length]):
            return length
    return 0
