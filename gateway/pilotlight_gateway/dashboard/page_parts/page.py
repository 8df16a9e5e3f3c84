"""A page: what it answers, who may see it, and how it is made of what the API says."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any
from urllib.parse import quote, urlencode

from pilotlight_gateway.dashboard.page_parts.blocks import Block
from pilotlight_gateway.dashboard.page_parts.gateway_client import AnswerCache, ApiProblem
from pilotlight_gateway.dashboard.page_parts.viewers import Viewer

ABSENT = (404, 405)
"""What an older gateway says of a route that it does not have."""


class Section(StrEnum):
    """Where a page is in the navigation."""

    TENANT = "tenant"  # of the viewer's own tenant
    OPERATOR = "operator"  # of the whole platform


@dataclass(frozen=True, kw_only=True)
class PageView:
    """What a page is asked for: by whom, and with which words of its address."""

    viewer: Viewer
    answers: AnswerCache
    words: Mapping[str, str] = field(default_factory=dict)
    """Of the path, such as the id of a call."""
    query: Mapping[str, str] = field(default_factory=dict)
    at: float = 0.0
    """Unix seconds."""

    async def read(self, path: str, **query: object) -> Any:
        """The JSON of a route of the API, as the viewer is told it.

        Raises:
            ApiProblem: the API refuses.
        """
        return await self.answers.read(self.viewer.audience, asked_path(path, query), self.viewer.token)

    async def read_if_there(self, path: str, **query: object) -> Any:
        """The same; None: there is no such thing, or no such route in this release."""
        try:
            return await self.read(path, **query)
        except ApiProblem as problem:
            if problem.status in ABSENT:
                return None
            raise

    async def follow(self, path: str, **query: object) -> tuple[Any, ...]:
        """The last values of a route that sends them as they come.

        Raises:
            ApiProblem: the API refuses, or no streams are followed here.
        """
        if self.answers.followed is None:
            raise ApiProblem(0, "unreachable", "This dashboard follows no streams.")
        return await self.answers.followed.read(self.viewer.audience, asked_path(path, query), self.viewer.token)


Draw = Callable[[PageView], Awaitable[list[Block]]]


@dataclass(frozen=True, kw_only=True)
class Page:
    """One address, below /ui/. Words in braces are given to it; a page with one is in no navigation."""

    path: str
    title: str
    question: str
    """What it answers, for the navigation and its head."""
    section: Section
    draw: Draw
    scopes: tuple[str, ...] = ("read",)
    """A viewer needs one of them, as the routes that it reads do."""
    charts: bool = False
    """Whether it has charts over time."""
    live: bool = True
    """Whether it is drawn anew for those who look."""
    every_s: float = 1.0
    """How often, at most: what reads a stream of the bus or the ledger is drawn less often."""

    @property
    def listed(self) -> bool:
        return "{" not in self.path


@dataclass(frozen=True, kw_only=True)
class PageAction:
    """What a form of a page does: one request to the API, by POST to an address below /ui/do/."""

    path: str
    method: str
    api_path: str
    """Its words in braces are those of `path`."""
    back: str
    """Where the viewer goes then."""
    scopes: tuple[str, ...]
    body: Callable[[Mapping[str, str]], Any] = lambda _: None
    """Of the fields of the form."""


def filled(template: str, words: Mapping[str, str]) -> str:
    """A path with its words, each as one segment."""
    return template.format_map({name: quote(word, safe="") for name, word in words.items()})


def ui_link(path: str, **query: object) -> str:
    """An address of a page."""
    return asked_path(path, query)


def asked_path(path: str, query: Mapping[str, object]) -> str:
    """A path with what of a query says something."""
    asked = {name: str(value) for name, value in query.items() if value not in (None, "")}
    return f"{path}?{urlencode(asked)}" if asked else path
