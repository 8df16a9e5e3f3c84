"""Drawings of pages, kept for a moment for all who are told the same, with what changed since the one before."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import count

import msgspec
import structlog

from pilotlight_gateway.dashboard.all_pages import PAGES
from pilotlight_gateway.dashboard.page_parts.blocks import Block, Sentence
from pilotlight_gateway.dashboard.page_parts.gateway_client import UNKNOWN_SESSION, AnswerCache, ApiProblem
from pilotlight_gateway.dashboard.page_parts.live_changes import changes_between
from pilotlight_gateway.dashboard.page_parts.page import Page, PageView
from pilotlight_gateway.dashboard.page_parts.shared_work import SharedWork, WorkResult
from pilotlight_gateway.dashboard.page_parts.viewers import Viewer
from pilotlight_gateway.dashboard.page_routes import find_page

KEPT_AT_MOST = 256
PROBLEM = "problem"
"""The id of the sentence that stands in the place of a page that cannot be shown."""

log = structlog.get_logger(__name__)


@dataclass(frozen=True, kw_only=True, eq=False)
class PageDrawing:
    """The blocks of a page at one instant."""

    blocks: tuple[Block, ...]
    status: int = 200
    number: int = field(default_factory=count().__next__)
    """No other one's."""
    _changes: dict[int, bytes] = field(default_factory=dict, repr=False)
    """By the number of the drawing before: which is not held by this, or all would be."""

    def changes_since(self, before: PageDrawing) -> bytes:
        """What has changed, as JSON; b"": nothing. Made once for all who saw the same before."""
        if before is self:
            return b""
        if before.number not in self._changes:
            found = changes_between(before.blocks, self.blocks)
            self._changes[before.number] = msgspec.json.encode(found) if found else b""
        return self._changes[before.number]


class PageDrawings:
    """Draws. `clock` is monotonic seconds, `wall` unix ones."""

    def __init__(
        self,
        answers: AnswerCache,
        pages: tuple[Page, ...] = PAGES,
        *,
        clock: Callable[[], float] = time.monotonic,
        wall: Callable[[], float] = time.time,
    ) -> None:
        self._answers = answers
        self.pages = pages
        self._wall = wall
        self._work = SharedWork[PageDrawing](at_most=KEPT_AT_MOST, clock=clock)

    def __len__(self) -> int:
        return len(self._work)

    def find(self, path: str) -> tuple[Page, dict[str, str]] | None:
        """The page at a path, and the words in it."""
        return find_page(self.pages, path)

    async def draw(
        self, viewer: Viewer, page: Page, words: dict[str, str], query: dict[str, str], topic: str
    ) -> PageDrawing:
        """A page as its viewer sees it now; `topic` is its address. What the API refuses is said in its words."""

        async def work() -> WorkResult[PageDrawing]:
            view = PageView(viewer=viewer, answers=self._answers, words=words, query=query, at=self._wall())
            drawing = await _drawn(page, view)
            # That the session of whoever asked has ended is nobody else's to see.
            return WorkResult(drawing, 0.0 if drawing.status == UNKNOWN_SESSION else page.every_s)

        return await self._work.get((viewer.audience, topic), work)


async def _drawn(page: Page, view: PageView) -> PageDrawing:
    if not view.viewer.may(*page.scopes):
        scope = " or ".join(page.scopes)
        return _problem(403, f"Your key may not see this page: it needs the scope {scope}.")
    try:
        return PageDrawing(blocks=tuple(await page.draw(view)))
    except ApiProblem as problem:
        return _problem(problem.status or 503, problem.detail)
    except Exception:
        log.exception("a page could not be drawn", page=page.path)
        return _problem(500, "This page could not be drawn. The dashboard's log says why.")


def _problem(status: int, text: str) -> PageDrawing:
    return PageDrawing(blocks=(Sentence(id=PROBLEM, text=text, tone="bad"),), status=status)
