"""Whose words an error has, and whether whoever called may read them."""

from __future__ import annotations

import pytest

from pilotlight_core.model.errors import ContainerDied, FunctionRaised, PilotlightError, Unavailable
from pilotlight_gateway.calls.call_sink import platforms_words
from tests.builders.calls import prepared_call


@pytest.mark.parametrize(
    ("error", "owner", "other"),
    [
        (FunctionRaised("said"), "", ""),
        (ContainerDied("said"), "said", ""),
        (Unavailable("said"), "said", "said"),
    ],
    ids=["a function", "about a function", "the platform"],
)
def test_words_are_for_who_may_read_them(error: PilotlightError, owner: str, other: str) -> None:
    """Of a request that was refused before it was a call nobody else's function is told."""
    assert platforms_words(error, prepared_call("a")) == platforms_words(error, None) == owner
    assert platforms_words(error, prepared_call("a", tenant="other")) == other
