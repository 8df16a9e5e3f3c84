"""Functions that are served as models: one that speaks, one that turns texts into vectors, and an engine."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pilotlight import App, Sim, count_units

app = App("served")
SHORT = 2.0


@app.gpu_function(serves="tests/parrot-1.5", scaledown_window=SHORT, forecast=False)
def tells(messages: list[dict[str, Any]], max_tokens: int = 100) -> Iterator[dict[str, Any]]:
    """Repeat the last message, word by word."""
    words = str(messages[-1]["content"]).split()
    for word in words[:max_tokens]:
        yield {"text": f"{word} ", "token_ids": [len(word)]}
    used = min(len(words), max_tokens)
    count_units(prompt_tokens=len(words), completion_tokens=used)
    usage = {"prompt_tokens": len(words), "completion_tokens": used, "cached_tokens": 0}
    yield {"text": "", "token_ids": [], "finish_reason": "length" if used < len(words) else "stop", "usage": usage}


chat = app.engine("chat", Sim(), serves="tests/nonsense", scaledown_window=SHORT, forecast=False)


@app.gpu_function(serves=["tests/lengths", "tests/lengths:small"], scaledown_window=SHORT, forecast=False)
def embeds(texts: list[str]) -> list[list[float]]:
    """How long each text is, and how many words it has."""
    return [[float(len(text)), float(len(text.split()))] for text in texts]
