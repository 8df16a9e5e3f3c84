"""A double of vLLM 0.33, as far as `vllm_child` uses it. It is not vLLM: it shows that our side keeps its interface, as
read from that release's wheel, and nothing of what vLLM does. `pytest -m gpu` runs the real one where there is one.

A token is the sum of all before it, modulo 100. A prompt that begins with 13 fails, with 66 kills the engine, with 7
waits until it is aborted. What it was asked is written to the file that VLLM_DOUBLE_LOG names.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any


class SamplingParams:
    """Whatever it is given."""

    def __init__(self, **named: Any) -> None:
        self.named = named


def TokensPrompt(**named: Any) -> dict[str, Any]:  # noqa: N802 - vLLM's name, of a typed dictionary
    """A dictionary."""
    return dict(named)


def note(kind: str, **named: Any) -> None:
    """Add a line to the log."""
    with Path(os.environ["VLLM_DOUBLE_LOG"]).open("a") as file:
        file.write(json.dumps({"kind": kind, **named}, default=str) + "\n")
