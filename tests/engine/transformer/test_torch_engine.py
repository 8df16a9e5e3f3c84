"""The engine on torch, against `generate()` of transformers: for each architecture token by token the same."""

from __future__ import annotations

import gc
import random
import weakref
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from pilotlight_engine.engine_port import EngineDead, EngineRefusal, GenRequest, Sampling
from pilotlight_engine.scheduling.step_scheduler import SchedulerLimits
from pilotlight_engine.transformer import torch_engine
from pilotlight_engine.transformer.torch_engine import TorchEngine, TorchSettings
from tests.engine.generations import GREEDY, Ran, request, run, step
from tests.engine.transformer.tiny_models import CONFIGS, VOCABULARY, greedy, logprobs_after, reference
from tests.variants import with_variants

Folders = Callable[[str], Path]
LENGTHS = (1, 5, 17, 40, 64)
NEW = 20


def engine(folder: Path, *, kv_tokens: int = 2048, page: int = 4, **limits: Any) -> TorchEngine:
    """With steps so small that every prompt but the shortest is computed in chunks."""
    per_token = 2 * 3 * 4 * 16 * 4  # the largest of the models; others have room for more tokens
    chosen = SchedulerLimits(**{"token_budget": 24, "quantum": 8, "max_running": 8, **limits})
    return TorchEngine(TorchSettings(weights=folder, limits=chosen, page=page, kv_bytes=kv_tokens * per_token))


def prompts(seed: int = 3) -> list[tuple[int, ...]]:
    """One of each length."""
    chance = random.Random(seed)
    return [tuple(chance.randrange(VOCABULARY) for _ in range(length)) for length in LENGTHS]


@pytest.mark.parametrize("kind", with_variants(CONFIGS, 3))
def test_every_architecture_is_exact(kind: str, model_folder: Folders) -> None:
    """Prompts of mixed lengths, in chunks, together, all preempted once, and with a stored prefix; and the logprobs are
    those of the whole sequence in one pass.
    """
    folder = model_folder(kind)
    model = reference(folder)
    asked = [request(str(number), ids, NEW, logprobs=2) for number, ids in enumerate(prompts())]
    expected = {each.id: greedy(model, each.prompt_ids, NEW) for each in asked}
    made = engine(folder)
    ran = run(made, *asked, steps=9)
    made.scheduler.preempt_all()
    while made.has_work():
        step(made, ran)
    again = run(made, *(replace(each, id=f"again-{each.id}") for each in asked))

    assert ran.tokens == expected
    assert {name.removeprefix("again-"): tokens for name, tokens in again.tokens.items()} == expected
    assert again.finished["again-4"].usage.cached_tokens == 60
    assert made.stats().preempted >= 1
    assert made.stats().kv_used == 0
    for each in asked:
        _check_logprobs(ran, each, logprobs_after(model, each.prompt_ids, expected[each.id]))


def _check_logprobs(ran: Ran, asked: GenRequest, expected: torch.Tensor) -> None:
    for out, own in zip(ran.outs[asked.id], expected, strict=True):
        best = torch.topk(own, 2)
        assert out.logprob == pytest.approx(float(own[out.token]), abs=2e-3)
        assert [value for _, value in out.top] == pytest.approx(best.values.tolist(), abs=2e-3)


def test_sequences_that_take_each_other_s_room_are_exact(model_folder: Folders) -> None:
    """In a room for about two of five."""
    folder = model_folder("llama")
    model = reference(folder)
    asked = [request(str(number), ids, NEW) for number, ids in enumerate(prompts())]
    made = engine(folder, kv_tokens=42, max_running=5)  # 168 tokens of this model
    ran = run(made, *asked)

    assert made.stats().preempted > 0
    assert ran.tokens == {each.id: greedy(model, each.prompt_ids, NEW) for each in asked}


def test_one_long_sequence_among_short_ones_is_exact(model_folder: Folders, monkeypatch: pytest.MonkeyPatch) -> None:
    """It has no row of its own, and neither have those for which rows have no room."""
    folder = model_folder("mistral")
    model = reference(folder)
    monkeypatch.setattr("pilotlight_engine.transformer.decode_rows.FEW_TOKENS", 1)
    monkeypatch.setattr("pilotlight_engine.transformer.decode_rows.MUCH_LONGER", 2)
    asked = [request(str(number), ids, NEW) for number, ids in enumerate(prompts())]
    made = engine(folder)
    made._rows.max_tokens = 200
    ran = run(made, *asked)

    assert ran.tokens == {each.id: greedy(model, each.prompt_ids, NEW) for each in asked}


