"""Usage in quarantine, for operators."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from starlette.requests import Request
from starlette.responses import Response

from pilotlight_core.model.api.quarantine_api import QuarantineCount, QuarantinedItem, QuarantinePage
from pilotlight_core.model.ids import NAME_PATTERN, check_name
from pilotlight_gateway.http.protocol.api_operations import Operation, Parameter, count_of, json_answer
from pilotlight_gateway.ledger.ledger_reader import LedgerReader

PAGE = 50
PAGE_AT_MOST = 1_000
MOST_ID = 10**15


@dataclass(frozen=True, kw_only=True)
class QuarantineServices:
    """The ports of these endpoints."""

    ledger: LedgerReader


async def show_quarantine(request: Request, services: QuarantineServices) -> Response:
    """`GET /v1/usage/quarantine`."""
    asked = request.query_params
    node = check_name(asked["node"], "node") if "node" in asked else None
    limit = count_of(request, "limit", PAGE, PAGE_AT_MOST)
    before = count_of(request, "before", 0, MOST_ID) or None
    return json_answer(await asyncio.to_thread(_page, services.ledger, node, before, limit))


def _page(ledger: LedgerReader, node: str | None, before: int | None, limit: int) -> QuarantinePage:
    items = ledger.quarantine(node=node, before=before, limit=limit)
    counts = [count for count in ledger.quarantine_counts() if node in (None, count["node"])]
    return QuarantinePage(
        items=tuple(
            QuarantinedItem(id=item["id"], at=item["at"], node=item["node"], reason=item["reason"], text=item["text"])
            for item in items
        ),
        counts=tuple(
            QuarantineCount(node=count["node"], reason=count["reason"], events=count["events"]) for count in counts
        ),
    )


QUARANTINE = (
    Operation(
        method="GET", path="/v1/usage/quarantine", name="getQuarantine", endpoint=show_quarantine,
        about="Usage that nodes sent and that cannot be: it is on no bill. The last of each node, the newest first.",
        scopes=("operator",), answer=QuarantinePage, errors=("bad_input",),
        parameters=(
            Parameter(name="node", about="Only this one's.", schema={"type": "string", "pattern": NAME_PATTERN}),
            Parameter(
                name="limit", about="Items on a page.",
                schema={"type": "integer", "minimum": 1, "maximum": PAGE_AT_MOST},
            ),
            Parameter(
                name="before", about="Only older ones: the last `id` of the page before.",
                schema={"type": "integer", "minimum": 1, "maximum": MOST_ID},
            ),
        ),
    ),
)  # fmt: skip
