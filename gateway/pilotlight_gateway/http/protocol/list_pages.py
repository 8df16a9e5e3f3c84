"""Lists as clients of OpenAI's API read them: page by page, behind the last id that they know."""

from __future__ import annotations

from typing import Any

from starlette.requests import Request

from pilotlight_core.model.errors import NotFound
from pilotlight_gateway.http.protocol.api_operations import Parameter, count_of

MOST_LISTED = 10_000
PAGE = (
    Parameter(name="after", about="The id of the last one that is known: what comes behind it."),
    Parameter(name="limit", about="At most so many.", schema={"type": "integer", "minimum": 1, "maximum": MOST_LISTED}),
)


def page_of(request: Request, found: list[dict[str, Any]]) -> dict[str, Any]:
    """The page of these documents, each with its `id`, that a request asks for.

    Raises:
        BadInput: `limit` is no such number. NotFound: nothing has the id of `after`.
    """
    limit = count_of(request, "limit", MOST_LISTED, MOST_LISTED)
    after = request.query_params.get("after")
    if after is not None:
        places = [number for number, one in enumerate(found) if one["id"] == after]
        if not places:
            raise NotFound("after: nothing in the list has this id.", field="after")
        found = found[places[0] + 1 :]
    page = found[:limit]
    return {
        "object": "list",
        "data": page,
        "has_more": len(found) > limit,
        "first_id": page[0]["id"] if page else None,
        "last_id": page[-1]["id"] if page else None,
    }
