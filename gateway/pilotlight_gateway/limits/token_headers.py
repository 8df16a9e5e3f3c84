"""How a call's tenant stands, in the headers that OpenAI's clients know: of requests and of tokens.

    x-ratelimit-limit-tokens: 40000        what may be used at once, after a pause
    x-ratelimit-remaining-tokens: 38120
    x-ratelimit-reset-tokens: 2.82s        when all of it is there again, if nothing is used meanwhile

They say what `RateLimit` says (`LimitAccount.standing`); of a limit of all calls and one of the function the one with
less left.
"""

from __future__ import annotations

import re

from pilotlight_gateway.limits.gcra import PS, Rate
from pilotlight_gateway.limits.limit_policy import LimitPolicy

ITEM = re.compile(r'"([a-z-]+)";r=(\d+)(?:;t=(\d+))?')


def openai_headers(policy: LimitPolicy, standing: str) -> list[tuple[bytes, bytes]]:
    """Those of a call under a policy, where its limits stand so."""
    known = {name: (int(left), int(more or 0)) for name, left, more in ITEM.findall(standing)}
    headers: list[tuple[bytes, bytes]] = []
    for what, place in (("requests", 0), ("tokens", 3)):
        found = _tightest(policy, place, known)
        if found is not None:
            rate, left, more_s = found
            most = rate.room // rate.interval
            for word, value in (("limit", str(most)), ("remaining", str(left)), ("reset", _reset(rate, left, more_s))):
                headers.append((f"x-ratelimit-{word}-{what}".encode(), value.encode()))
    return headers


def _tightest(policy: LimitPolicy, place: int, known: dict[str, tuple[int, int]]) -> tuple[Rate, int, int] | None:
    """The rate with the least left, how much that is, and in how many seconds there is more of it."""
    found: tuple[Rate, int, int] | None = None
    for scope in policy.scopes:
        rate, name = (scope.tokens if place else scope.requests), scope.names[place]
        if rate is not None and name in known:
            left, more_s = known[name]
            if found is None or left < found[1]:
                found = rate, left, more_s
    return found


def _reset(rate: Rate, left: int, more_s: int) -> str:
    """In how long the bucket is full: `more_s` is until the next unit, behind what is owed."""
    missing = rate.room // rate.interval - left
    if left or not more_s:
        return duration(missing * rate.interval)
    return duration(max(more_s * PS + (missing - 1) * rate.interval, missing * rate.interval))


def duration(length: int) -> str:
    """Picoseconds as OpenAI writes them: `6m0s`, `1s`, `120ms`; rounded up."""
    ms = -(-length * 1000 // PS)
    if ms < 1000:
        return f"{ms}ms"
    seconds, rest = divmod(ms, 1000)
    minutes, seconds = divmod(seconds, 60)
    hours, minutes = divmod(minutes, 60)
    text = f"{hours}h" if hours else ""
    text += f"{minutes}m" if hours or minutes else ""
    text += f"{seconds}s" if not rest else f"{seconds}.{rest:03d}".rstrip("0") + "s"
    return text
