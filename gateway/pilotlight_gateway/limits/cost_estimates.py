"""Estimates what a call takes from earlier calls of its version: GPU-milliseconds, or tokens."""

from __future__ import annotations

from pilotlight_core.model.ewma import ewma
from pilotlight_gateway.limits.token_asks import TokenAsk

FIRST = 100.0
"""GPU-milliseconds of the first call of a function; its end corrects the count."""
SMOOTHING = 0.1
MOST_KNOWN = 10_000
"""Versions and functions; beyond it the one whose last call ended first is forgotten."""


class Estimates:
    """Smoothed costs and tokens of the versions that this gateway has seen.

    What is not known of a version is what was last known of its function (`tenant:app.function`): a new version begins
    with what the one before it took.
    """

    def __init__(self) -> None:
        self._costs: dict[str, float] = {}
        self._tokens: dict[str, float] = {}

    def of(self, version: str, function: str) -> float:
        return _usual(self._costs, version, function, FIRST)

    def learn(self, version: str, function: str, cost: float) -> None:
        _learn(self._costs, version, function, cost)

    def tokens_of(self, version: str, function: str) -> float:
        """0.0 before the first call that counted some has ended."""
        return _usual(self._tokens, version, function, 0.0)

    def tokens_asked(self, version: str, function: str, ask: TokenAsk | None) -> float:
        """What a call will take: what it asks for, and where it does not say as many as others took."""
        usual = self.tokens_of(version, function)
        if ask is None:
            return usual
        most = ask.most if ask.most is not None else max(0.0, usual - ask.prompt)
        return float(ask.prompt + most)

    def learn_tokens(self, version: str, function: str, tokens: float) -> None:
        _learn(self._tokens, version, function, tokens)


def _usual(known: dict[str, float], version: str, function: str, unknown: float) -> float:
    found = known.get(version)
    return known.get(function, unknown) if found is None else found


def _learn(known: dict[str, float], version: str, function: str, value: float) -> None:
    mean = ewma(known.pop(version, None), value, SMOOTHING)
    known.pop(function, None)
    while len(known) > MOST_KNOWN - 2:
        del known[next(iter(known))]
    known[version] = known[function] = mean  # at the end: `known` is in the order of last calls
