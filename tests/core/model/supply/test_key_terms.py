"""When a key counts."""

from __future__ import annotations

import pytest

from pilotlight_core.model.supply.key_terms import KeyTerms

DAY = 86_400.0


@pytest.mark.parametrize(
    ("terms", "at", "said"),
    [
        (KeyTerms(), 0.0, ""),
        (KeyTerms(not_before=DAY, not_after=3 * DAY), DAY, ""),
        (KeyTerms(not_before=DAY), DAY - 1, "counts from 1970-01-02 00:00 UTC on"),
        (KeyTerms(not_after=DAY), DAY, "has expired on 1970-01-02 00:00 UTC"),
        (KeyTerms(revoked_at=DAY, reason="stolen"), 0.0, "was revoked on 1970-01-02 00:00 UTC: stolen"),
        (KeyTerms(not_after=1.0, revoked_at=DAY), DAY, "was revoked on 1970-01-02 00:00 UTC"),
    ],
)
def test_a_key_counts_within_its_terms_and_never_once_it_is_revoked(terms: KeyTerms, at: float, said: str) -> None:
    """A revoked one not even before that instant: whoever has it dates signatures back."""
    assert terms.fault(at) == said
