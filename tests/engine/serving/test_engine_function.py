"""Calls of an engine function: streams, what they cost, and how they end and go on."""

from __future__ import annotations

import asyncio
import os
import threading
from dataclasses import dataclass
from typing import Any

import pytest

from pilotlight import Sim
from pilotlight_core.model import values
from pilotlight_core.model.engines.call_facts import CallFacts
from pilotlight_core.model.messages.call_messages import Outcome
from pilotlight_core.model.messages.running_code import COUNTING
from pilotlight_engine.serving import token_inbox
from pilotlight_engine.serving.answer_state import AnswerState, encode_state, packed
from pilotlight_runtime.guest.frames import ChunkOut, StreamStart
from tests.engine.serving.engine_guest import EngineCall, EngineGuest, engine_guest
from tests.waiting import until

PROMPT = "Once upon a time there was an old engine"
COUNT = len(PROMPT)
"""Of its tokens."""
LONG: dict[str, Any] = {"prompt": PROMPT, "max_tokens": 150, "ignore_eos": True, "seed": 7}


async def test_an_answer_is_chunks_of_text_and_the_last_says_how_it_ended_and_what_it_took() -> None:
    async with engine_guest() as guest:
        call = await guest.run(**LONG)

        assert call.result is not None
        assert call.result.outcome is Outcome.OK
        assert len(call.token_ids) == 150
        last = call.chunks[-1]
        assert last["finish_reason"] == "length"
        assert last["usage"] == {"prompt_tokens": COUNT, "completion_tokens": 150, "cached_tokens": 0}
        assert [chunk for chunk in call.chunks[:-1] if "usage" in chunk] == []
        assert call.result.units == {"prompt_tokens": COUNT, "completion_tokens": 150}
        again = await guest.run("call_2", **LONG)
        assert again.text == call.text
        assert again.result is not None
        assert again.result.units is not None
        stored = again.result.units["cached_tokens"]
        assert stored > 0
        assert again.result.units["prompt_tokens"] == COUNT - stored  # each token is counted once


@pytest.mark.parametrize("facts", [None, CallFacts(tenant="other", salt="other")])
async def test_nobody_finds_what_another_tenant_has_stored(facts: CallFacts | None) -> None:
    """Nor a call of which the platform does not say whose it is, as a gateway of before does."""
    async with engine_guest() as guest:
        await guest.run(**LONG)
        for name in ("call_2", "call_3") if facts is None else ("call_2",):
            call = await guest.run(name, facts=facts, **LONG)
            assert call.chunks[-1]["usage"]["cached_tokens"] == 0


