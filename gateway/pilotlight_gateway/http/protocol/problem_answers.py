"""Errors as answers, by the table of `core.model.errors`: as problem documents (RFC 9457) unless a dialect is named."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from typing import Any

import msgspec

from pilotlight_core.model.errors import PilotlightError
from pilotlight_gateway.http.protocol.error_dialects import SHAPES, Dialect

LONGEST_RETRY_AFTER = 120.0
"""Seconds; stock clients give up on a longer one."""
JITTER = 0.1
"""At most this part is added to the time, so that clients that were refused together do not return together."""
DEFAULT_RETRY_AFTER = 1.0
LONGEST_DETAIL = 2_000
KINDS = {401: "authentication_error", 403: "permission_error", 404: "not_found_error", 429: "rate_limit_error"}
"""The `error.type` that OpenAI's clients know; other 4xx are `invalid_request_error`, 5xx `server_error`."""

TOKEN_ERRORS = ("token_invalid", "token_expired")

Headers = list[tuple[bytes, bytes]]


class Problem(msgspec.Struct, frozen=True, kw_only=True):
    """The answer for an error."""

    status: int
    document: dict[str, Any]
    headers: Headers

    def encode(self) -> bytes:
        """The document's JSON."""
        return _encoder.encode(self.document)


_encoder = msgspec.json.Encoder(enc_hook=str)


def problem_of(
    error: PilotlightError,
    request_id: str,
    chance: Callable[[], float] = random.random,
    dialect: Dialect = Dialect.NATIVE,
) -> Problem:
    """The answer for `error`; `chance`, 0 to 1, is its jitter."""
    meaning, code = error.meaning, error.wire_code
    wait_s = retry_after(error)
    jittered_s = None if wait_s is None else wait_s * (1 + JITTER * chance())
    detail = error.detail if len(error.detail) <= LONGEST_DETAIL else error.detail[:LONGEST_DETAIL] + "…"
    document: dict[str, Any] = {
        "type": f"urn:pilotlight:error:{code}",
        "title": meaning.title,
        "status": meaning.status,
        "detail": detail,
        "code": code,
        "advice": meaning.advice,
        "request_id": request_id,
    }
    if jittered_s is not None:
        document["retry_after"] = jittered_s
    document |= {key: value for key, value in error.more.items() if key not in document and key != "allow"}
    document["error"] = {
        "message": detail,
        "type": KINDS.get(meaning.status, "invalid_request_error" if meaning.status < 500 else "server_error"),
        "param": error.more.get("field"),
        "code": code,
    }
    written = SHAPES[dialect]
    headers = [(b"content-type", written.media_type.encode()), *_headers(error, wait_s, jittered_s)]
    return Problem(status=meaning.status, document=written.shape(document), headers=headers)


def retry_after(error: PilotlightError) -> float | None:
    """Seconds that the caller should wait; None: waiting does not help."""
    if error.retry_after is None and not (error.meaning.retry and error.meaning.status in (429, 503)):
        return None
    wait_s = DEFAULT_RETRY_AFTER if error.retry_after is None else error.retry_after
    wait_s = max(wait_s, 0.0)
    return wait_s if error.wire_code in ("rate_limited", "budget_exhausted") else min(wait_s, LONGEST_RETRY_AFTER)


def _headers(error: PilotlightError, wait_s: float | None, jittered_s: float | None) -> Headers:
    headers = [
        (b"x-should-retry", b"true" if error.meaning.retry else b"false"),
        (b"cache-control", b"no-store"),
    ]
    if wait_s is not None and jittered_s is not None:
        # Whole seconds are never too early anyway; jitter must not make two of one.
        headers.append((b"retry-after", b"%d" % max(math.ceil(wait_s), math.floor(jittered_s))))
        headers.append((b"retry-after-ms", b"%d" % math.ceil(jittered_s * 1000)))
    if error.meaning.status == 401:
        # RFC 6750: clients get themselves another token by this.
        challenge = b', error="invalid_token"' if error.wire_code in TOKEN_ERRORS else b""
        headers.append((b"www-authenticate", b'Bearer realm="pilotlight"' + challenge))
    if "allow" in error.more:
        headers.append((b"allow", str(error.more["allow"]).encode()))
    return headers
