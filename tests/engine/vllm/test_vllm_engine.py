"""vLLM behind the port, by a double of it (`double/vllm`): what goes over the line and what comes of it.

What vLLM itself does is shown where there is a GPU: `pytest -m gpu`, with PILOTLIGHT_VLLM_PYTHON naming the
interpreter of an environment that has vllm.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pilotlight_engine.engine_port import AdapterSource, EngineDead, EngineRefusal, Sampling
from pilotlight_engine.vllm.vllm_engine import VLLMEngine, VLLMSettings
from tests.engine.generations import Ran, request, run, step

DOUBLE = Path(__file__).with_name("double")


class Started:
    """An engine, and what the double was asked."""

    def __init__(self, folder: Path) -> None:
        self.log = folder / "log"
        adapter = folder / "adapter"
        adapter.mkdir()
        (adapter / "adapter_config.json").write_text("{}")
        self.adapter = AdapterSource(name="mine", folder=adapter)
        (folder / "config.json").write_text(json.dumps({"architectures": ["AnyForCausalLM"], "eos_token_id": 9}))
        (folder / "generation_config.json").write_text(json.dumps({"eos_token_id": [90, 91, 100]}))
        self.engine = VLLMEngine(
            VLLMSettings(
                weights=folder,
                python=Path(sys.executable),
                adapters=(self.adapter,),
                kv_bytes=1 << 30,
                quantization="awq",
                max_sequence=512,
                max_running=3,
                spare=1,
                max_waiting=1,
                environment={"PYTHONPATH": str(DOUBLE), "VLLM_DOUBLE_LOG": str(self.log)},
            )
        )

    def asked(self, kind: str) -> list[dict[str, Any]]:
        """What the double noted of a kind."""
        lines = [json.loads(line) for line in self.log.read_text().splitlines()]
        return [line for line in lines if line["kind"] == kind]


@pytest.fixture
def started(tmp_path: Path) -> Iterator[Started]:
    """One engine, ended afterwards."""
    made = Started(tmp_path)
    yield made
    made.engine.close()


def _tokens(ids: list[int], count: int) -> list[int]:
    for _ in range(count):
        ids = [*ids, sum(ids) % 100]
    return ids[-count:]


def test_requests_go_to_the_child_and_tokens_come_back(started: Started) -> None:
    """With all that a request says, and the ends of each."""
    engine = started.engine
    assert engine.capabilities().architecture == "AnyForCausalLM"
    assert (engine.capabilities().kv_tokens, engine.capabilities().page) == (1024, 16)
    assert engine.capabilities().seeded_resume is False
    assert engine.capabilities().eos_ids == {90, 91}

    stop = _tokens([4, 5], 3)[2]
    ran = run(
        engine,
        request("plain", (1, 2, 3), 5),
        request("stop", (4, 5), 9, stop_ids=frozenset({stop}), logprobs=2),
        request(
            "all",
            (6,),
            2,
            sampling=Sampling(temperature=0.5, top_p=0.9, top_k=5, seed=8),
            adapter="mine",
            salt="salt",
            priority=3,
            min_new=1,
            ignore_eos=True,
        ),
        request("fails", (13,)),
    )

    assert ran.tokens["plain"] == _tokens([1, 2, 3], 5)
    assert ran.finished["plain"].usage.cached_tokens == 2
    assert (ran.finished["stop"].reason, ran.finished["stop"].stop_id) == ("stop", stop)
    assert ran.outs["stop"][0].top == ((ran.tokens["stop"][0], -0.5), (ran.tokens["stop"][0] + 1, -2.0))
    assert ran.failed["fails"].text == "no luck"
    asked = {tuple(each["prompt"]["prompt_token_ids"]): each for each in started.asked("generate")}
    assert asked[6,]["prompt"]["cache_salt"] == "salt"
    assert "lora_name='mine', lora_int_id=1" in asked[6,]["lora_request"]
    wanted = {"temperature": 0.5, "top_p": 0.9, "top_k": 5, "seed": 8, "max_tokens": 2, "min_tokens": 1,
              "ignore_eos": True, "priority": -3, "detokenize": False}  # fmt: skip
    assert {name: asked[6,][name] for name in wanted} == wanted
    start = started.asked("start")[0]
    assert (start["max_num_seqs"], start["max_num_batched_tokens"]) == (4, 2048)
    assert (start["kv_cache_memory_bytes"], start["quantization"], start["max_model_len"]) == (1 << 30, "awq", 512)
    assert engine.stats().running == 0


def test_a_cut_sequence_goes_on_within_its_bounds(started: Started) -> None:
    """What it has is part of the prompt, and counts."""
    asked = request("a", (1, 2), 6, min_new=4)
    whole = run(started.engine, asked).tokens["a"]
    ran = run(started.engine, replace(asked, prefix_out=tuple(whole[:3])), request("over", max_new=1, prefix_out=(5,)))

    assert ran.tokens["a"] == whole[3:]
    assert ran.outs["a"][0].index == 3
    assert ran.finished["a"].usage.completion_tokens == 6
    assert ran.finished["over"].reason == "length"
    resumed = started.asked("generate")[-1]
    assert (resumed["max_tokens"], resumed["min_tokens"]) == (3, 1)


def test_a_sequence_that_had_its_end_elsewhere_does_not_go_on(started: Started) -> None:
    """By the end tokens of its model's files, unless they are to be ignored, or come too early."""
    ended = request("a", (1, 2), 6, prefix_out=(5, 91))
    ran = run(
        started.engine,
        ended,
        replace(ended, id="ignores", ignore_eos=True),
        replace(ended, id="early", min_new=2),
        replace(ended, id="own", stop_ids=frozenset({4}), prefix_out=(4,)),
    )

    assert (ran.finished["a"].reason, ran.finished["a"].stop_id) == ("stop", 91)
    assert (ran.finished["own"].reason, ran.finished["own"].stop_id) == ("stop", 4)
    assert [len(ran.tokens.get(name, ())) for name in ("a", "own", "ignores", "early")] == [0, 0, 4, 4]


