"""Two tenants share a language model: how its tokens are divided, and what a flood of long prompts costs the other.

The model is a small Llama with random weights, which the torch engine runs on this machine's processors, lent to both.

    shares   both keep more calls open than the model runs at once, one prompts of 8,192 tokens, one of 512. Counted
             are the tokens that the model computed for each, prompts and answers. `share_error` is by how
             much a tenant's part differs from that of its weight, as a part of the latter; the worse of 1:1 and 2:1
    first    one tenant asks now and then, alone, and beside the other one's flood: `ttft_ratio` is the p99 of its times
             to the first token beside the flood over that of those without. They take turns
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import random
import tempfile
import time
from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx

from benchmarks import report
from tests.engine.text.small_tokenizer import small_tokenizer
from tests.engine.transformer.tiny_models import save_model
from tests.system.support.platform import Platform, make_tenant, platform

LONG, SHORT, ASKED = 8192, 512, 256
"""Tokens of prompts: of the flood, of the other one's load, of whoever asks now and then."""
ANSWER = 16
FLOOD, LOAD = 24, 24
"""Calls that a tenant keeps open."""
PAUSE_S = 0.25
"""Between two questions, on average."""
SOURCE = """\
from pilotlight import App, Torch

app = App("fair")
chat = app.engine("chat", Torch("small", max_sequence=9000, max_sequences=16, max_tokens_per_step=512), gpu="cpu",
                  memory="4GiB", cpu=1, max_containers=1, min_containers=1)
"""
PATH = "/v1/functions/default:fair.chat/calls"


def main() -> None:
    """Run, print, finish."""
    options = report.parsed(report.arguments("token_fairness", __doc__ or ""))
    seconds, questions, rounds = (10.0, 20, 1) if options.quick else (60.0, 100, 3)
    with tempfile.TemporaryDirectory() as folder, platform(Path(folder), "--blanks", "1") as running:
        keys = _prepared(running, Path(folder))
        errors = {}
        for weight in (1, 2):
            running.cli("tenant", "set", "quick", "--weight", str(weight))
            errors[weight] = asyncio.run(_shares(running, keys, weight, seconds))
        running.cli("tenant", "set", "quick", "--weight", "1")
        alone, beside = asyncio.run(_first(running, keys, questions, rounds))
    rows: list[tuple[Any, ...]] = [(f"{weight} : 1", *found) for weight, found in errors.items()]
    report.table("shares", ("weights", "tokens/s of short prompts", "of long ones", "error"), rows)
    times = [(name, report.median(found), report.percentile(found, 99)) for name, found in
             (("alone", alone), ("beside a flood", beside))]  # fmt: skip
    report.table("time to the first token", ("asked", "p50 ms", "p99 ms"), times)
    report.finish(
        "token_fairness",
        {
            "share_error": max(found[2] for found in errors.values()),
            "ttft_ratio": report.percentile(beside, 99) / report.percentile(alone, 99),
            "ttft_alone_p99_ms": report.percentile(alone, 99),
            "ttft_beside_p99_ms": report.percentile(beside, 99),
        },
    )


def _prepared(running: Platform, folder: Path) -> dict[str, str]:
    """Push a model, deploy its function and lend it to two tenants; returns a key of each."""
    model = save_model("llama", folder / "small", vocab_size=300, max_position_embeddings=9000)
    small_tokenizer(model)
    running.cli("weights", "push", "small", str(model))
    (folder / "app.py").write_text(SOURCE)
    running.deploy(folder / "app.py")
    keys = {name: make_tenant(running, name) for name in ("quick", "flood")}
    for name in keys:
        running.cli("app", "share", "fair", name, "chat")
    return keys


