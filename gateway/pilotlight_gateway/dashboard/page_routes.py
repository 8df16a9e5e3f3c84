"""Which page, or which action, is at a path. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol, TypeVar
from urllib.parse import unquote

LONGEST_WORD = 256
NOT_WORDS = ("", ".", "..")
"""In the API's addresses, where clients take the last two for steps to other routes."""


class Addressed(Protocol):
    @property
    def path(self) -> str: ...


A = TypeVar("A", bound=Addressed)


def find_page(pages: Iterable[A], path: str) -> tuple[A, dict[str, str]] | None:
    """What is at a path as it was sent, and the words that its own path has in braces; None: nothing is there."""
    given = path.rstrip("/").split("/")
    for page in pages:
        if (words := _words(page.path.split("/"), given)) is not None:
            return page, words
    return None


def _words(template: list[str], given: list[str]) -> dict[str, str] | None:
    if len(template) != len(given):
        return None
    words = {}
    for part, each in zip(template, given, strict=True):
        if part.startswith("{"):
            word = unquote(each)
            if word in NOT_WORDS or len(word) > LONGEST_WORD or not word.isprintable():
                return None
            words[part.strip("{}")] = word
        elif part != each:
            return None
    return words