@pytest.mark.parametrize("step_ms", [0.0, 0.2])
async def test_cut_anywhere_it_goes_on_with_the_same_events(step_ms: float) -> None:
    """Also with those that its caller had already: their bytes are the same. Twice too."""
    async with engine_guest(Sim(step_ms=step_ms)) as first:
        whole = await first.run(**LONG)
    full = len(whole.chunks)
    for cut in {1, 2, full // 3, full // 2, full - 1, full}:
        async with engine_guest() as second:
            had, start = whole.cut(cut)
            rest = await second.run(start=start, **LONG)
        check_goes_on(whole, had, start, rest)
        more = len(rest.chunks) // 2 + 1
        async with engine_guest(Sim(step_ms=0.1)) as third:
            had_then, start_then = rest.cut(more, start)
            last = await third.run(start=start_then, **LONG)
        check_goes_on(whole, had | had_then, start_then, last)


def check_goes_on(whole: EngineCall, had: dict[int, bytes], start: StreamStart, rest: EngineCall) -> None:
    """The events of `had` and those that are new are the whole answer."""
    events = dict(had)
    for frame in rest.sent:
        if isinstance(frame, ChunkOut):
            assert frame.seq > start.after
            assert events.setdefault(frame.seq, frame.data) == frame.data
    chunks = [values.decode(events[seq]) for seq in sorted(events)]
    assert [token for chunk in chunks for token in chunk["token_ids"]] == whole.token_ids
    assert "".join(chunk["text"] for chunk in chunks) == whole.text
    assert chunks[-1]["usage"] == whole.chunks[-1]["usage"]
    assert rest.result is not None
    assert whole.result is not None
    assert rest.result.units == whole.result.units  # once, of the whole answer


async def test_an_answer_whose_end_was_not_said_ends() -> None:
    """All its tokens were sent, and its container was lost before the last chunk."""
    async with engine_guest() as guest:
        whole = await guest.run(**LONG)
    state = AnswerState(seed=7, at=1.0, tokens=packed(whole.token_ids))
    async with engine_guest() as other:
        rest = await other.run(start=StreamStart(after=9, state=encode_state(state)), **LONG)

    assert [(chunk["token_ids"], chunk["finish_reason"]) for chunk in rest.chunks] == [([], "length")]
    assert rest.chunks[0]["usage"]["completion_tokens"] == 150


@pytest.mark.parametrize("seed", [-1, -(2**63), 2**63, 2**64 - 1])
async def test_any_number_of_64_bits_is_a_seed(seed: int) -> None:
    """And says the same again."""
    async with engine_guest() as guest:
        calls = [await guest.run(name, **{**LONG, "seed": seed}) for name in ("call_a", "call_b")]

    assert len(calls[0].token_ids) == 150
    assert calls[0].text == calls[1].text


async def test_without_a_seed_it_goes_on_by_the_call() -> None:
    """Two calls differ, and one call says the same wherever it runs."""
    asked = {**LONG, "seed": None}
    async with engine_guest() as guest:
        texts = [(await guest.run(name, **asked)).text for name in ("call_a", "call_b")]
    async with engine_guest() as other:
        assert (await other.run("call_a", **asked)).text == texts[0]
    assert texts[0] != texts[1]


async def test_a_cancelled_call_leaves_the_engine_and_pays_for_what_it_got() -> None:
    async with engine_guest(Sim(step_ms=1)) as guest:
        call, task = guest.begin(**{**LONG, "max_tokens": 3000})
        await until(lambda: len(call.chunks) >= 3)
        guest.cancel("call_1")
        await task
        await until(lambda: not guest.engine.has_work())

    assert call.result is not None
    assert call.result.outcome is Outcome.CANCELLED
    assert call.result.units is not None
    assert 3 <= call.result.units["completion_tokens"] < 3000


async def test_a_cancelled_call_pays_for_what_was_computed_and_not_read() -> None:
    """Its reader has taken two chunks, and the engine went on until it had 256 tokens more."""
    async with engine_guest() as guest:
        call, task = guest.begin(window=2, **{**LONG, "max_tokens": 3000})
        await until(lambda: len(call.chunks) >= 2 and not guest.engine.has_work())
        computed = guest.engine.stats().decode_tokens + 1  # the first one comes of the prompt
        guest.cancel("call_1")
        await task

    assert computed > token_inbox.MOST_UNREAD
    assert call.result is not None
    assert call.result.units == {"prompt_tokens": COUNT, "completion_tokens": computed}


async def test_a_call_that_is_cancelled_before_its_first_chunk_pays_for_what_was_computed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Its sequence has left the engine, since nobody reads."""
    sink = _Counted()
    token = COUNTING.set(sink)
    try:
        async with engine_guest() as guest:
            news = asyncio.Event()
            monkeypatch.setattr(token_inbox.TokenInbox, "wait_news", lambda _: news.wait())
            chunks = guest.function.generate(**{**LONG, "max_tokens": 3000})
            first = asyncio.ensure_future(anext(chunks))
            await until(lambda: guest.engine.stats().decode_tokens > 0 and not guest.engine.has_work())
            computed = guest.engine.stats().decode_tokens + 1
            first.cancel()
            with pytest.raises(asyncio.CancelledError):
                await first
    finally:
        COUNTING.reset(token)

    assert sink.counted == [{"prompt_tokens": COUNT, "completion_tokens": computed}]


async def test_a_call_that_is_cancelled_while_its_prompt_is_read_pays_for_what_was_read() -> None:
    """Else a caller has prompts computed for nothing, and beyond its limits in tokens."""
    async with engine_guest(Sim(step_ms=5, max_sequences=1, max_tokens_per_step=16)) as guest:
        call, task = guest.begin(prompt="a" * 2000, max_tokens=5)
        waits, waiting = guest.begin("call_2", prompt="b" * 2000, max_tokens=5)
        await until(lambda: guest.engine.stats().prefill_tokens >= 64)
        guest.cancel("call_2")
        await waiting
        guest.cancel("call_1")
        await task
        assert not guest.engine.has_work()
        read = guest.engine.stats().prefill_tokens

    assert call.result is not None
    assert (call.result.outcome, call.result.units) == (Outcome.CANCELLED, {"prompt_tokens": read})
    assert read < 2000
    assert waits.result is not None
    assert not waits.result.units


async def test_a_call_that_is_cancelled_as_it_goes_on_pays_for_what_it_had() -> None:
    """Its container was lost behind the fiftieth token, and the next one has given none yet."""
    async with engine_guest() as guest:
        tokens = (await guest.run(**LONG)).token_ids[:50]
    state = AnswerState(seed=7, at=1.0, tokens=packed(tokens))
    async with engine_guest(Sim(step_ms=200)) as other:
        call, task = other.begin(start=StreamStart(after=50, state=encode_state(state)), **LONG)
        await until(other.engine.has_work)
        other.cancel("call_1")
        await task

    assert call.chunks == []
    assert call.result is not None
    assert call.result.units == {"prompt_tokens": COUNT, "completion_tokens": 50}


async def test_a_call_that_is_not_read_leaves_the_engine_until_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its keys and values are free meanwhile, and it says what it would have."""
    monkeypatch.setattr(token_inbox, "MOST_UNREAD", 8)
    monkeypatch.setattr("pilotlight_engine.serving.step_thread.MOST_UNREAD", 8)
    monkeypatch.setattr("pilotlight_engine.serving.step_thread.FEW_UNREAD", 2)
    async with engine_guest() as other:
        expected = (await other.run(**LONG)).text
    async with engine_guest() as guest:
        call, task = guest.begin(window=2, **LONG)
        await until(lambda: len(call.chunks) >= 2 and not guest.engine.has_work())
        assert guest.engine.stats().kv_used == 0
        assert not task.done()
        guest.read(call, "call_1", 10**6)
        await task

    assert call.text == expected
    assert len(call.chunks) < 150  # tokens that wait together share a chunk


async def test_a_stop_string_ends_an_answer_before_it() -> None:
    async with engine_guest() as guest:
        whole = await guest.run(**LONG)
        stop = whole.text[40:47]
        call = await guest.run("call_2", **LONG, stop=[stop])
        await until(lambda: not guest.engine.has_work())

    assert call.text == whole.text[: whole.text.index(stop)]
    assert call.chunks[-1]["finish_reason"] == "stop"
    assert 0 < call.chunks[-1]["usage"]["completion_tokens"] < 150


async def test_logprobs_come_with_each_token() -> None:
    async with engine_guest() as guest:
        call = await guest.run(prompt="a", max_tokens=5, ignore_eos=True, logprobs=2)

    logprobs = [one for chunk in call.chunks for one in chunk["logprobs"]]
    assert [one["id"] for one in logprobs] == call.token_ids
    assert len(logprobs[0]["top"]) == 2


@pytest.mark.parametrize(
    ("document", "text"),
    [
        ({}, "prompt: expected exactly one of"),
        ({"prompt": ""}, "prompt: it is empty"),
        ({"prompt_ids": [1, 9999]}, "prompt_ids.1: 9999 is no token"),
        ({"prompt": "a", "max_tokens": 5000}, "prompt: 1 tokens, and max_tokens=5000"),
        ({"prompt": "a", "adapter": "x"}, "adapter: there is no 'x'"),
    ],
)
async def test_what_does_not_fit_is_refused_by_its_field(document: dict[str, Any], text: str) -> None:
    async with engine_guest() as guest:
        call = await guest.run(**document)

    assert call.result is not None
    assert (call.result.outcome, call.result.units) == (Outcome.BAD_INPUT, None)
    assert call.result.error is not None
    assert text in call.result.error.message


async def test_texts_have_vectors() -> None:
    async with engine_guest() as guest:
        answer = await guest.function.embed(["one", "three"])

    assert [len(vector) for vector in answer["embeddings"]] == [16, 16]
    assert answer["prompt_tokens"] == 8


@dataclass
class _Counted:
    """What a call counts."""

    items: int = 0
    counted: list[dict[str, int]] | None = None


async def test_texts_whose_call_is_cancelled_are_paid_as_far_as_they_were_read(monkeypatch: pytest.MonkeyPatch) -> None:
    sink = _Counted()
    token = COUNTING.set(sink)
    try:
        async with engine_guest() as guest:
            embed, done = guest.engine.embed, asyncio.Event()
            loop, cancelled = asyncio.get_running_loop(), threading.Event()

            def embed_few(ids: list[list[int]]) -> Any:
                if sink.counted:
                    loop.call_soon_threadsafe(done.set)
                    cancelled.wait(10)
                return embed(ids)

            monkeypatch.setattr(guest.engine, "embed", embed_few)
            call = loop.create_task(guest.function.embed([PROMPT] * 24))
            await done.wait()
            call.cancel()
            cancelled.set()
            with pytest.raises(asyncio.CancelledError):
                await call
    finally:
        COUNTING.reset(token)

    assert sink.counted == [{"prompt_tokens": 8 * COUNT}]


async def test_a_harmed_call_fails_alone() -> None:
    async with engine_guest(Sim(step_ms=1)) as guest:
        beside, task = guest.begin("call_b", **{**LONG, "max_tokens": 30})
        call, harmed = guest.begin("call_a", **LONG)
        await until(lambda: bool(call.chunks))
        guest.engine.harmed.add("call_a/2")
        await harmed
        await task

    assert call.result is not None
    assert call.result.error is not None
    assert "not_a_number" in call.result.error.message
    assert beside.result is not None
    assert beside.result.outcome is Outcome.OK


async def test_a_lost_device_ends_the_process(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Another container goes on with its streams."""
    ended: list[int] = []
    monkeypatch.setattr(os, "_exit", ended.append)
    async with engine_guest() as guest:
        guest.engine.dead = True
        _, task = guest.begin(**LONG)
        await until(lambda: bool(ended))
        task.cancel()
        await task

    assert ended == [69]
    assert "the engine is lost" in capsys.readouterr().err


async def test_it_sleeps_while_it_is_parked() -> None:
    async with engine_guest(gpu="any") as guest:
        assert isinstance(guest, EngineGuest)
        await guest.function.park()
        await guest.function.unpark()
        assert (await guest.run(**LONG)).chunks
