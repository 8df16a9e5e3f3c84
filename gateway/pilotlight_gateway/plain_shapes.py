"""What msgspec says of a wrong value, in the words of those who sent it."""

from __future__ import annotations

import re

from pilotlight_core.model.api import LINE_PATTERN
from pilotlight_core.model.ids import END, FUNCTION_PATTERN, NAME_PATTERN, REF_PATTERN
from pilotlight_core.model.webhooks import URL_PATTERN

MEANINGS = {
    NAME_PATTERN: "a name of letters, digits, - and _, at most 63, that does not begin with -",
    FUNCTION_PATTERN: "a function, such as app.function or tenant:app.function",
    REF_PATTERN: "a function, such as app.function, app.function@v7 or tenant:app.function",
    LINE_PATTERN: "one line of text without hidden characters",
    URL_PATTERN: "a URL, such as https://example.com/hook",
}
_PATTERN = re.compile(r"Expected `str` matching regex (['\"])(.*)\1")
_CHOICE = re.compile(r"\^([a-z.\[\]]*)\(([a-z|]+)\)")


def plain(sentence: str) -> str:
    """The sentence without regular expressions and marks of code."""
    found = _PATTERN.fullmatch(sentence)
    if found is None:
        return sentence.replace("`", "")
    pattern = found[2].replace("\\\\", "\\")
    if pattern in MEANINGS:
        return f"expected {MEANINGS[pattern]}"
    if choice := _CHOICE.fullmatch(pattern.removesuffix(END).removesuffix("$")):
        before = choice[1].replace("[.]", ".")
        return f"expected one of {', '.join(before + name for name in choice[2].split('|'))}"
    return f"expected text that matches {pattern.removesuffix(END)}"
