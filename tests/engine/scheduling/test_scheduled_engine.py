"""What all engines of ours do alike, on the simulated one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pilotlight_engine.engine_port import AdapterSource, EngineRefusal, GenRequest, Sampling
from pilotlight_engine.scheduling.scheduled_engine import STEPS_TO_GROW
from pilotlight_engine.scheduling.step_scheduler import SchedulerLimits
from pilotlight_engine.sim.sim_engine import SimEngine, SimModel
from tests.engine.generations import Ran, request, run, step

ADAPTERS = tuple(AdapterSource(name=name, folder=Path(name), digest=name) for name in "abc")


def engine(**model: Any) -> SimEngine:
    """With adapters."""
    return SimEngine(SimModel(**model), SchedulerLimits(token_budget=64), adapters=ADAPTERS)


def test_a_sequence_ends_with_its_last_token() -> None:
    """And says what it took."""
    ran = run(engine(), request("a", range(20), 5))
    finished = ran.finished["a"]

    assert len(ran.tokens["a"]) == 5
    assert (finished.reason, finished.stop_id) == ("length", None)
    assert (finished.usage.prompt_tokens, finished.usage.completion_tokens) == (20, 5)


def test_a_token_that_ends_a_sequence_is_reported_and_named() -> None:
    """Whether the model's or the request's; what is ignored ends nothing."""
    tokens = run(engine(), request("a")).tokens["a"]
    ran = run(engine(), request("a", stop_ids=frozenset({tokens[2]})))
    assert ran.tokens["a"] == tokens[:3]
    assert (ran.finished["a"].reason, ran.finished["a"].stop_id) == ("stop", tokens[2])

    own = SimEngine(SimModel(eos_ids=frozenset({tokens[2]})))
    assert run(own, request("a")).tokens["a"] == tokens[:3]
    assert run(own, request("b", ignore_eos=True)).tokens["b"] == tokens


def test_nothing_ends_before_the_least_length() -> None:
    """What would end it is not drawn."""
    tokens = run(engine(), request("a")).tokens["a"]
    stop = tokens[2]
    ran = run(engine(), request("a", stop_ids=frozenset({stop}), min_new=6))

    assert stop not in ran.tokens["a"][:6]
    assert len(ran.tokens["a"]) >= 6


def test_a_cut_sequence_goes_on_with_the_tokens_that_it_would_have_had() -> None:
    """Cut anywhere, by its checkpoint, on another engine."""
    sampling = Sampling(temperature=0.8, seed=7)
    whole = run(engine(), request("a", range(30), 12, sampling=sampling))
    for cut in range(1, 12):
        first, ran = engine(), Ran()
        first.admit(request("a", range(30), 12, sampling=sampling))
        while len(ran.tokens.get("a", ())) < cut:
            step(first, ran)
        checkpoint = first.checkpoint("a")
        assert checkpoint is not None
        rest = run(engine(), checkpoint)

        assert ran.tokens["a"] + rest.tokens["a"] == whole.tokens["a"]
        assert rest.outs["a"][0].index == cut
        assert rest.finished["a"].usage == whole.finished["a"].usage


def test_what_had_all_its_tokens_when_it_was_cut_is_over_at_once() -> None:
    """By its length, or by its last token."""
    ran = run(
        engine(),
        request("length", prefix_out=range(8), max_new=8),
        request("stop", prefix_out=(1, 9), max_new=8, stop_ids=frozenset({9})),
    )

    assert ran.tokens == {}
    assert (ran.finished["length"].reason, ran.finished["stop"].reason) == ("length", "stop")
    assert ran.finished["stop"].stop_id == 9


def test_an_abort_always_has_its_end() -> None:
    """Of a running and of a waiting sequence; of none there is nothing to end."""
    made = SimEngine(limits=SchedulerLimits(max_running=1))
    ran = Ran()
    made.admit(request("running"))
    made.admit(request("waiting"))
    step(made, ran)
    for name in ("running", "waiting", "unknown"):
        made.abort(name)
    step(made, ran)

    assert {name: each.reason for name, each in ran.finished.items()} == {"running": "aborted", "waiting": "aborted"}
    assert ran.finished["running"].usage.completion_tokens == 1
    assert not made.has_work()
    assert made.checkpoint("running") is None


def test_a_second_sequence_of_one_name_and_one_too_many_are_refused() -> None:
    """With what to do."""
    made = SimEngine(limits=SchedulerLimits(max_waiting=2))
    made.admit(request("a"))
    with pytest.raises(EngineRefusal, match="a sequence 'a' already"):
        made.admit(request("a"))
    made.admit(request("b"))
    with pytest.raises(EngineRefusal, match="2 sequences wait already") as refused:
        made.admit(request("c"))

    assert refused.value.kind == "no_room"


def test_a_lack_of_memory_halves_the_step_and_tries_once_more() -> None:
    """Nobody notices; when all goes well for long the step grows back."""
    made = engine()
    made.steps_without_memory = 1
    ran = run(made, request("a", range(200), 4))

    assert len(ran.tokens["a"]) == 4
    assert made.stats().token_budget == 32

    run(made, request("b", max_new=STEPS_TO_GROW))
    assert made.stats().token_budget == 64


def test_a_lack_that_persists_ends_the_youngest_alone() -> None:
    """The others go on."""
    made = engine()
    ran = Ran()
    made.admit(request("old", max_new=20))
    step(made, ran)
    made.admit(request("new", range(100)))
    made.steps_without_memory = 2
    step(made, ran)
    assert ran.failed["new"].kind == "out_of_memory"
    while made.has_work():
        step(made, ran)

    assert len(ran.tokens["old"]) == 20


def test_a_pick_that_is_no_token_ends_its_sequence_alone() -> None:
    """With its usage."""
    made = engine()
    made.harmed.add("a")
    ran = run(made, request("a"), request("b"))

    assert ran.failed["a"].kind == "not_a_number"
    assert ran.failed["a"].usage.completion_tokens == 0
    assert len(ran.tokens["b"]) == 8


def test_nobody_finds_what_a_failed_sequence_stored() -> None:
    """Or it would fail again."""
    made = engine()
    made.harmed.add("a")
    ran = run(made, request("a", range(64)))
    ran = run(made, request("b", range(64)))

    assert ran.finished["b"].usage.cached_tokens == 0


def test_equal_prompts_share_what_is_stored_by_salt_and_adapter() -> None:
    """Nobody else's."""
    made = engine()
    prompt = range(100)
    run(made, request("first", prompt, salt="s"))
    asked: dict[str, Any] = {
        "same": {"salt": "s"},
        "salt": {"salt": "t"},
        "none": {},
        "adapter": {"salt": "s", "adapter": "a"},
    }
    ran = run(made, *(request(name, prompt, **others) for name, others in asked.items()))
    cached = {name: each.usage.cached_tokens for name, each in ran.finished.items()}

    assert cached == {"same": 96, "salt": 0, "none": 0, "adapter": 0}


