"""Text from elsewhere as a terminal may show it: what would steer the terminal, or the eye, is shown escaped.

Function output, errors and reasons hold what callers and functions put there. Control characters can set a terminal's
title and clipboard or clear it; bidirectional ones and tags make text read as what it is not.
"""

from __future__ import annotations

import re
from collections.abc import Collection

from pilotlight_core.model.steering import CONTROLS, MISLEADING

_IN_TEXT = re.compile(f"[{CONTROLS}{MISLEADING}]")
_IN_LINE = re.compile(f"[\t\n{CONTROLS}{MISLEADING}]")
_IN_JSON = re.compile(f"[\x7f-\x9f{MISLEADING}]")
"""Lower controls are escaped in any JSON."""


def printable(text: str) -> str:
    """The text with `\\x1b` and the like in place of what steers; tabs and line feeds stay."""
    return _IN_TEXT.sub(_escape, text)


def printable_line(text: str) -> str:
    """As `printable`, on one line."""
    return _IN_LINE.sub(_escape, text)


def printable_json(text: str) -> str:
    """A JSON text of the same values: in JSON these characters stand in strings alone, where escapes mean the same."""
    return _IN_JSON.sub(_escape_json, text)


def _escape(found: re.Match[str]) -> str:
    number = ord(found[0])
    if found[0] in "\t\n":
        return "\\t" if found[0] == "\t" else "\\n"
    return f"\\x{number:02x}" if number < 0x100 else f"\\u{number:04x}" if number < 0x10000 else f"\\U{number:08x}"


def _escape_json(found: re.Match[str]) -> str:
    units = found[0].encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[at]:02x}{units[at + 1]:02x}" for at in range(0, len(units), 2))


def unheard_text(names: Collection[str]) -> str:
    """Gateways that did not answer: their names, or where these are not told how many there are."""
    if len(names) > 1 and len(set(names)) == 1:
        return f"{len(names)} gateways"
    return ", ".join(names)
