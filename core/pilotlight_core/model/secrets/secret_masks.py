"""Hides the values of secrets in what functions print and raise.

A value is found as it is, each of its lines for itself, and as JSON, Python's `repr` and percent-encoding write it.
What encodes it otherwise, such as base64, is not found: a mask is against mistakes, not against the tenant's own code.

Looking for a value takes time linear in the text, whatever both are: functions choose them.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from urllib.parse import quote

from pilotlight_core.model.secrets.secret_values import hidden_lines

HIDDEN = "***"
"""In the place of a value, as in listings of variables that look like secrets."""
MOST_PATTERNS = 256
"""Of one container. Each is looked for in all that it prints."""
LEAST_BEGINNING = 4
"""Characters of a value that is cut off, which are hidden too."""


class SecretMask:
    """Hides the values of one container; without values it changes nothing."""

    def __init__(self, values: Iterable[str] = ()) -> None:
        """Raises ValueError: they have more lines than can be looked for."""
        patterns = {form.encode() for value in values for form in _forms(value)}
        if len(patterns) > MOST_PATTERNS:
            raise ValueError(
                f"its secrets have {len(patterns)} lines together that are hidden in logs, {MOST_PATTERNS} are the most"
            )
        self._patterns = sorted(patterns)
        self.longest = max(map(len, patterns), default=0)
        """Bytes; a text that is cut further behind loses no part of a value that begins before."""

    def hide(self, text: str) -> str:
        """The text with HIDDEN in the place of each value."""
        if not self._patterns:
            return text
        return self.hide_bytes(text.encode("utf-8", "surrogatepass")).decode("utf-8", "surrogatepass")

    def hide_bytes(self, data: bytes, most: int | None = None) -> bytes:
        """The first `most` bytes with HIDDEN in the place of each value, also of one that goes on behind them."""
        there = [pattern for pattern in self._patterns if pattern in data]
        if not there:  # as in most lines
            return data if most is None else data[:most]
        kept, end = bytearray(), 0
        for begin, behind in _spans(data, there):
            if most is not None and begin >= most:
                break
            kept += data[end:begin] + HIDDEN.encode()
            end = behind
        return bytes(kept + data[end:most]) if most is None or end < most else bytes(kept)

    def hide_cut(self, data: bytes) -> bytes:
        """As `hide_bytes`, for a text that may have ended within a value: its beginning is hidden too."""
        kept = self.hide_bytes(data)
        begins = [begin for pattern in self._patterns if (begin := _beginning(kept, pattern)) >= 0]
        return kept[: min(begins)] + HIDDEN.encode() if begins else kept


NO_MASK = SecretMask()


def _forms(value: str) -> Iterator[str]:
    """What is looked for of one value."""
    lines = hidden_lines(value)
    for line in lines:
        yield line
        yield json.dumps(line)[1:-1]
        yield json.dumps(line, ensure_ascii=False)[1:-1]
        yield repr(line)[1:-1]
    if len(lines) == 1:
        yield quote(lines[0], safe="")


def _spans(data: bytes, patterns: Iterable[bytes]) -> list[tuple[int, int]]:
    """Where values are, in order; those that touch or overlap are one."""
    found = sorted(span for pattern in patterns for span in _places(data, pattern))
    joined: list[tuple[int, int]] = []
    for begin, end in found:
        if joined and begin <= joined[-1][1]:
            joined[-1] = (joined[-1][0], max(end, joined[-1][1]))
        else:
            joined.append((begin, end))
    return joined


def _places(data: bytes, pattern: bytes) -> Iterator[tuple[int, int]]:
    begin = data.find(pattern)
    while begin >= 0:
        end = begin + len(pattern)
        yield begin, end
        begin = data.find(pattern, end)


def _beginning(data: bytes, pattern: bytes) -> int:
    """Where `data` ends with the beginning of a pattern; -1: it does not."""
    head = pattern[:LEAST_BEGINNING]
    begin = data.find(head, max(0, len(data) - len(pattern) + 1))
    while begin >= 0:
        if pattern.startswith(data[begin:]):
            return begin
        begin = data.find(head, begin + 1)
    return -1
