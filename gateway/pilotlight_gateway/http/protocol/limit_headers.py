"""How a tenant stands, in the headers that clients of OpenAI's API read.

They are made of the RateLimit fields, which say the same: of two limits on the same thing the nearer one is told.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

POLICY = re.compile(r'"(?:function-)?(requests|tokens)";q=([0-9]+);w=([0-9]+)')
LEFT = re.compile(r'"(?:function-)?(requests|tokens)";r=([0-9]+)(?:;t=([0-9]+))?')
HeaderPairs = list[tuple[bytes, bytes]]


def openai_limits(headers: Iterable[tuple[bytes, bytes]]) -> HeaderPairs:
    """`x-ratelimit-*` of what RateLimit-Policy and RateLimit say."""
    told = {name.decode(): value.decode() for name, value in headers}
    limits: dict[str, int] = {}
    for what, quota, _ in POLICY.findall(told.get("ratelimit-policy", "")):
        limits[what] = min(int(quota), limits.get(what, int(quota)))
    standing: dict[str, tuple[int, int]] = {}
    for what, left, seconds in LEFT.findall(told.get("ratelimit", "")):
        rest = (int(left), int(seconds or 0))
        standing[what] = min(rest, standing.get(what, rest))
    found: HeaderPairs = []
    for what, limit in limits.items():
        found.append((f"x-ratelimit-limit-{what}".encode(), b"%d" % limit))
        if what in standing:
            remaining, reset_s = standing[what]
            found.append((f"x-ratelimit-remaining-{what}".encode(), b"%d" % remaining))
            found.append((f"x-ratelimit-reset-{what}".encode(), duration_text(reset_s).encode()))
    return found


def duration_text(seconds: int) -> str:
    """Seconds as OpenAI writes durations: `6m0s`, `1h2m3s`."""
    minutes, rest = divmod(seconds, 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours}h{minutes}m{rest}s"
    return f"{minutes}m{rest}s" if minutes else f"{rest}s"
