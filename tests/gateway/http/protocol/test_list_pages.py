"""Pages of lists."""

from __future__ import annotations

from typing import Any

import pytest
from starlette.requests import Request

from pilotlight_core.model.errors import BadInput, NotFound
from pilotlight_gateway.http.protocol.list_pages import page_of

FOUND: list[dict[str, Any]] = [{"id": name} for name in "abcde"]


def asked(query: str) -> Request:
    return Request({"type": "http", "query_string": query.encode(), "headers": []})


@pytest.mark.parametrize(
    ("query", "ids", "more"),
    [("", "abcde", False), ("limit=2", "ab", True), ("limit=2&after=b", "cd", True), ("after=e", "", False)],
)
def test_a_page_follows_what_is_known(query: str, ids: str, more: bool) -> None:
    """Until there is no more."""
    page = page_of(asked(query), FOUND)
    assert "".join(one["id"] for one in page["data"]) == ids
    assert page["has_more"] is more
    assert (page["first_id"], page["last_id"]) == ((ids[0], ids[-1]) if ids else (None, None))


@pytest.mark.parametrize("query", ["after=x", "limit=0", "limit=many"])
def test_no_page(query: str) -> None:
    """The parameter is named."""
    with pytest.raises((BadInput, NotFound)) as refused:
        page_of(asked(query), FOUND)
    assert refused.value.more["field"] == query.partition("=")[0]
