"""Advice on errors for people at a terminal; the platform's own is for programs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from pilotlight.definitions.errors import PilotlightError
from pilotlight_core.model.errors import CODES

AGAIN = "Run the command again."
VERSIONS = "The command line and the platform do not understand each other: upgrade the older one."
HERE = {
    "bad_input": "Correct what is named and run the command again.",
    "bad_request": VERSIONS,
    "unauthenticated": "Set PILOTLIGHT_API_KEY to a key ('pilotlight up' writes one for this machine), or log in.",
    "key_expired": "Set PILOTLIGHT_API_KEY to a new key: somebody with a valid one makes it, 'pilotlight key create'.",
    "token_invalid": "Log in again: 'pilotlight login'.",
    "token_expired": "Log in again: 'pilotlight login'.",
    "no_access": "Ask whoever operates the platform which groups have access: 'pilotlight issuer list'.",
    "issuer_unavailable": "Run the command again later; an API key (PILOTLIGHT_API_KEY) needs no issuer.",
    "forbidden": "Use a key that may do this: 'pilotlight key list' shows what each one may.",
    "not_found": "Check the name.",
    "method_not_allowed": VERSIONS,
    "not_acceptable": VERSIONS,
    "unsupported_media_type": VERSIONS,
    "too_large": "Give it less, or split it over several calls.",
    "slow_body": "Run it over a faster connection, or with a smaller file.",
    "deadline_exceeded": "Give it more time with --deadline.",
    "conflict": "See how it is now, and decide again.",
    "call_lost": "Run the command again: a live call dies with its gateway.",
    "events_gone": AGAIN,
    "preempted": "If it may run twice, run the command again; streams of resumable=True go on elsewhere by themselves.",
    "idempotency_key_in_use": "Wait until the first one is done, and run the command again.",
    "idempotency_key_reused": "Use another key for another call.",
    "answer_not_kept": "The call has run. To run it again, use another key.",
    "budget_exhausted": "Raise the budget, add credit if it is prepaid, or wait: see 'pilotlight billing budget list'.",
    "queue_full": AGAIN,
    "rate_limited": AGAIN,
    "internal": "Run the command again; report the request's id if it repeats.",
    "no_capacity": AGAIN,
    "misconfigured": "Tell whoever operates the platform; then run the command again.",
    "breaker_open": "See what it prints with 'pilotlight logs'; then run the command again.",
    "starting": AGAIN,
    "draining": AGAIN,
    "overloaded": AGAIN,
}
"""code -> advice, where it differs from that for a program."""
DEPLOYED = "'pilotlight app list' shows what is deployed."
SOON_S = 0.05
"""Shorter waits are not mentioned: typing takes longer."""


def advice(error: PilotlightError) -> str:
    """Return what to do about an error, and when."""
    if own := error.more.get("advice"):
        return str(own)
    meaning = error.meaning
    if meaning is not CODES[error.wire_code]:
        return meaning.advice  # an error of this side of the wire speaks for itself
    text, wait = HERE.get(error.wire_code, meaning.advice), error.retry_after or 0.0
    if text == AGAIN and wait >= SOON_S:
        return f"Run the command again in {wait:.1f} s."
    return text


@contextmanager
def advising(**texts: str) -> Iterator[None]:
    """Give the errors of a block other advice, by their codes."""
    try:
        yield
    except PilotlightError as error:
        if text := texts.get(error.wire_code):
            error.more["advice"] = text
        raise
