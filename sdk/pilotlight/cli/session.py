"""Requests of commands to the configured platform."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Coroutine, Iterator
from typing import Any, TypeVar

from stamina.instrumentation import set_on_retry_hooks

from pilotlight.client import Client, default_client, shared_portal

T = TypeVar("T")

set_on_retry_hooks(())  # the default ones import what servers log and count with


def client() -> Client:
    return default_client()


def ask(work: Coroutine[Any, Any, T]) -> T:
    return shared_portal().run(work)


def each(source: AsyncGenerator[T, None]) -> Iterator[T]:
    return shared_portal().iterate(source)
