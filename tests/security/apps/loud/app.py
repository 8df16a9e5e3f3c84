"""A function that prints without end, and one that says a word."""

from __future__ import annotations

from pilotlight import App, gpu_function

app = App("loud")


@gpu_function(app=app, timeout=60)
def flood(seconds: float) -> int:
    import time

    end, count = time.monotonic() + seconds, 0
    while time.monotonic() < end:
        print("x" * 500)
        count += 1
    return count


@gpu_function(app=app)
def say(word: str) -> str:
    print(word)
    return word
