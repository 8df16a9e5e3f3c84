"""When a public key counts: from one instant to another, unless it was revoked. Pure."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated

import msgspec
from msgspec import Meta

REASON_LENGTH = 200


class KeyTerms(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Unix seconds; 0: that says nothing."""

    not_before: float = 0.0
    not_after: float = 0.0
    revoked_at: float = 0.0
    reason: Annotated[str, Meta(max_length=REASON_LENGTH)] = ""
    """Why it was revoked, in people's words."""

    def fault(self, at: float) -> str:
        """Why the key does not count at the unix second `at`, as the rest of a sentence; "" if it does.

        What was revoked counts for nothing, whenever it signed: whoever has a stolen key dates a signature back.
        """
        if self.revoked_at:
            why = f": {self.reason}" if self.reason else ""
            return f"was revoked on {day_of(self.revoked_at)}{why}"
        if at < self.not_before:
            return f"counts from {day_of(self.not_before)} on"
        if self.not_after and at >= self.not_after:
            return f"has expired on {day_of(self.not_after)}"
        return ""


ALWAYS = KeyTerms()


def day_of(at: float) -> str:
    """An instant for a sentence, to the minute, in UTC."""
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M UTC")