def test_sampled_tokens_are_the_same_alone_and_in_any_batch(model_folder: Folders) -> None:
    """By seed and position, whatever the steps look like."""
    folder = model_folder("llama")
    kinds = (
        Sampling(temperature=0.8, seed=1),
        Sampling(temperature=1.0, seed=2, top_p=0.9),
        Sampling(temperature=1.5, seed=-3, top_k=20),
        Sampling(temperature=0.7, seed=4, top_k=50, top_p=0.8),
        GREEDY,
    )
    asked = [
        request(str(number), ids, NEW, sampling=kind)
        for number, (ids, kind) in enumerate(zip(prompts(), kinds, strict=True))
    ]
    together = run(engine(folder), *asked).tokens
    for each in asked:
        assert run(engine(folder, token_budget=512), each).tokens[each.id] == together[each.id]

    other = replace(asked[0], sampling=Sampling(temperature=0.8, seed=9))
    assert run(engine(folder), other).tokens["0"] != together["0"]


@pytest.mark.parametrize("sampling", [GREEDY, Sampling(temperature=0.9, seed=11, top_p=0.95)])
def test_a_cut_sequence_goes_on_with_the_same_tokens(sampling: Sampling, model_folder: Folders) -> None:
    """On another engine, beside other sequences."""
    folder = model_folder("qwen3")
    asked = request("a", prompts()[2], NEW, sampling=sampling)
    whole = run(engine(folder), asked).tokens["a"]
    for cut in (1, 7, NEW - 1):
        resumed = replace(asked, prefix_out=tuple(whole[:cut]))
        ran = run(engine(folder), request("other", prompts()[3], NEW), resumed)

        assert ran.tokens["a"] == whole[cut:]


def test_what_ends_a_sequence_is_not_drawn_before_its_least_length(model_folder: Folders) -> None:
    """Greedy and sampled."""
    folder = model_folder("llama")
    for sampling in (GREEDY, Sampling(temperature=0.8, seed=1)):
        asked = request("a", prompts()[1], NEW, sampling=sampling)
        stop = run(engine(folder), asked).tokens["a"][3]
        ran = run(engine(folder), replace(asked, stop_ids=frozenset({stop, VOCABULARY + 5}), min_new=8))

        assert stop not in ran.tokens["a"][:8]
        assert len(ran.tokens["a"]) >= 8


def test_numbers_that_are_none_end_their_sequence_alone(model_folder: Folders) -> None:
    """Also where another sequence gets its row and its blocks afterwards."""
    folder = model_folder("llama")
    first, other = prompts()[2], prompts()[3]
    expected = run(engine(folder), request("b", other, NEW)).tokens["b"]
    made = engine(folder, prefix_cache=False)
    ran = run(made, request("a", first, NEW), request("b", other, NEW), steps=6)
    assert 0 < len(ran.tokens["a"]) < NEW
    row = made._rows._place[made.scheduler.running["a"]]
    with torch.inference_mode():
        for values in made._rows.values:
            values[row] = float("nan")
    while made.has_work():
        step(made, ran)
    later = run(made, *(request(str(number), other, NEW) for number in range(3)))

    assert ran.failed["a"].kind == "not_a_number"
    assert ran.tokens["b"] == expected
    assert list(later.tokens.values()) == [expected] * 3


