"""A container's output as log lines: cut into lines, capped per second, the dropped counted. Pure.

Reading never stops, so that a tenant's endless output blocks neither it nor others: bytes beyond the cap are counted
and dropped.
"""

from __future__ import annotations

from dataclasses import dataclass

from pilotlight_core.model.secrets.secret_masks import NO_MASK, SecretMask

MAX_LINE = 8 * 1024
"""Bytes of one line; the rest of it is dropped."""
CUT = " … (line cut at 8 KiB)"


class LineSplitter:
    """Cuts bytes into lines without the values that `mask` hides.

    At most MAX_LINE bytes wait for their line's end, and as many more as the longest value has: a value is whole before
    its line is cut.
    """

    def __init__(self, mask: SecretMask = NO_MASK) -> None:
        self.mask = mask
        self._partial = b""
        self._skipping = False

    def feed(self, data: bytes) -> list[str]:
        """The lines that `data` completes, without their ends."""
        if self._skipping:
            _, found, data = data.partition(b"\n")
            if not found:
                return []
            self._skipping = False
        *whole, rest = (self._partial + data).split(b"\n")
        lines = [self._text(line) for line in whole]
        self._partial = rest
        if len(rest) > MAX_LINE + self.mask.longest:
            lines.append(self._text(rest))
            self._partial, self._skipping = b"", True
        return lines

    def skip(self, data: bytes) -> int:
        """Drop `data` and the line that it leaves unfinished; returns how many lines ended in it."""
        self._partial, self._skipping = b"", not data.endswith(b"\n")
        return data.count(b"\n")

    def rest(self) -> list[str]:
        """What was written last, without an end: its writer may have been killed within a value."""
        partial, self._partial = self._partial, b""
        return [self._text(self.mask.hide_cut(partial))] if partial else []

    def _text(self, line: bytes) -> str:
        cut = len(line) > MAX_LINE
        return self.mask.hide_bytes(line, MAX_LINE).decode(errors="replace").rstrip("\r") + (CUT if cut else "")


@dataclass(frozen=True, kw_only=True)
class LogRateLimit:
    lines: int = 1_000
    bytes: int = 1_000_000


DEFAULT_CAP = LogRateLimit()


class LogRateLimiter:
    """Counts one container's lines and bytes per second, of both streams."""

    def __init__(self, cap: LogRateLimit) -> None:
        self._cap = cap
        self._since = float("-inf")
        self._lines = self._bytes = 0
        self._dropped_lines = self._dropped_bytes = 0

    def full(self, at: float) -> bool:
        self._turn(at)
        return self._lines >= self._cap.lines or self._bytes >= self._cap.bytes

    def admit(self, size: int, at: float) -> bool:
        """Whether a line of `size` bytes may pass; one that may not is counted as dropped."""
        if self.full(at):
            self.drop(1, size)
            return False
        self._lines += 1
        self._bytes += size
        return True

    def drop(self, lines: int, size: int) -> None:
        self._dropped_lines += lines
        self._dropped_bytes += size

    def report(self, at: float) -> str:
        """The sentence about dropped lines, at most once a second; "" if there are none."""
        self._turn(at)
        if not self._dropped_bytes or self.full(at):
            return ""
        return self.final()

    def final(self) -> str:
        """The same at once, for a container that has ended."""
        if not self._dropped_bytes:
            return ""
        lines, size = self._dropped_lines, self._dropped_bytes
        self._dropped_lines = self._dropped_bytes = 0
        limit = f"{self._cap.lines} lines or {self._cap.bytes / 1e6:g} MB per second"
        return f"{lines} lines ({size / 1e6:.1f} MB) were dropped: a container may log {limit}"

    def _turn(self, at: float) -> None:
        if at - self._since >= 1.0:
            self._since = at
            self._lines = self._bytes = 0
