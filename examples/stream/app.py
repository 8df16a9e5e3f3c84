"""A generator: each value that it yields reaches the caller at once, as a server-sent event."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import TypedDict

from pilotlight import App, checkpoint, resume

app = App("stream")


class Word(TypedDict):
    """One chunk of the stream."""

    number: int
    word: str


@app.gpu_function(scaledown_window=10)
def words(text: str = "nothing burns while nobody calls", repeat: int = 1, pause_ms: float = 50.0) -> Iterator[Word]:
    """Speak `text`, `repeat` times, a numbered word at a time.

    When the caller goes away the generator is closed at its next `yield`, and `finally` runs.
    """
    number = 0
    try:
        for word in text.split() * repeat:
            number += 1
            yield Word(number=number, word=word)
            time.sleep(pause_ms / 1000)
    finally:
        print(f"spoke {number} words")


@app.gpu_function(scaledown_window=10, resumable=True)
def recital(text: str = "nothing burns while nobody calls", pause_ms: float = 50.0) -> Iterator[Word]:
    """Speak `text`, and go on in another container where this one is lost: the caller hears each word once."""
    spoken = resume(0)
    words = text.split()
    while spoken < len(words):
        yield Word(number=spoken + 1, word=words[spoken])
        spoken += 1
        checkpoint(spoken)
        time.sleep(pause_ms / 1000)
