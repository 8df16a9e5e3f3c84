"""Drawings of pages, kept for a moment for all who are told the same, with what changed since the one before."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import msgspec

from pilotlight_gateway.dashboard.all_pages import PAGES
from pilotlight_gateway.dashboard.page_parts.blocks import Block, Sentence
from pilotlight_gateway.dashboard.page_parts.gateway_client import AnswerCache, ApiProblem
from pilotlight_gateway.dashboard.page_parts.live_changes import changes_between
from pilotlight_gateway.dashboard.page_parts.page import Page, PageView
from pilotlight_gateway.dashboard.page_parts.viewers import Viewer
from pilotlight_gateway.dashboard.page_routes import find_page

KEPT_AT_MOST = 256
PROBLEM = "problem"
"""The id of the sentence that stands in the place of a page that cannot be shown."""


@dataclass(frozen=True, kw_only=True, eq=False)
class PageDrawing:
    """The blocks of a page at one instant."""

    blocks: tuple[Block, ...]
    status: int = 200
    _changes: dict[int, tuple[PageDrawing, bytes]] = field(default_factory=dict, repr=False)

    def changes_since(self, before: PageDrawing) -> bytes:
        """What has changed, as JSON; b"": nothing. Made once for all who saw the same before."""
        if before is self:
            return b""
        known = self._changes.get(id(before))
        if known is None or known[0] is not before:
            found = changes_between(before.blocks, self.blocks)
            if len(self._changes) >= 8:
                self._changes.clear()
            known = self._changes[id(before)] = (before, msgspec.json.encode(found) if found else b"")
        return known[1]


@dataclass(kw_only=True)
class _Kept:
    expires_at: float
    drawing: asyncio.Task[PageDrawing]


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
        self._clock = clock
        self._wall = wall
        self._kept: dict[tuple[Any, str], _Kept] = {}

    def __len__(self) -> int:
        return len(self._kept)

    def find(self, path: str) -> tuple[Page, dict[str, str]] | None:
        """The page at a path, and the words in it."""
        return find_page(self.pages, path)

    async def draw(
        self, viewer: Viewer, page: Page, words: dict[str, str], query: dict[str, str], topic: str
    ) -> PageDrawing:
        """A page as its viewer sees it now; `topic` is its address. What the API refuses is said in its words."""
        at, key = self._clock(), (viewer.audience, topic)
        kept = self._kept.get(key)
        if kept is None or at >= kept.expires_at:
            self._make_room(at)
            view = PageView(viewer=viewer, answers=self._answers, words=words, query=query, at=self._wall())
            task = asyncio.ensure_future(_drawn(page, view))
            kept = self._kept[key] = _Kept(expires_at=at + page.every_s, drawing=task)
        return await asyncio.shield(kept.drawing)

    def _make_room(self, at: float) -> None:
        self._kept = {key: one for key, one in self._kept.items() if at < one.expires_at or not one.drawing.done()}
        while len(self._kept) >= KEPT_AT_MOST:
            del self._kept[next(iter(self._kept))]


async def _drawn(page: Page, view: PageView) -> PageDrawing:
    if not view.viewer.may(*page.scopes):
        scope = " or ".join(page.scopes)
        return _problem(403, f"Your key may not see this page: it needs the scope {scope}.")
    try:
        return PageDrawing(blocks=tuple(await page.draw(view)))
    except ApiProblem as problem:
        return _problem(problem.status or 503, problem.detail)


def _problem(status: int, text: str) -> PageDrawing:
    return PageDrawing(blocks=(Sentence(id=PROBLEM, text=text, tone="bad"),), status=status)
