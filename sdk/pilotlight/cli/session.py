"""Requests of commands to the configured platform."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Coroutine, Iterator
from typing import Any, TypeVar

from pilotlight.client import Client, default_client, shared_portal

T = TypeVar("T")


def client() -> Client:
    return default_client()


def ask(work: Coroutine[Any, Any, T]) -> T:
    return shared_portal().run(work)


def each(source: AsyncGenerator[T, None]) -> Iterator[T]:
    return shared_portal().iterate(source)
