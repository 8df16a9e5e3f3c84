"""A call as a stream of server-sent events."""

from __future__ import annotations

import json
from collections.abc import Generator, Iterator
from dataclasses import dataclass
from typing import Any

import httpx

from tests.system.support.platform import Platform


@dataclass(frozen=True)
class Told:
    """One event."""

    name: str
    data: Any


def events_of(
    platform: Platform,
    ref: str,
    *,
    id: str | None = None,  # noqa: A002 - what the wire calls it
    method: str | None = None,
    **arguments: Any,
) -> Generator[Told]:
    """The events of a call, to its end; whoever leaves the loop hangs up."""
    body = {"input": arguments, "id": id, "method": method}
    path, headers = f"/v1/functions/{ref}/calls", {"Accept": "text/event-stream"}
    with platform.http.stream("POST", path, json=body, headers=headers) as answer:
        if answer.status_code != 200:
            raise AssertionError(answer.read().decode())
        yield from read_events(answer)


def read_events(answer: httpx.Response) -> Iterator[Told]:
    """The events of an answer."""
    name = ""
    for line in answer.iter_lines():
        if line.startswith("event:"):
            name = line.removeprefix("event:").strip()
        elif line.startswith("data:"):
            yield Told(name, json.loads(line.removeprefix("data:")))
