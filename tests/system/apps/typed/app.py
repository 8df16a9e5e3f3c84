"""Functions whose parameters and answers have no JSON type of their own."""

from __future__ import annotations

import datetime
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal

from pilotlight import App

app = App("typed")
SHORT = 2.0


@dataclass
class Match:
    """What is found, and how well it fits."""

    text: str
    score: float


@app.gpu_function(scaledown_window=SHORT, forecast=False)
def later(at: datetime.datetime, by: datetime.timedelta, day: datetime.date) -> datetime.datetime:
    """The instant after a time."""
    return at + by


@app.gpu_function(scaledown_window=SHORT, forecast=False)
def short(id: uuid.UUID, price: Decimal, data: bytes) -> str:  # noqa: A002
    """The beginning of a name."""
    return f"{id.hex[:4]} {price.normalize()} {data.decode()}"


@app.gpu_function(scaledown_window=SHORT, forecast=False)
def best(matches: list[Match]) -> Match:
    """The best match."""
    return max(matches, key=lambda match: match.score)


@app.gpu_function(scaledown_window=SHORT, forecast=False)
def each(texts: list[str]) -> Iterator[Match]:
    """A match for each text."""
    for text in texts:
        yield Match(text, 1.0)
