"""Suggestions for misspelt names."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice

ALIKE = 0.6
"""The least similarity, from 0 to 1, by difflib's ratio: twice the matching characters over both lengths."""
NAMES_AT_MOST = 200
"""Names compared: about 5 ms at worst, in a shared process."""
LONGEST = 128


def nearest(word: str, known: Iterable[str]) -> str | None:
    """The most similar of `known`, ignoring case; None if none is similar."""
    from difflib import get_close_matches  # here, since it is rarely needed

    by_lower = {name[:LONGEST].lower(): name for name in islice(known, NAMES_AT_MOST)}
    lower = word[:LONGEST].lower()
    if lower in by_lower:
        return by_lower[lower]
    near = get_close_matches(lower, by_lower, n=1, cutoff=ALIKE)
    return by_lower[near[0]] if near else None


def nearest_function(word: str, known: Iterable[str]) -> str | None:
    """The most similar of `known` (`app.function`, or `owner:app.function`).

    It prefers a function of the same app, then one of an app with a similar name, then the only function of that name.
    """
    apps: dict[str, dict[str, str]] = {}
    for ref in islice(known, NAMES_AT_MOST):
        app, _, function = ref.rpartition(".")
        apps.setdefault(app, {})[function] = ref
    app, _, function = word.rpartition(".")
    if (alike := app if app in apps else nearest(app, apps)) is not None:
        near = nearest(function, apps[alike])
        return apps[alike][near] if near is not None else None
    called_so = [functions[function] for functions in apps.values() if function in functions]
    return called_so[0] if len(called_so) == 1 else None


def as_sentence(text: str) -> str:
    return text if text.endswith("?") else f"{text}."


def did_you_mean(name: str | None) -> str:
    """A sentence to append to a refusal: ` Did you mean calls.echo?`; "" for None."""
    return f" Did you mean {name}?" if name else ""
