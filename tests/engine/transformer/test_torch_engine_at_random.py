"""The engine on torch under all at once: every sequence has the tokens that it has alone."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from pilotlight_engine.engine_port import AdapterSource, GenRequest, Sampling
from tests.engine.generations import GREEDY, Ran, run, step
from tests.engine.transformer.test_torch_engine import engine
from tests.engine.transformer.tiny_adapters import save_adapter
from tests.engine.transformer.tiny_models import VOCABULARY

KINDS = ("llama", "mistral", "gemma2", "gpt2")
CASES = [pytest.param(kind, seed, marks=[pytest.mark.long] * bool(seed)) for kind in KINDS[:1] for seed in range(6)]
CASES += [pytest.param(kind, seed, marks=pytest.mark.long) for kind in KINDS[1:] for seed in range(6)]


@pytest.mark.filterwarnings("ignore:`is_gradient_checkpointing`:FutureWarning")  # PEFT asks transformers for it
@pytest.mark.parametrize(("kind", "seed"), CASES)
def test_whatever_happens_each_sequence_has_its_own_tokens(
    kind: str, seed: int, model_folder: Callable[[str], Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Shared beginnings, salts, adapters, tenants, priorities, little room, aborts, cuts, sleep and lack of memory."""
    chance, folder = random.Random(seed), model_folder(kind)
    sources = [
        AdapterSource(name=name, folder=save_adapter(folder, kind, tmp_path / name, number))
        for number, name in enumerate(("one", "two"))
    ]
    alone, made = (
        engine(folder, token_budget=512),
        engine(folder, kv_tokens=chance.choice((60, 120, 400)), max_running=6),
    )
    for source in sources:
        alone.load_adapter(source)
        made.load_adapter(source)
    made._rows.max_tokens = chance.choice((50, 400, 100_000))
    _make_memory_scarce(made, chance, monkeypatch)
    asked = [_request(str(number), chance) for number in range(40)]
    waiting, ran = list(asked), Ran()
    while waiting or made.has_work():
        for _ in range(chance.randrange(3)):
            if waiting:
                made.admit(waiting.pop(0))
        step(made, ran)
        if chance.random() < 0.03 and made.scheduler.running:
            made.abort(chance.choice(list(made.scheduler.running)))
        if chance.random() < 0.02:
            made.sleep(chance.choice((1, 2)))
            made.wake()
        made.scheduler.blocks.check_integrity()

    assert made.stats().kv_used == 0
    for each in asked:
        expected = run(alone, each).tokens[each.id]
        tokens = [*each.prefix_out, *ran.tokens.get(each.id, [])]
        if each.id not in ran.failed and ran.finished[each.id].reason != "aborted":
            assert tokens == [*each.prefix_out, *expected]
        else:
            assert tokens == [*each.prefix_out, *expected][: len(tokens)]


def _request(name: str, chance: random.Random) -> GenRequest:
    beginning = [7] * 30 if chance.random() < 0.5 else list(range(30))
    own = [chance.randrange(VOCABULARY) for _ in range(chance.choice((0, 1, 5, 40)))]
    sampling = GREEDY if chance.random() < 0.5 else Sampling(temperature=0.9, seed=chance.randrange(99), top_p=0.9)
    made = GenRequest(
        id=name,
        tenant=chance.choice("abc"),
        prompt_ids=tuple(beginning[: chance.randint(1, 30)] + own),
        max_new=chance.randint(1, 25),
        sampling=sampling,
        salt=chance.choice(("", "s")),
        adapter=chance.choice(("", "", "one", "two")),
        weight=chance.choice((1.0, 3.0)),
        priority=chance.choice((0, 0, 1)),
    )
    cut = chance.randrange(made.max_new) if chance.random() < 0.3 else 0
    return replace(made, prefix_out=tuple(chance.randrange(VOCABULARY) for _ in range(cut)))


def _make_memory_scarce(made: Any, chance: random.Random, monkeypatch: pytest.MonkeyPatch) -> None:
    forward = made._forward

    def failing(plan: Any) -> Any:
        if chance.random() < 0.03:
            forward(plan)  # as far as a step may have come
            raise torch.OutOfMemoryError
        return forward(plan)

    monkeypatch.setattr(made, "_forward", failing)
