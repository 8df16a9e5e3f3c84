"""Instants in providers' answers."""

from __future__ import annotations

import pytest

from pilotlight_runtime.node.notices.notice_port import NoticesUnread
from pilotlight_runtime.node.notices.provider_times import unix_of_iso, unix_of_mail

NOW = 1_764_145_200.0


def test_both_forms_are_read() -> None:
    """With a zone or without, which is UTC then."""
    assert unix_of_iso("2025-11-26T08:20:00Z", NOW) == NOW
    assert unix_of_iso("2025-11-26T08:20:00", NOW) == NOW
    assert unix_of_mail("Wed, 26 Nov 2025 08:20:00 GMT", NOW) == NOW


@pytest.mark.parametrize("text", ["", None, 7, "soon", "9999-12-31T23:59:59Z", "0001-01-01T00:00:00Z"])
def test_what_is_none_or_cannot_be_is_said(text: object) -> None:
    """A deadline in a thousand years is none."""
    with pytest.raises(NoticesUnread):
        unix_of_iso(text, NOW)
    with pytest.raises(NoticesUnread):
        unix_of_mail(text, NOW)
