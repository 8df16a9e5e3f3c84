"""What a page reads, and addresses."""

from __future__ import annotations

import pytest

from pilotlight_gateway.dashboard.page_parts.gateway_client import ApiAnswer, ApiProblem
from pilotlight_gateway.dashboard.page_parts.page import PageView, filled, ui_link
from tests.gateway.dashboard.page_parts.test_viewers import viewer
from tests.gateway.dashboard.site import Site


async def test_a_page_reads_routes_as_its_viewer(site: Site) -> None:
    """With its words in the query; what is not asked for is left out."""
    site.api.answers["/v1/x"] = ApiAnswer(status=200, body=b"[1]")
    view = PageView(viewer=viewer("read"), answers=site.answers)
    assert await view.read("/v1/x", a="b&c", none="", nothing=None) == [1]
    assert site.api.asked == [("GET", "/v1/x?a=b%26c")]


async def test_what_a_release_does_not_have_is_nothing(site: Site) -> None:
    """Other refusals are refusals."""
    view = PageView(viewer=viewer("read"), answers=site.answers)
    site.api.answers["/v1/x"] = ApiAnswer(status=404, body=b"{}")
    assert await view.read_if_there("/v1/x") is None
    site.api.answers["/v1/y"] = ApiAnswer(status=403, body=b"{}")
    with pytest.raises(ApiProblem):
        await view.read_if_there("/v1/y")


def test_words_are_one_segment_of_a_path() -> None:
    """Whatever they are made of."""
    assert filled("/v1/nodes/{node}/drain", {"node": "a/../b?c"}) == "/v1/nodes/a%2F..%2Fb%3Fc/drain"
    assert ui_link("/ui/x", a=1, b="", c=None, d="e f") == "/ui/x?a=1&d=e+f"
    assert ui_link("/ui/x") == "/ui/x"