def test_an_adapter_of_other_content_shares_nothing_with_the_one_before() -> None:
    """Under the same name."""
    made = engine()
    run(made, request("first", range(100), adapter="a"))
    made.load_adapter(AdapterSource(name="a", folder=Path("a"), digest="other"))
    ran = run(made, request("second", range(100), adapter="a"))

    assert ran.finished["second"].usage.cached_tokens == 0


def test_adapters_are_loaded_when_they_are_needed_and_go_for_others() -> None:
    """A sequence whose adapter has no room beside those in use waits for it."""
    made = engine(adapter_bytes=4, max_adapter_bytes=8)
    assert (made.adapters(), made.stats().adapters) == (("a", "b", "c"), ())

    ran = run(made, request("1", adapter="a"), request("2", adapter="b"), request("3", adapter="c"), steps=1)
    assert set(made.stats().adapters) == {"a", "b"}
    assert made.stats().waiting == 1

    while made.has_work():
        step(made, ran)
    assert len(ran.tokens["3"]) == 8
    assert "c" in made.stats().adapters


def test_whoever_waits_for_its_adapter_s_room_does_not_wait_for_all_who_come() -> None:
    """No sequence of another adapter begins before it; one without does."""
    made = engine(adapter_bytes=4, max_adapter_bytes=4)
    ran = run(made, request("first", adapter="a"), steps=2)
    made.admit(request("waits", adapter="b", tenant="b"))
    for number in range(30):
        made.admit(request(f"a{number}", adapter="a", tenant="a"))
        step(made, ran)
        if "waits" in ran.tokens:
            break
    made.admit(request("plain"))
    assert "waits" in ran.tokens
    while made.has_work():
        step(made, ran)

    assert all(len(tokens) == 8 for tokens in ran.tokens.values())


