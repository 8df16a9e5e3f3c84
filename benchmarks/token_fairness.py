"""Two tenants share a language model: how its tokens are divided, and what a flood of long prompts costs the other.

Over HTTP, on a whole platform, with the torch engine: a Llama of 3 layers, 64 wide, with random weights, on one thread
of this machine's processor, lent to both tenants. No prompt begins as another does, so nothing is found stored.

    shares   both keep 24 calls open, more than the model runs at once: one has prompts of 8,192 tokens, the other one
             of 512. Counted are the tokens that the model computed for each, prompts and answers. `share_error` is by
             how much a tenant's part differs from that of its weight, as a part of the latter; the worse of 1:1 and
             2:1
    first    one tenant asks at random instants, with prompts of 512 to 1,024 tokens, for a quarter of the tokens that
             it had of 1:1; alone, and beside the other one's flood. `ttft_ratio` is the p99 of its times to the first
             token beside the flood over that of those without. They take turns, with prompts of the same lengths in
             the same order
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import random
import tempfile
import time
from collections import defaultdict
from collections.abc import AsyncGenerator, AsyncIterator
from functools import cache
from pathlib import Path
from typing import Any

import httpx

from benchmarks import report
from tests.engine.text.small_tokenizer import small_tokenizer
from tests.engine.transformer.tiny_models import save_model
from tests.system.support.platform import Platform, make_tenant, platform

LONG, SHORT = 8192, 512
"""Tokens of prompts: of the flood, and of the other one's load."""
ASKED = (512, 1024)
"""The least and the most of whoever asks now and then."""
ANSWER = 16
OPEN = 24
"""Calls that a tenant keeps open."""
ASKED_PART = 0.25
"""Of the tokens that are its share beside the flood, what the questions of whoever asks now and then need."""
ANSWERS_AT_LEAST = 3
"""Of each tenant, whatever the machine: rates are those from the beginning of an answer to that of another."""
MOST_S = 300.0
SOURCE = """\
from pilotlight import App, Torch

app = App("fair")
chat = app.engine("chat", Torch("small", max_sequence=9000, max_sequences=16, max_tokens_per_step=128), gpu="cpu",
                  memory="4GiB", cpu=1, max_containers=1, min_containers=1)
"""
PATH = "/v1/functions/default:fair.chat/calls"

Counts = defaultdict[str, list[tuple[float, int, bool]]]
"""By tenant: when it got how many tokens, and whether they began an answer."""


def main() -> None:
    """Run, print, finish."""
    options = report.parsed(report.arguments("token_fairness", __doc__ or ""))
    seconds, questions, rounds = (5.0, 10, 1) if options.quick else (60.0, 40, 3)
    with tempfile.TemporaryDirectory() as folder, platform(Path(folder), "--blanks", "1") as running:
        keys = _prepared(running, Path(folder))
        asyncio.run(_warm_up(running, keys))
        errors = {}
        for weight in (1, 2):
            running.cli("tenant", "set", "quick", "--weight", str(weight))
            errors[weight] = asyncio.run(_shares(running, keys, weight, seconds))
        running.cli("tenant", "set", "quick", "--weight", "1")
        alone, beside = asyncio.run(_first(running, keys, questions, rounds, errors[1][0]))
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
            "ttft_median_ratio": report.median(beside) / report.median(alone),
            "ttft_alone_p99_ms": report.percentile(alone, 99),
            "ttft_beside_p99_ms": report.percentile(beside, 99),
        },
    )


def _prepared(running: Platform, folder: Path) -> dict[str, str]:
    """Push a model, deploy its function and lend it to two tenants; returns a key of each."""
    model = save_model("llama", folder / "small", vocab_size=300, max_position_embeddings=9000,
                       hidden_size=64, intermediate_size=128)  # fmt: skip
    small_tokenizer(model)
    running.cli("weights", "push", "small", str(model))
    (folder / "app.py").write_text(SOURCE)
    running.deploy(folder / "app.py")
    keys = {name: make_tenant(running, name) for name in ("quick", "flood")}
    for name in keys:
        running.cli("app", "share", "fair", name, "chat")
    return keys


async def _warm_up(running: Platform, keys: dict[str, str]) -> None:
    """Wait for the model, by a question of each."""
    for key in keys.values():
        async with _open(running, key) as http:
            await _ask(http, 1, 0)


async def _shares(running: Platform, keys: dict[str, str], weight: int, seconds: float) -> tuple[float, float, float]:
    """Tokens a second of both, and how far they are from their weights."""
    done = Counts(list)
    async with (
        _open(running, keys["quick"]) as quick,
        _open(running, keys["flood"]) as flood,
        asyncio.TaskGroup() as group,
    ):
        load = [
            *(group.create_task(_repeat(quick, SHORT, "quick", done)) for _ in range(OPEN)),
            *(group.create_task(_repeat(flood, LONG, "flood", done)) for _ in range(OPEN)),
        ]
        await _wait_answers(done, 2)
        done.clear()
        await asyncio.sleep(seconds)
        await _wait_answers(done, ANSWERS_AT_LEAST + 1)
        for each in load:
            each.cancel()
    rates = {name: _rate(found) for name, found in done.items()}
    both = sum(rates.values())
    parts = {"quick": weight / (weight + 1), "flood": 1 / (weight + 1)}
    error = max(abs(rates[name] / both / part - 1.0) for name, part in parts.items())
    return rates["quick"], rates["flood"], error


