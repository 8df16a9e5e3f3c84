"""What is known of a request that fails."""

from __future__ import annotations

from pilotlight.upstream.upstream_port import NotRun


def test_no_connection_is_no_word_about_capacity() -> None:
    """Only the API says that it has none."""
    told = NotRun("no connection")
    assert (told.is_refusal, told.retry_after_s, str(told)) == (False, None, "no connection")
