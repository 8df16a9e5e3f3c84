"""What may be the value of a secret, and which parts of it are hidden wherever they are printed."""

from __future__ import annotations

import re

LEAST_CHARACTERS = 8
"""Of a line that is hidden: shorter ones stand in texts by chance."""
MOST_VALUE_BYTES = 16 * 1024
MOST_LINES = 64
"""Of one value, that are hidden: each is looked for in all that its functions print."""
_LINE_ENDS = re.compile(r"[\r\n]+")


def hidden_lines(value: str) -> list[str]:
    """The lines of a value that are hidden, without the spaces around them."""
    lines = (line.strip() for line in _LINE_ENDS.split(value))
    return [line for line in lines if len(line) >= LEAST_CHARACTERS]


def value_fault(value: str) -> str:
    """Why this cannot be a secret's value, without repeating any of it; "": it can."""
    try:
        size = len(value.encode())
    except UnicodeEncodeError:
        return "it is no text in UTF-8; encode it, for instance with base64"
    if size > MOST_VALUE_BYTES:
        return f"it has {size} bytes, {MOST_VALUE_BYTES} are the most"
    if "\0" in value:
        return "it has a NUL character, which no environment variable can hold; encode it, for instance with base64"
    lines = hidden_lines(value)
    if not lines:
        return (
            f"it has no line of {LEAST_CHARACTERS} characters or more: shorter values could not be hidden in logs, "
            "since they stand there by chance too"
        )
    if len(lines) > MOST_LINES:
        return f"it has {len(lines)} lines, {MOST_LINES} are the most that are hidden in logs; encode it as one line"
    return ""


def without_line_end(value: str) -> str:
    """A value as it was read from a file or a pipe: one line loses its end, several stay byte for byte."""
    line = value.removesuffix("\n").removesuffix("\r")
    return value if "\n" in line or "\r" in line else line