async def _wait_answers(done: Counts, least: int, tenants: tuple[str, ...] = ("quick", "flood")) -> None:
    """Wait until so many answers of each have begun."""
    async with asyncio.timeout(MOST_S):
        while any(sum(begins for _, _, begins in done[name]) < least for name in tenants):  # noqa: ASYNC110
            await asyncio.sleep(0.1)


def _rate(found: list[tuple[float, int, bool]]) -> float:
    """Tokens a second from the beginning of one answer to that of another: of a long prompt there is news only at its
    end, so between any two instants it would count for all of its tokens or for none.
    """
    begun = [at for at, _, begins in found if begins]
    return sum(tokens for at, tokens, _ in found if begun[0] < at <= begun[-1]) / (begun[-1] - begun[0])


async def _first(
    running: Platform, keys: dict[str, str], questions: int, rounds: int, share: float
) -> tuple[list[float], list[float]]:
    """Milliseconds to the first token, alone and beside the flood, in turns. `share` are tokens a second."""
    pause_s = (sum(ASKED) / 2 + ANSWER) / (ASKED_PART * share)
    alone, beside = list[float](), list[float]()
    async with _open(running, keys["quick"]) as quick, _open(running, keys["flood"]) as flood:
        for turn in range(rounds):
            alone += await _ask(quick, questions, turn, pause_s)
            async with asyncio.TaskGroup() as group:
                done = Counts(list)
                load = [group.create_task(_repeat(flood, LONG, "flood", done)) for _ in range(OPEN)]
                await _wait_answers(done, 1, ("flood",))
                beside += await _ask(quick, questions, turn, pause_s)
                for each in load:
                    each.cancel()
            await asyncio.sleep(2.0)
    return alone, beside


async def _ask(http: httpx.AsyncClient, questions: int, seed: int, pause_s: float = 0.0) -> list[float]:
    """Ask at random instants, each question when it is its time, whatever became of those before."""
    chance, found = random.Random(seed), list[float]()

    async def ask(tokens: int) -> None:
        began = time.perf_counter()
        async with contextlib.aclosing(_generated(http, tokens)) as chunks:
            async for chunk in chunks:
                if chunk["token_ids"]:
                    found.append((time.perf_counter() - began) * 1000.0)
                    break

    async with asyncio.TaskGroup() as group:
        for _ in range(questions):
            group.create_task(ask(chance.randint(*ASKED)))
            await asyncio.sleep(chance.expovariate(1.0) * pause_s)
    return found


async def _repeat(http: httpx.AsyncClient, prompt: int, name: str, done: Counts) -> None:
    """Call without a pause. A prompt counts as its answer begins, and each token of the answer as it comes."""
    while True:
        first = True
        async for chunk in _generated(http, prompt):
            done[name].append((time.perf_counter(), len(chunk["token_ids"]) + (prompt if first else 0), first))
            first = False


async def _generated(http: httpx.AsyncClient, prompt: int) -> AsyncGenerator[dict[str, Any], None]:
    """The chunks of an answer."""
    headers = {"Content-Type": "application/json"}
    async with http.stream("POST", PATH, content=_body(prompt), headers=headers) as answer:
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


_prompts = itertools.count(int(time.time() * 1000))


def _body(prompt: int) -> bytes:
    """A request whose prompt begins as no other does. It costs the processor little, which the engine needs."""
    number = next(_prompts)
    own = ",".join(str(1 + number // 250**digit % 250) for digit in range(OWN))
    return b'{"method":"generate","input":{"max_tokens":%d,"ignore_eos":true,"prompt_ids":[%s%s]}}' % (
        ANSWER, own.encode(), _rest(prompt - OWN),
    )  # fmt: skip


OWN = 8
"""Tokens of a prompt that say which one it is."""


@cache
def _rest(tokens: int) -> bytes:
    chance = random.Random(tokens)
    return "".join(f",{chance.randrange(1, 256)}" for _ in range(tokens)).encode()


@contextlib.asynccontextmanager
async def _open(running: Platform, key: str) -> AsyncIterator[httpx.AsyncClient]:
    headers = {"Authorization": f"Bearer {key}", "Accept": "text/event-stream", "Pilotlight-Resume-S": "0"}
    limits = httpx.Limits(max_connections=200)
    async with httpx.AsyncClient(base_url=running.url, headers=headers, timeout=300.0, limits=limits) as http:
        yield http


if __name__ == "__main__":
    main()
