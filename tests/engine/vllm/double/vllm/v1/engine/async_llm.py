"""Of the double."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

from vllm import note


class EngineDeadError(Exception):
    """Known by its name."""


@dataclass
class Logprob:
    """Of one token."""

    logprob: float


class AsyncLLM:
    """The engine."""

    @classmethod
    def from_engine_args(cls, arguments: Any) -> AsyncLLM:
        """Made of what it notes."""
        note("start", **arguments.named)
        return cls()

    def __init__(self) -> None:
        self.vllm_config = SimpleNamespace(
            cache_config=SimpleNamespace(num_gpu_blocks=64, block_size=16),
            model_config=SimpleNamespace(max_model_len=512, get_vocab_size=lambda: 100),
        )

    async def generate(self, prompt: Any, sampling: Any, request_id: str, **others: Any) -> AsyncIterator[Any]:
        """Two tokens at a time."""
        ids = list(prompt["prompt_token_ids"])
        note("generate", id=request_id, prompt=prompt, **sampling.named, **others)
        first, count = ids[0], sampling.named["max_tokens"]
        if first == 13:
            raise ValueError("no luck")
        if first == 66:
            raise EngineDeadError("gone")
        try:
            while count:
                if first == 7 and count < sampling.named["max_tokens"]:
                    await asyncio.sleep(3600)
                new = []
                for _ in range(min(2, count)):
                    new.append(sum(ids) % 100)
                    ids.append(new[-1])
                    count -= 1
                stopped = next((token for token in new if token in sampling.named["stop_token_ids"]), None)
                if stopped is not None:
                    new, count = new[: new.index(stopped) + 1], 0
                reason = None if count else "length" if stopped is None else "stop"
                yield _output(new, reason, stopped, sampling.named["logprobs"])
        except asyncio.CancelledError:
            note("aborted", id=request_id)
            raise

    async def sleep(self, level: int) -> None:
        """Noted."""
        note("sleep", level=level)

    async def wake_up(self) -> None:
        """Noted."""
        note("wake")

    def shutdown(self) -> None:
        """Noted."""
        note("shutdown")


def _output(new: list[int], reason: str | None, stopped: int | None, count: int | None) -> Any:
    logprobs = None
    if count is not None:
        logprobs = [{token: Logprob(-0.5), **{token + n: Logprob(-1.0 - n) for n in range(1, count)}} for token in new]
    output = SimpleNamespace(token_ids=new, logprobs=logprobs, finish_reason=reason, stop_reason=stopped)
    return SimpleNamespace(outputs=[output], num_cached_tokens=2)
