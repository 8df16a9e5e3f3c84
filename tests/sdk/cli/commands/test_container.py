"""How a container's state is shown."""

from __future__ import annotations

import pytest

from pilotlight.cli.commands.container import _state


@pytest.mark.parametrize(
    ("container", "shown"),
    [
        ({"state": "ready"}, "ready"),
        ({"state": "ready", "breaker": "closed", "version_breaker": "closed"}, "ready"),
        ({"state": "ready", "breaker": "half_open"}, "ready, breaker half open"),
        (
            {"state": "ready", "breaker": "open", "version_breaker": "open"},
            "ready, breaker open, version's breaker open",
        ),
    ],
)
def test_breakers_are_part_of_the_state(container: dict[str, str], shown: str) -> None:
    """A container that gets no calls does not look like one that nobody calls."""
    assert _state(container) == shown
