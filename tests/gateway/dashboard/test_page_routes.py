"""Which page is at a path."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from pilotlight_gateway.dashboard.page_routes import LONGEST_WORD, find_page


@dataclass(frozen=True)
class Place:
    path: str


PLACES = [Place("/ui/nodes"), Place("/ui/nodes/{node}"), Place("/ui/calls/{id}/logs")]


@pytest.mark.parametrize(
    ("path", "found"),
    [
        ("/ui/nodes", (PLACES[0], {})),
        ("/ui/nodes/", (PLACES[0], {})),
        ("/ui/nodes/n1", (PLACES[1], {"node": "n1"})),
        ("/ui/nodes/a%2Fb", (PLACES[1], {"node": "a/b"})),
        ("/ui/calls/c/logs", (PLACES[2], {"id": "c"})),
        ("/ui/calls//logs", None),
        ("/ui/nodes/%00", None),
        ("/ui/nodes/" + "x" * (LONGEST_WORD + 1), None),
        ("/ui/nodes/..", None),
        ("/ui/calls/%2E%2e/logs", None),
        ("/ui/nodes/%2e", None),
        ("/ui/none", None),
        ("/ui/nodes/n1/more", None),
    ],
)
def test_a_path_is_of_one_page(path: str, found: tuple[Place, dict[str, str]] | None) -> None:
    """Its words are decoded once, whole segments, and printable."""
    assert find_page(PLACES, path) == found