def test_an_aborted_sequence_keeps_nobody_waiting() -> None:
    """Nor does its adapter."""
    made = engine(adapter_bytes=4, max_adapter_bytes=4)
    run(made, request("first", adapter="a"), request("waits", adapter="b"), steps=1)
    made.abort("waits")
    ran = run(made, request("next", adapter="a"), steps=1)

    assert "next" in ran.tokens


def test_an_adapter_that_cannot_be_read_ends_its_sequences_alone() -> None:
    """Also those that wait."""
    made = engine()
    made.unreadable.add("a")
    ran = run(made, request("1", adapter="a"), request("2", adapter="a"), request("3"))

    assert {name: each.kind for name, each in ran.failed.items()} == {"1": "no_adapter", "2": "no_adapter"}
    assert len(ran.tokens["3"]) == 8


def test_a_forgotten_adapter_is_kept_for_what_uses_it() -> None:
    """New requests cannot name it."""
    made = engine()
    ran = run(made, request("1", adapter="a"), steps=1)
    made.unload_adapter("a")
    with pytest.raises(EngineRefusal, match="no adapter 'a'"):
        made.admit(request("2", adapter="a"))
    while made.has_work():
        step(made, ran)

    assert len(ran.tokens["1"]) == 8
    assert (made.adapters(), made.stats().adapters) == (("b", "c"), ())


def test_an_adapter_is_not_replaced_under_a_sequence() -> None:
    """Nor made known if it cannot be read."""
    made = engine()
    run(made, request("1", adapter="a"), steps=1)
    with pytest.raises(EngineRefusal, match="sequences run on another"):
        made.load_adapter(AdapterSource(name="a", folder=Path("a"), digest="other"))
    made.unreadable.add("d")
    with pytest.raises(EngineRefusal, match="unreadable"):
        made.load_adapter(AdapterSource(name="d", folder=Path("d")))

    assert "d" not in made.adapters()


def test_a_sleeping_engine_does_nothing_and_then_goes_on() -> None:
    """With the same tokens."""
    whole = run(engine(), request("a", range(40))).tokens["a"]
    made = engine()
    ran = run(made, request("a", range(40)), steps=3)
    made.sleep(1)
    assert not made.has_work()
    assert made.step() == []
    assert made.stats().kv_used == 0
    with pytest.raises(EngineRefusal, match="sleeps"):
        made.load_adapter(ADAPTERS[0])
    made.wake()
    while made.has_work():
        step(made, ran)

    assert ran.tokens["a"] == whole


def test_statistics_count_what_was_done() -> None:
    """Room by blocks."""
    made = engine(kv_tokens=160, page=16)
    ran = run(made, request("a", range(20), 5), steps=2)
    stats = made.stats()

    assert (stats.prefill_tokens, stats.decode_tokens, stats.running, stats.steps) == (20, 1, 1, 2)
    assert (stats.kv_used, stats.kv_total) == (32, 160)
    assert stats.step_ms > 0
    while made.has_work():
        step(made, ran)
    assert made.stats().kv_used == 0


@pytest.mark.parametrize(
    "late",
    [
        pytest.param(request("late", adapter="b", tenant="t", priority=1), id="before-it-in-its-own-queue"),
        pytest.param(request("late", range(400), 5, adapter="b", tenant="a"), id="of-a-tenant-that-closes-the-queue"),
    ],
)
def test_calls_of_two_adapters_do_not_wait_for_each_other_for_ever(late: GenRequest) -> None:
    """One waits for room for its adapter, which comes; another one, of another adapter, has the turn before it."""
    made = engine(adapter_bytes=1, max_adapter_bytes=1, kv_tokens=640)
    ran = run(made, request("c", range(20), 20, adapter="c", tenant="u"), steps=1)
    made.admit(request("a", range(20), 5, adapter="a", tenant="t"))
    step(made, ran)
    made.admit(late)
    for _ in range(100):
        step(made, ran)

    assert set(ran.finished) == {"c", "a", "late"}
