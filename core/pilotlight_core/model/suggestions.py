"""What somebody may have meant who wrote a name that there is not."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice

ALIKE = 0.6
"""Of 1: twice what two words have in common, over what both are long."""
NAMES_AT_MOST = 200
"""That are compared: about 5 ms at worst, in a process that others share."""
LONGEST = 128
"""Characters of a word that are compared."""


def nearest(word: str, known: Iterable[str]) -> str | None:
    """The one of `known` that looks most like `word`; None if none does. Case does not matter."""
    from difflib import get_close_matches  # here, since few ever misspell

    by_lower = {name[:LONGEST].lower(): name for name in islice(known, NAMES_AT_MOST)}
    lower = word[:LONGEST].lower()
    if lower in by_lower:
        return by_lower[lower]
    near = get_close_matches(lower, by_lower, n=1, cutoff=ALIKE)
    return by_lower[near[0]] if near else None


def nearest_function(word: str, known: Iterable[str]) -> str | None:
    """The one of `known` (`app.function`, or `owner:app.function`) that `word` may have meant.

    A function of the app that was named comes first, then one of an app that is called much the same, then the only
    one of that name.
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
    """With a full stop, unless it ends in the question what was meant."""
    return text if text.endswith("?") else f"{text}."


def did_you_mean(name: str | None) -> str:
    """A sentence to go behind the one that refuses: ` Did you mean calls.echo?`; nothing for None."""
    return f" Did you mean {name}?" if name else ""
