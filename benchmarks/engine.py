"""Tokens per second of the engine on torch, against transformers' continuous batching and its static generation.

One small Qwen3 with random weights, on one thread of the processor; every kind has its turn in each round, and what is
compared comes from the same rounds. `--rounds` says how many. Then, of the engine alone: the time to the first token
and between tokens under a seeded Poisson load, and what stored prefixes spare. Last, what the whole platform adds to a
token (`benchmarks.token_path`), of which `--platform-only` is a run by itself.
"""

from __future__ import annotations

import random
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from transformers import GenerationConfig, Qwen3Config, Qwen3ForCausalLM
from transformers.generation import ContinuousBatchingConfig
from transformers.utils import logging

from benchmarks import report
from benchmarks.token_path import measure_platform
from pilotlight_engine.engine_port import GenRequest, Sampling, TokenOut
from pilotlight_engine.scheduling.step_scheduler import SchedulerLimits
from pilotlight_engine.transformer.torch_engine import TorchEngine, TorchSettings

SIZES = (1, 16, 32, 64)
PROMPT, NEW = 64, 64
VOCABULARY = 2048
PREFIX = 960
GREEDY = Sampling(temperature=0.0)

Rates = dict[tuple[str, int], float]


def main() -> None:
    """Run, print, finish."""
    parser = report.arguments("engine", __doc__ or "")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--platform-only", action="store_true", help="measure what the platform adds to tokens alone")
    options = report.parsed(parser)
    rounds, new = (1, 8) if options.quick else (options.rounds, NEW)
    own = {} if options.platform_only else _measure_engine(rounds, new, is_quick=options.quick)
    added = measure_platform(rounds, 50 if options.quick else 500)
    report.finish("engine", own | added)


def _measure_engine(rounds: int, new: int, *, is_quick: bool) -> dict[str, float]:
    """Print tables; returns the figures of the engine without a platform."""
    torch.set_num_threads(1)
    logging.disable_progress_bar()
    logging.set_verbosity_error()
    with tempfile.TemporaryDirectory() as folder:
        weights = _save(Path(folder))
        rates, of_processor = _rates(weights, rounds, new)
        first, between, load = _under_load(weights, seconds=2.0 if is_quick else 20.0)
        cold, warm = _prefixes(weights, 2 if is_quick else 8)
    for title, found in (("tokens/s", rates), ("tokens for each second of processor time", of_processor)):
        rows = [(str(size), *(found[kind, size] for kind in ("engine", "continuous", "static"))) for size in SIZES]
        report.table(title, ("sequences", "engine", "transformers' continuous", "static generate()"), rows)
    report.table(
        "the engine under a Poisson load, and with a stored prefix",
        ("figure", "value"),
        [
            ("requests/s", load),
            ("time to the first token, p95, ms", first),
            ("between tokens, p95, ms", between),
            (f"first token after {PREFIX + 16} tokens of prompt, ms", cold),
            (f"the same where {PREFIX} of them are stored, ms", warm),
        ],
    )
    return {
        **{f"ratio_{size}": rates["engine", size] / rates["continuous", size] for size in SIZES},
        **{f"tok_s_{size}": rates["engine", size] for size in SIZES},
        "processor_ratio_32": of_processor["engine", 32] / of_processor["continuous", 32],
        "static_ratio_32": rates["engine", 32] / rates["static", 32],
        "ttft_p95_ms": first,
        "itl_p95_ms": between,
        "load_per_s": load,
        "prefix_speedup": cold / warm,
    }


def _save(folder: Path) -> Path:
    torch.manual_seed(0)
    config = Qwen3Config(
        vocab_size=VOCABULARY,
        hidden_size=256,
        intermediate_size=512,
        num_hidden_layers=4,
        head_dim=64,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=4096,
        bos_token_id=None,
        eos_token_id=None,
        pad_token_id=0,
    )
    model: Any = Qwen3ForCausalLM(config)
    model.save_pretrained(folder)
    return folder


def _prompt(number: int) -> list[int]:
    return [(number * 7 + place) % 2000 + 1 for place in range(PROMPT)]


# -- throughput --------------------------------------------------------------------------------------------------------


def _rates(weights: Path, rounds: int, new: int) -> tuple[Rates, Rates]:
    """Medians of rounds, by kind and number of sequences: of all time, and of processor time, which other work on the
    machine disturbs less. The first round of each warms up, and does not count.
    """
    engine = _engine(weights, prefix_cache=False)
    static: Any = Qwen3ForCausalLM.from_pretrained(weights, attn_implementation="sdpa").eval()
    continuous: Any = Qwen3ForCausalLM.from_pretrained(weights, attn_implementation="sdpa").eval()
    manager = continuous.init_continuous_batching(
        generation_config=GenerationConfig(max_new_tokens=new, do_sample=False, eos_token_id=-1, pad_token_id=0),
        continuous_batching_config=ContinuousBatchingConfig(
            page_size=16,
            num_blocks=1024,
            max_batch_tokens=512,
            use_cuda_graph=False,
            use_async_batching=False,
            auto_switch_to_flash=False,
            allow_block_sharing=False,
        ),
    )
    manager.start()
    kinds: dict[str, Callable[[int], int]] = {
        "engine": lambda size: _run_engine(engine, size, new),
        "continuous": lambda size: _run_continuous(manager, size, new),
        "static": lambda size: _run_static(static, size, new),
    }
    measured: dict[tuple[str, int], list[tuple[float, float]]] = defaultdict(list)
    try:
        for number in range(rounds + 1):
            for size in SIZES:
                for kind, run in kinds.items():
                    started, used = time.perf_counter(), time.process_time()
                    tokens = run(size)
                    took, used = time.perf_counter() - started, time.process_time() - used
                    if tokens != size * new:
                        raise SystemExit(f"{kind} made {tokens} tokens of {size * new}")
                    if number:
                        measured[kind, size].append((tokens / took, tokens / used))
    finally:
        manager.stop(block=True)
    rates, of_processor = (
        {key: report.median([pair[which] for pair in values]) for key, values in measured.items()} for which in (0, 1)
    )
    return rates, of_processor