def test_a_lack_of_memory_shrinks_the_step_and_changes_nothing_else(
    model_folder: Folders, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whether torch says it of a GPU or of the host."""
    folder = model_folder("llama")
    asked = request("a", prompts()[4], NEW)
    expected = run(engine(folder), asked).tokens
    made = engine(folder)
    errors = {
        1: torch.OutOfMemoryError("CUDA out of memory"),
        6: RuntimeError("[enforce] DefaultCPUAllocator: can't allocate memory"),
    }
    forward = made._forward

    def failing(plan: Any) -> Any:
        if made.scheduler.steps in errors:
            made._rows.arrange(plan.decodes, made._pool, 4)  # as far as a step may have come
            raise errors.pop(made.scheduler.steps)
        return forward(plan)

    monkeypatch.setattr(made, "_forward", failing)

    assert run(made, asked).tokens == expected
    assert errors == {}
    assert made.stats().token_budget == 6


def test_any_other_failure_of_a_step_ends_the_engine(model_folder: Folders, monkeypatch: pytest.MonkeyPatch) -> None:
    """A context that is dead takes its process along."""
    made = engine(model_folder("llama"))

    def failing(_: Any) -> Any:
        raise RuntimeError("CUDA error: an illegal memory access was encountered")

    monkeypatch.setattr(made, "_forward", failing)
    made.admit(request("a"))
    with pytest.raises(EngineDead, match="illegal memory access"):
        made.step()


@pytest.mark.parametrize("level", [1, 2])
def test_a_sequence_sleeps_and_goes_on(level: Any, model_folder: Folders) -> None:
    """Its keys and values are computed again."""
    folder = model_folder("llama")
    asked = request("a", prompts()[3], NEW)
    expected = run(engine(folder), asked).tokens
    made = engine(folder)
    ran = run(made, asked, steps=8)
    model = weakref.ref(made._model)
    made.sleep(level)
    gc.collect()
    assert (model() is None) == (level == 2)
    with pytest.raises(EngineRefusal, match="sleeps"):
        made.embed([(1, 2)])
    made.wake()
    made.wake()
    while made.has_work():
        step(made, ran)

    assert ran.tokens == expected


def test_vectors_are_means_of_last_hidden_states(model_folder: Folders) -> None:
    """Several inputs in one pass are as each alone; a running sequence notices nothing."""
    folder = model_folder("gemma3")
    model: Any = reference(folder)
    inputs = [*prompts(), prompts()[1]]
    made = engine(folder)
    ran = run(made, request("a", prompts()[2], NEW), steps=4)
    vectors = made.embed(inputs)
    with torch.no_grad():
        for ids, vector in zip(inputs, vectors, strict=True):
            hidden = model.model(torch.tensor([ids])).last_hidden_state[0]
            expected = torch.nn.functional.normalize(hidden.mean(dim=0), dim=0)
            assert torch.allclose(torch.tensor(vector), expected, atol=1e-4)
    while made.has_work():
        step(made, ran)

    assert ran.tokens["a"] == greedy(model, prompts()[2], NEW)
    for wrong in ((), (VOCABULARY,), (1,) * 513):
        with pytest.raises(EngineRefusal):
            made.embed([wrong])


def test_vectors_for_which_there_is_no_memory_are_refused(
    model_folder: Folders, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Sequences go on."""
    made = engine(model_folder("llama"))

    def failing(_: Any) -> Any:
        raise torch.OutOfMemoryError

    monkeypatch.setattr(made, "_embed_group", failing)
    with pytest.raises(EngineRefusal, match="no memory for 2 tokens"):
        made.embed([(1, 2)])

    assert len(run(made, request("a")).tokens["a"]) == 8


@pytest.mark.gpu
@pytest.mark.parametrize("kind", CONFIGS)
def test_every_architecture_is_exact_on_a_gpu(kind: str, model_folder: Folders) -> None:
    """In float32, against the processor; it sleeps, gives the memory back, and goes on."""
    folder = model_folder(kind)
    model = reference(folder)
    asked = [request(str(number), ids, NEW) for number, ids in enumerate(prompts())]
    made = TorchEngine(
        TorchSettings(weights=folder, device="cuda", kv_bytes=1 << 24, limits=SchedulerLimits(token_budget=24))
    )
    ran = run(made, *asked, steps=9)
    held = torch.cuda.memory_allocated()
    made.sleep(1)
    assert torch.cuda.memory_allocated() < held
    made.wake()
    while made.has_work():
        step(made, ran)

    assert ran.tokens == {each.id: greedy(model, each.prompt_ids, NEW) for each in asked}


def test_it_says_what_it_can_do(model_folder: Folders) -> None:
    """By its folder and its settings; room that holds no block is a mistake."""
    folder = model_folder("qwen3")
    capabilities = TorchEngine(TorchSettings(weights=folder, max_sequence=100)).capabilities()

    assert (capabilities.architecture, capabilities.vocabulary) == ("Qwen3ForCausalLM", VOCABULARY)
    assert (capabilities.max_sequence, capabilities.kv_tokens) == (100, 6400)
    with pytest.raises(ValueError, match="no block of 16 tokens"):
        TorchEngine(TorchSettings(weights=folder, kv_bytes=1000))


def test_inputs_are_grouped_by_the_budget() -> None:
    """A longer one is alone."""
    groups = torch_engine._groups([(1,) * 3, (1,) * 3, (1,) * 9, (1,), (1,)], 6)

    assert [[len(ids) for ids in group] for group in groups] == [[3, 3], [9], [1, 1]]
