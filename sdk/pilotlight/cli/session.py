"""The configured platform, for commands."""

from __future__ import annotations

from collections.abc import AsyncIterator, Coroutine, Iterator
from typing import Any, TypeVar

from pilotlight.client import Client, default_client, face

T = TypeVar("T")


def client() -> Client:
    """The client of the configured platform."""
    return default_client()


def ask(work: Coroutine[Any, Any, T]) -> T:
    """The result of a coroutine of the client."""
    return face().run(work)


def each(source: AsyncIterator[T]) -> Iterator[T]:
    """The items of an async iterator of the client."""
    return face().iterate(source)
