"""The instants in providers' answers, as unix seconds."""

from __future__ import annotations

from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

from pilotlight_runtime.node.notices.notice_port import NoticesUnread

LATEST_S = 7 * 86_400.0
"""A deadline further ahead is no deadline of a machine that is taken away."""


def unix_of_iso(text: object, at: float) -> float:
    """The instant of a text such as 2026-11-26T08:22:00Z. Raises NoticesUnread."""
    try:
        return _bounded(datetime.fromisoformat(str(text)), at)
    except (ValueError, OverflowError, OSError):
        raise NoticesUnread(f"no time such as 2026-11-26T08:22:00Z: {text!r:.60}") from None


def unix_of_mail(text: object, at: float) -> float:
    """The instant of a text such as Thu, 26 Nov 2026 08:22:00 GMT. Raises NoticesUnread."""
    try:
        return _bounded(parsedate_to_datetime(str(text)), at)
    except (ValueError, TypeError, OverflowError, OSError):
        raise NoticesUnread(f"no time such as Thu, 26 Nov 2026 08:22:00 GMT: {text!r:.60}") from None


def _bounded(instant: datetime, at: float) -> float:
    seconds = (instant if instant.tzinfo is not None else instant.replace(tzinfo=UTC)).timestamp()
    if not 0.0 <= seconds <= at + LATEST_S:
        raise ValueError
    return seconds
