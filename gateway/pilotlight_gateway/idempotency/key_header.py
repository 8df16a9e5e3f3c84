"""Reads the request headers of idempotency."""

from __future__ import annotations

import re
from collections.abc import Iterable

from pilotlight_core.model.errors import BadInput
from pilotlight_gateway.idempotency.key_decision import HEADER

KEY = b"idempotency-key"
PREFER = b"prefer"
LONGEST_KEY = 255
LONGEST_WAIT = 300.0
BARE = re.compile(r"[\x21-\x7e]+")
QUOTED = re.compile(r'"((?:[\x20\x21\x23-\x5b\x5d-\x7e]|\\["\\])*)"')
WAIT = re.compile(rb"\s*wait\s*=\s*\"?(\d{1,6})\"?\s*(?:;.*)?", re.IGNORECASE | re.DOTALL)


def require_key(headers: Iterable[tuple[bytes, bytes]]) -> str:
    """The key of a request that has at least one.

    Raises:
        BadInput: `bad_request`, there are several, or as `read_key`.
    """
    first, *more = (value for name, value in headers if name == KEY)
    if more:
        raise BadInput(f"{HEADER}: it was sent {len(more) + 1} times; send it once.", code="bad_request", field=HEADER)
    return read_key(first)


def read_key(value: bytes) -> str:
    """The key: bare, as most clients send it, or quoted as in the IETF draft.

    Raises:
        BadInput: `bad_request`, it is empty, too long, or not visible ASCII.
    """
    text = value.decode("latin-1").strip()
    quoted = QUOTED.fullmatch(text)
    key = re.sub(r"\\(.)", r"\1", quoted[1]) if quoted else text
    if not key or len(key) > LONGEST_KEY or not (quoted or BARE.fullmatch(text)):
        raise BadInput(
            f"{HEADER}: expected 1 to {LONGEST_KEY} visible ASCII characters.", code="bad_request", field=HEADER
        )
    return key


def read_wait(value: bytes) -> float:
    """Seconds to wait for the first request (`Prefer: wait=30`, RFC 7240), at most 300."""
    if b"wait" not in value.lower():
        return 0.0
    for preference in value.split(b","):
        if found := WAIT.fullmatch(preference):
            return min(float(found[1]), LONGEST_WAIT)
    return 0.0
