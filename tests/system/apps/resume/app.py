"""Streams that go on elsewhere: what they yield follows from their state alone."""

from __future__ import annotations

import time
from collections.abc import Iterator

from pilotlight import App, checkpoint, resume

app = App("resume")
MARK = "/tmp/tells"
EVERY = 7


@app.gpu_function(resumable=True, max_containers=2, scaledown_window=20.0, forecast=False)
def tells(words: int, pause: float = 0.0) -> Iterator[str]:
    """Yield so many words, each from the one before, and save the state behind every seventh."""
    with open(MARK, "w"):  # noqa: PTH123 - short
        pass
    number, last = resume((0, 1))
    print(f"from {number}")
    while number < words:
        number, last = number + 1, last * 48271 % 2147483647
        time.sleep(pause)
        yield f"{last:x} "
        if number % EVERY == 0:
            checkpoint((number, last))


@app.gpu_function(max_containers=2, scaledown_window=20.0, forecast=False)
def forgets(words: int, pause: float = 0.0) -> Iterator[str]:
    """The same, of a function that cannot go on elsewhere."""
    with open(MARK, "w"):  # noqa: PTH123
        pass
    for number in range(words):
        time.sleep(pause)
        yield f"{number} "