def _engine(weights: Path, *, prefix_cache: bool) -> TorchEngine:
    limits = SchedulerLimits(token_budget=512, max_running=64, prefix_cache=prefix_cache)
    return TorchEngine(TorchSettings(weights=weights, limits=limits, kv_bytes=256 << 20))


def _run_engine(engine: TorchEngine, size: int, new: int) -> int:
    for number in range(size):
        engine.admit(GenRequest(id=str(number), prompt_ids=tuple(_prompt(number)), max_new=new, sampling=GREEDY))
    tokens = 0
    while engine.has_work():
        tokens += sum(isinstance(event, TokenOut) for event in engine.step())
    return tokens


def _run_continuous(manager: Any, size: int, new: int) -> int:
    for number in range(size):
        manager.add_request(_prompt(number), request_id=f"{time.monotonic_ns()}-{number}", max_new_tokens=new)
    tokens = done = 0
    while done < size:
        result = manager.get_result(timeout=60)
        if result is None:
            raise SystemExit("transformers' continuous batching gave no result")
        if result.is_finished():
            done += 1
            tokens += len(result.generated_tokens)
    return tokens


def _run_static(model: Any, size: int, new: int) -> int:
    ids = torch.tensor([_prompt(number) for number in range(size)])
    made = model.generate(
        ids, attention_mask=torch.ones_like(ids), max_new_tokens=new, do_sample=False, eos_token_id=None, pad_token_id=0
    )
    return int(made.shape[0] * (made.shape[1] - ids.shape[1]))


# -- under load, and with prefixes -------------------------------------------------------------------------------------


def _under_load(weights: Path, seconds: float) -> tuple[float, float, float]:
    """p95 of the time to the first token and of that between tokens in ms, and the rate of requests: half of what the
    engine can do, at random instants, with prompts and answers of random lengths.
    """
    engine, chance = _engine(weights, prefix_cache=True), random.Random(17)
    _run_engine(engine, 32, 16)
    started = time.perf_counter()
    _run_engine(engine, 32, NEW)
    rate = 0.5 * 32 / (time.perf_counter() - started)
    due, instants = 0.0, []
    while (due := due + chance.expovariate(rate)) < seconds:
        instants.append((due, chance.randint(8, 2 * PROMPT), chance.randint(8, 2 * NEW)))
    begun: dict[str, float] = {}
    last: dict[str, float] = {}
    first: list[float] = []
    between: list[float] = []
    zero = time.perf_counter()
    while instants or engine.has_work():
        now = time.perf_counter() - zero
        while instants and instants[0][0] <= now:
            at, prompt, new = instants.pop(0)
            name = f"load-{at}"
            begun[name] = at  # when it was due: waiting for a step counts
            ids = tuple(chance.randrange(VOCABULARY) for _ in range(prompt))
            engine.admit(GenRequest(id=name, prompt_ids=ids, max_new=new, sampling=GREEDY))
        if not engine.has_work():
            time.sleep(max(0.0, instants[0][0] - now))
            continue
        events = engine.step()
        now = time.perf_counter() - zero
        for event in events:
            if isinstance(event, TokenOut):
                (between if event.id in last else first).append(now - last.get(event.id, begun[event.id]))
                last[event.id] = now
    return report.percentile(first, 95) * 1000, report.percentile(between, 95) * 1000, rate


def _prefixes(weights: Path, count: int) -> tuple[float, float]:
    """The median time to the first token after a long prompt, in ms: with nothing of it stored, and with most."""
    engine, chance = _engine(weights, prefix_cache=True), random.Random(18)
    shared = [chance.randrange(VOCABULARY) for _ in range(PREFIX)]
    _first_token(engine, "warm-up", shared, "stored")
    own = [[chance.randrange(VOCABULARY) for _ in range(16)] for _ in range(count)]
    cold = [_first_token(engine, f"cold-{n}", shared + ids, f"salt-{n}") for n, ids in enumerate(own)]
    warm = [_first_token(engine, f"warm-{n}", shared + ids, "stored") for n, ids in enumerate(own)]
    return report.median(cold) * 1000, report.median(warm) * 1000


def _first_token(engine: TorchEngine, name: str, ids: list[int], salt: str) -> float:
    started = time.perf_counter()
    engine.admit(GenRequest(id=name, prompt_ids=tuple(ids), max_new=1, sampling=GREEDY, salt=salt))
    while engine.has_work():
        engine.step()
    return time.perf_counter() - started


if __name__ == "__main__":
    main()