async def _shares(running: Platform, keys: dict[str, str], weight: int, seconds: float) -> tuple[float, float, float]:
    """Tokens a second of both, and how far they are from their weights."""
    done: Counter[str] = Counter()
    async with (
        _open(running, keys["quick"]) as quick,
        _open(running, keys["flood"]) as flood,
        asyncio.TaskGroup() as group,
    ):
        load = [
            *(group.create_task(_repeat(quick, SHORT, "quick", n, done)) for n in range(LOAD)),
            *(group.create_task(_repeat(flood, LONG, "flood", n, done)) for n in range(FLOOD)),
        ]
        await asyncio.sleep(seconds / 5)
        before, began = done.copy(), time.perf_counter()
        await asyncio.sleep(seconds)
        took, counted = time.perf_counter() - began, done - before
        for each in load:
            each.cancel()
    both = counted.total()
    parts = {"quick": weight / (weight + 1), "flood": 1 / (weight + 1)}
    error = max(abs(counted[name] / both / part - 1.0) for name, part in parts.items())
    return counted["quick"] / took, counted["flood"] / took, error


async def _first(
    running: Platform, keys: dict[str, str], questions: int, rounds: int
) -> tuple[list[float], list[float]]:
    """Milliseconds to the first token, alone and beside the flood, in turns."""
    alone, beside = list[float](), list[float]()
    async with _open(running, keys["quick"]) as quick, _open(running, keys["flood"]) as flood:
        for turn in range(rounds):
            alone += await _ask(quick, questions, turn)
            async with asyncio.TaskGroup() as group:
                load = [group.create_task(_repeat(flood, LONG, "flood", n, Counter())) for n in range(FLOOD)]
                await asyncio.sleep(5.0)
                beside += await _ask(quick, questions, turn)
                for each in load:
                    each.cancel()
            await asyncio.sleep(2.0)
    return alone, beside


async def _ask(http: httpx.AsyncClient, questions: int, seed: int) -> list[float]:
    """Ask at random instants, each question when it is its time, whatever became of those before."""
    chance, found = random.Random(seed), list[float]()

    async def ask(number: int) -> None:
        began = time.perf_counter()
        async for _ in _generated(http, ASKED, f"ask {seed} {number}"):
            found.append((time.perf_counter() - began) * 1000.0)
            break

    async with asyncio.TaskGroup() as group:
        for number in range(questions):
            group.create_task(ask(number))
            await asyncio.sleep(chance.expovariate(1 / PAUSE_S))
    return found


async def _repeat(http: httpx.AsyncClient, prompt: int, name: str, number: int, done: Counter[str]) -> None:
    """Call without a pause. A prompt counts as its answer begins, and each token of the answer as it comes."""
    for turn in range(10**9):
        first = True
        async for chunk in _generated(http, prompt, f"{name} {number} {turn} {time.time()}"):
            done[name] += len(chunk["token_ids"]) + (prompt if first else 0)
            first = False


async def _generated(http: httpx.AsyncClient, prompt: int, seed: str) -> AsyncIterator[dict[str, Any]]:
    """The chunks of an answer to a prompt of its own, whose beginning is nowhere in a cache."""
    chance = random.Random(seed)
    body = {
        "method": "generate",
        "input": {"prompt_ids": [chance.randrange(1, 256) for _ in range(prompt)], "max_tokens": ANSWER,
                  "ignore_eos": True},
    }  # fmt: skip
    async with http.stream("POST", PATH, json=body) as answer:
        if answer.status_code != 200:
            await answer.aread()
            raise RuntimeError(f"{answer.status_code} {answer.text}")
        event = ""
        async for line in answer.aiter_lines():
            if line.startswith("event: "):
                event = line.removeprefix("event: ")
            elif line.startswith("data: ") and event == "chunk":
                chunk: dict[str, Any] = json.loads(line.removeprefix("data: "))["value"]
                yield chunk
            elif line.startswith("data: ") and event == "error":
                raise RuntimeError(line)


@contextlib.asynccontextmanager
async def _open(running: Platform, key: str) -> AsyncIterator[httpx.AsyncClient]:
    headers = {"Authorization": f"Bearer {key}", "Accept": "text/event-stream"}
    limits = httpx.Limits(max_connections=200)
    async with httpx.AsyncClient(base_url=running.url, headers=headers, timeout=300.0, limits=limits) as http:
        yield http


if __name__ == "__main__":
    main()