def test_a_prompt_that_is_cancelled_counts_where_its_sequence_had_a_place(started: Started) -> None:
    """vLLM does not say how much of it was read."""
    for number in range(5):
        started.engine.admit(request(str(number), (7, 7, 7), 50))
    for name in ("4", "3"):
        started.engine.abort(name)
    ran = Ran()
    while len(ran.finished) < 2:
        step(started.engine, ran)

    assert {name: end.usage.read_tokens for name, end in ran.finished.items()} == {"4": 0, "3": 3}


def test_an_aborted_sequence_ends_at_once_and_the_child_stops(started: Started) -> None:
    """What still comes of it is nobody's; its name can be used again."""
    engine, ran = started.engine, Ran()
    engine.admit(request("a", (7,), 50))
    while "a" not in ran.tokens:
        step(engine, ran)
    assert engine.stats().kv_used == 16
    checkpoint = engine.checkpoint("a")
    assert checkpoint is not None
    assert checkpoint.prefix_out == tuple(ran.tokens["a"])
    engine.abort("a")
    engine.abort("unknown")
    step(engine, ran)
    assert ran.finished["a"].reason == "aborted"
    assert not engine.has_work()
    assert engine.checkpoint("a") is None
    again = run(engine, request("a", (1, 2), 4))

    assert again.tokens["a"] == _tokens([1, 2], 4)
    assert [each["id"] for each in started.asked("aborted")] == ["1"]


def test_a_sequence_sleeps_and_goes_on_from_its_tokens(started: Started) -> None:
    """The child is told both, and the sequence begins there anew."""
    engine, ran = started.engine, Ran()
    engine.wake()
    engine.admit(request("a", (7,), 50))
    while "a" not in ran.tokens:
        step(engine, ran)
    had = list(ran.tokens["a"])
    engine.sleep(1)
    assert not engine.has_work()
    assert engine.step() == []
    engine.wake()
    while len(ran.tokens["a"]) < len(had) + 2:
        step(engine, ran)

    assert ran.tokens["a"] == _tokens([7], len(had) + 2)
    assert (started.asked("sleep")[0]["level"], len(started.asked("wake"))) == (1, 1)


def test_what_cannot_run_is_refused_here(started: Started) -> None:
    """The child hears nothing of it."""
    engine = started.engine
    for wrong in (request("a", (100,)), request("a", (1,) * 600), request("a", adapter="other")):
        with pytest.raises(EngineRefusal):
            engine.admit(wrong)
    with pytest.raises(EngineRefusal, match="no adapter_config"):
        engine.load_adapter(AdapterSource(name="empty", folder=DOUBLE))
    with pytest.raises(EngineRefusal, match="no vectors"):
        engine.embed([(1,)])
    engine.unload_adapter("mine")
    engine.unload_adapter("mine")
    assert engine.adapters() == ()
    for number in range(5):
        engine.admit(request(str(number), (7,), 50))
    for name, why in (("5", "5 sequences"), ("0", "already")):
        with pytest.raises(EngineRefusal, match=why):
            engine.admit(request(name))

    assert engine.stats().waiting == 1


def test_new_content_of_an_adapter_is_a_new_number(started: Started) -> None:
    """vLLM knows stored prefixes by it."""
    started.engine.load_adapter(started.adapter)
    run(started.engine, request("a", (1,), 1, adapter="mine"))

    assert "lora_int_id=2" in started.asked("generate")[0]["lora_request"]


@pytest.mark.parametrize("how", ["says so", "is killed"])
def test_a_dead_engine_is_dead(how: str, started: Started) -> None:
    """Whether the child says it, or is gone."""
    engine = started.engine
    engine.admit(request("a", (66,) if how == "says so" else (7,), 50))
    if how == "is killed":
        engine._child.kill()
    with pytest.raises(EngineDead, match="vLLM"):
        run(engine)


def test_the_child_shuts_down_with_the_engine(started: Started) -> None:
    """Even in the middle of a sequence."""
    started.engine.admit(request("a", (7,), 50))
    while not started.engine.step():
        pass
    started.engine.close()

    assert len(started.asked("shutdown")) == 1
    with pytest.raises(EngineDead):
        started.engine.step()


@pytest.mark.gpu
def test_the_real_one_generates(model_folder: Any) -> None:
    """Greedy tokens of a tiny model are those of `generate()`; it sleeps and wakes."""
    from tests.engine.transformer.tiny_models import greedy, reference

    folder = model_folder("llama")
    engine = VLLMEngine(
        VLLMSettings(
            weights=folder, python=Path(os.environ["PILOTLIGHT_VLLM_PYTHON"]), dtype="float32", kv_bytes=1 << 28
        )
    )
    try:
        asked = request("a", tuple(range(1, 30)), 16)
        expected = greedy(reference(folder), asked.prompt_ids, 16)
        assert run(engine, asked).tokens["a"] == expected
        engine.sleep(1)
        engine.wake()
        assert run(engine, replace(asked, id="b")).tokens["b"] == expected
    finally:
        engine.close()
