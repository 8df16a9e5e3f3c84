"""The class that containers of an engine function serve: `generate` and `embed`, as any asynchronous class has methods.

Units, cancels, windows of streams and their states are those of the guest that runs it. A call that is cancelled leaves
the engine; one whose reader does not read is paused by the guest, which takes no chunk, and by the inbox then.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import sys
import time
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from functools import partial
from typing import Any, TypeVar

from pilotlight_core.model.engines.call_facts import CALL_FACTS
from pilotlight_core.model.engines.engine_spec import EngineSpec
from pilotlight_core.model.engines.generation import UnfitGeneration
from pilotlight_core.model.messages.engine_report import MOST_ADAPTERS_TOLD, EngineReport, report_engine
from pilotlight_core.model.messages.running_code import COUNTING, RUNNING_CALL, add_units
from pilotlight_core.model.streams.running_stream import RUNNING_STREAM, StatefulStream
from pilotlight_engine.engine_port import EngineRefusal, EngineStats, Failed, Finished, GenRequest
from pilotlight_engine.serving.answer import AnswerChunk, GeneratedAnswer
from pilotlight_engine.serving.answer_state import (
    EVERY,
    MOST_TOKENS,
    AnswerState,
    decode_state,
    encode_state,
    packed,
)
from pilotlight_engine.serving.engine_opening import open_engine, weights_folder
from pilotlight_engine.serving.generation_reader import (
    LONG_TEXT,
    GenerationDocument,
    GenerationRead,
    GenerationReader,
)
from pilotlight_engine.serving.step_thread import StepThread
from pilotlight_engine.serving.token_inbox import TokenInbox
from pilotlight_engine.serving.token_pace import PaceFigures
from pilotlight_engine.text.chat_template import template_of
from pilotlight_engine.text.text_tokenizer import tokenizer_of

MOST_TOGETHER, MOST_WITH_LOGPROBS = 64, 8
"""Tokens of one chunk: a state has it too, and is bounded."""
T = TypeVar("T")
EMBED_TOGETHER = 8
"""Texts whose vectors are computed between two steps of answers."""
MOST_SEED = 2**64 - 1
ABORT_S = 2.0
"""How long the end of a call waits for the engine's word, at the most: for a step."""
DEVICE_DEAD = 69
"""How a process ends whose device is lost: the platform starts another one, in which streams go on."""


class EngineFailed(RuntimeError):
    """A sequence that the engine could not go on with; the message says why."""


class EngineFunction:
    """One engine and its calls. `load` comes first, in the event loop of the calls."""

    def __init__(self, spec: EngineSpec) -> None:
        self._spec = spec
        self._reader: GenerationReader
        self._thread: StepThread

    async def load(self) -> None:
        """Read the weights and make the engine. Raises ValueError if they are not what it takes."""
        folder = weights_folder(self._spec.weights)
        tokenizer = tokenizer_of(folder)
        engine = open_engine(self._spec, tokenizer)
        self._reader = GenerationReader(
            tokenizer=tokenizer,
            template=template_of(folder, self._spec.chat_template),
            capabilities=engine.capabilities(),
            adapters=self._spec.adapters,
        )
        self._thread = StepThread(engine, end_process, report_stats)
        self._thread.start()

    async def close(self) -> None:
        """End the engine's thread, and the process that some engines have."""
        self._thread.close()
        if (end := getattr(self._thread.engine, "close", None)) is not None:
            await asyncio.to_thread(end)

    async def park(self) -> None:
        """Leave the device: weights go to the host's memory."""
        await self._thread.run(lambda: self._thread.engine.sleep(1))

    async def unpark(self) -> None:
        """Return to the device."""
        await self._thread.run(self._thread.engine.wake)

    async def embed(self, input: list[str]) -> dict[str, Any]:  # noqa: A002 - its name on the wire
        """A vector for each text."""
        is_short = sum(map(len, input)) < LONG_TEXT
        ids = await self._read(partial(self._reader.input_ids, input), is_short=is_short)
        vectors: list[list[float]] = []
        try:
            for first in range(0, len(ids), EMBED_TOGETHER):
                few = ids[first : first + EMBED_TOGETHER]
                vectors += await self._thread.run(partial(self._thread.engine.embed, few))
                add_units(COUNTING.get(), {"prompt_tokens": sum(map(len, few))})  # a cancelled call pays for them too
        except EngineRefusal as error:
            raise UnfitGeneration(f"{error.field}: {error.text}") from error
        return {"embeddings": vectors, "prompt_tokens": sum(map(len, ids))}

    async def generate(
        self,
        prompt: str | None = None,
        prompt_ids: list[int] | None = None,
        messages: list[dict[str, Any]] | None = None,
        max_tokens: int | None = None,
        min_tokens: int = 0,
        temperature: float = 1.0,
        top_p: float = 1.0,
        top_k: int = 0,
        seed: int | None = None,
        stop: list[str] | None = None,
        ignore_eos: bool = False,
        logprobs: int | None = None,
        adapter: str = "",
        tools: list[dict[str, Any]] | None = None,
        tool_choice: str | dict[str, Any] | None = None,
        response_format: dict[str, Any] | None = None,
    ) -> AsyncIterator[AnswerChunk]:
        """The chunks of an answer; the last one has `finish_reason` and `usage`."""
        document = GenerationDocument(
            prompt=prompt,
            prompt_ids=prompt_ids,
            messages=messages,
            max_tokens=max_tokens,
            min_tokens=min_tokens,
            temperature=temperature,
            top_p=top_p,
            top_k=top_k,
            seed=seed,
            stop=stop,
            ignore_eos=ignore_eos,
            logprobs=logprobs,
            adapter=adapter,
            tools=tools,
            tool_choice=tool_choice,
            response_format=response_format,
            at=began_at(saved := saved_state()),
        )
        asked = await self._read(partial(self._reader.read, document), is_short=document.is_short)
        running = _RunningAnswer(self._reader, self._thread, asked, saved or fresh_state(asked, document.at))
        try:
            async for chunk in running.chunks():
                yield chunk
        finally:
            await running.close()

    async def _read(self, read: Callable[[], T], *, is_short: bool) -> T:
        """What `read` returns: other calls do not wait for what takes long."""
        return read() if is_short else await asyncio.to_thread(read)


class _RunningAnswer:
    """One call of `generate`, here or after another container."""

    def __init__(self, reader: GenerationReader, thread: StepThread, asked: GenerationRead, state: AnswerState) -> None:
        self._asked = asked
        self._thread = thread
        self._call_id = RUNNING_CALL.get()
        self._inbox = TokenInbox()
        self._stream = resumable_stream()
        self._state = state
        self._answer = GeneratedAnswer(asked, reader.tokenizer, reader.capabilities.eos_ids, self._call_id)
        self._answer.repeat(self._state.token_ids)
        self._goes_on = state.is_saved
        draws_anew = not reader.capabilities.seeded_resume and asked.sampling.temperature > 0
        self._never_repeats = draws_anew or asked.logprobs is not None
        """Its chunks would not come again byte for byte, so that a state tells of each of them."""
        self._singles = 0
        """Chunks since the last state."""
        self._is_over = False
        self._usage: dict[str, int] = self._answer.usage(0) if self._goes_on else {}
        """As the last chunk that was yielded makes it, here or elsewhere."""

    async def chunks(self) -> AsyncIterator[AnswerChunk]:
        if self._goes_on:
            if (chunk := self._state.chunk) is not None:  # the last container said so, and may have sent it
                self._answer.repeat(chunk["token_ids"])
                self._state.chunk, self._is_over = None, self._state.has_ended
                yield self._given(chunk)
            tokens = len(self._answer.tokens)
            self._state.single_until = max(self._state.single_until, tokens + EVERY)
            if not self._is_over and self._answer.is_complete:
                yield self._given(self._end_alone())
        if not self._is_over:
            self._thread.admit(self._request(), self._inbox)
        while not self._is_over:
            await self._inbox.wait_news()
            chunk = await self._next_chunk()
            self._thread.note_read(self._inbox)
            yield self._given(chunk)

    async def close(self) -> None:
        """The call is over, or nobody wants it any more: leave the engine, and count it."""
        inbox = self._inbox
        if not self._usage and inbox.engine_id and not inbox.is_over:
            with suppress(TimeoutError):  # it is counted in the call: the engine says what it has read of the prompt
                async with asyncio.timeout(ABORT_S):
                    await self._thread.stop(inbox)
        counts = self._counts()
        if not inbox.is_over:
            self._thread.abort(inbox)
        if counts:
            add_units(COUNTING.get(), {name: count for name, count in counts.items() if count})

    def _counts(self) -> dict[str, int]:
        """The units of the call, each token once: a stored one of the prompt is no computed one. What was computed and
        nobody has read, since the call was cancelled, counts as what was read does.
        """
        inbox = self._inbox
        if self._usage:
            prompt, cached = self._usage["prompt_tokens"], self._usage["cached_tokens"]
            made = self._usage["completion_tokens"] if self._is_over else self._made
        elif isinstance(inbox.end, Finished):
            prompt, made = inbox.end.usage.read_tokens, inbox.end.usage.completion_tokens
            cached = min(prompt, inbox.end.usage.cached_tokens)
        elif inbox.paused is not None:
            prompt, made, cached = len(self._asked.prompt_ids), self._made, inbox.cached or 0
        else:
            return {}
        return {"prompt_tokens": prompt - cached, "completion_tokens": made, "cached_tokens": cached}

    @property
    def _made(self) -> int:
        """Tokens of the answer so far, read or not."""
        return len(self._answer.tokens) + len(self._inbox.tokens)

    def _request(self) -> GenRequest:
        asked, facts = self._asked, CALL_FACTS.get()
        return GenRequest(
            id=self._call_id or f"local-{id(self)}",
            tenant=facts.tenant,
            prompt_ids=asked.prompt_ids,
            prefix_out=tuple(self._answer.tokens),
            max_new=asked.max_new,
            min_new=asked.min_new,
            sampling=asked.seeded(self._state.seed),
            ignore_eos=asked.ignore_eos,
            logprobs=asked.logprobs,
            adapter=asked.adapter,
            salt=facts.salt or self._call_id,  # of a gateway that does not say whose it is: it shares nothing
            weight=facts.weight,
            priority=facts.priority,
        )

    async def _next_chunk(self) -> AnswerChunk:
        """The chunk of what is there, which a state tells of before, unless it has one token."""
        inbox = self._inbox
        before = len(self._answer.tokens)
        is_single = before < self._state.single_until or before >= MOST_TOKENS
        tokens = inbox.take(1 if is_single else MOST_TOGETHER if self._asked.logprobs is None else MOST_WITH_LOGPROBS)
        if not tokens:
            self._raise_failure()
        chunk = self._answer.chunk(tokens)
        if self._answer.has_stopped and not inbox.is_over:
            await self._thread.stop(inbox)
        if self._answer.has_stopped or (inbox.is_over and not inbox.tokens):
            if not self._answer.has_stopped and not isinstance(inbox.end, Finished):
                self._raise_failure()
            self._is_over = True
            is_cut = isinstance(inbox.end, Finished) and inbox.end.reason == "length"
            chunk = self._answer.ended(chunk, is_cut=is_cut and not self._answer.has_stopped, cached=inbox.cached or 0)
        self._singles += 1
        announced = len(chunk["token_ids"]) != 1 or self._is_over or not before or self._never_repeats
        if announced or self._singles >= EVERY:
            self._save(before, chunk if announced else None)
        return chunk

    def _end_alone(self) -> AnswerChunk:
        """The last chunk of an answer whose tokens were all yielded elsewhere, but not how it ended."""
        self._is_over = True
        is_cut = len(self._answer.tokens) >= self._asked.max_new
        chunk = self._answer.ended({"text": "", "token_ids": []}, is_cut=is_cut, cached=0)
        self._save(len(self._answer.tokens), chunk)
        return chunk

    def _save(self, before: int, chunk: AnswerChunk | None) -> None:
        """Save the state behind the chunks that were yielded, which have `before` tokens, with the next chunk."""
        self._singles = 0
        if self._stream is None or before >= MOST_TOKENS:
            return
        state = self._state
        state.tokens, state.chunk, state.has_ended = packed(self._answer.tokens[:before]), chunk, self._is_over
        if why := self._stream.save_state(encode_state(state)):
            raise RuntimeError(why)

    def _given(self, chunk: AnswerChunk) -> AnswerChunk:
        """A chunk that is yielded now, from which on it is counted."""
        self._usage = chunk.get("usage") or self._answer.usage(self._inbox.cached or 0)
        return chunk

    def _raise_failure(self) -> None:
        """Nothing came: why. Raises UnfitGeneration or EngineFailed, and returns if it ended in order."""
        refusal, end = self._inbox.refusal, self._inbox.end
        if isinstance(refusal, EngineRefusal):
            raise UnfitGeneration(f"{refusal.field}: {refusal.text}") from refusal
        if refusal is not None:
            raise refusal
        if isinstance(end, Failed):
            raise EngineFailed(f"{end.kind}: {end.text}")


def resumable_stream() -> StatefulStream | None:
    """The stream that runs, if it can go on elsewhere."""
    stream = RUNNING_STREAM.get()
    return stream if stream is not None and stream.is_resumable else None


def saved_state() -> AnswerState | None:
    """What the last container saved of the answer that runs; None: it begins here."""
    stream = resumable_stream()
    saved = stream.read_state() if stream is not None else b""
    return decode_state(saved) if saved else None


def began_at(saved: AnswerState | None) -> float:
    """When the call began, in unix seconds: templates say it, wherever it goes on."""
    return saved.at if saved is not None else time.time()


def fresh_state(asked: GenerationRead, at: float) -> AnswerState:
    """That of an answer which begins now."""
    return AnswerState(seed=seed_of(asked, RUNNING_CALL.get()), at=at)


def seed_of(asked: GenerationRead, call_id: str) -> int:
    """The seed of a call: its own, or one of its id, which is the same wherever it goes on."""
    if asked.seed is not None:
        seed = asked.seed & MOST_SEED
        return seed if seed <= MOST_SEED >> 1 else seed - MOST_SEED - 1
    return int.from_bytes(hashlib.sha256(call_id.encode() or os.urandom(16)).digest()[:7], "little")


def report_stats(stats: EngineStats, pace: PaceFigures) -> None:
    """Have the agent know how the engine is."""
    report_engine(
        EngineReport(
            kv_used=stats.kv_used,
            kv_total=stats.kv_total,
            running=stats.running,
            waiting=stats.waiting,
            prefill_tokens=stats.prefill_tokens,
            decode_tokens=stats.decode_tokens,
            preempted=stats.preempted,
            prefix_tokens=stats.prefix_tokens,
            adapters=stats.adapters[:MOST_ADAPTERS_TOLD],
            step_us=round(stats.step_ms * 1000),
            token_budget=stats.token_budget,
            steps=stats.steps,
            first_token_ms=pace.first_s * 1000,
            inter_token_ms=pace.between_s * 1000,
            waited_ms=pace.waited_s * 1000,
        )
    )


def end_process(why: str) -> None:
    """The engine is lost, and with it this process: another container takes its calls."""
    with suppress(Exception):
        print(f"pilotlight: the engine is lost, so this container ends: {why}", file=sys.stderr, flush=True)  # noqa: T201
    os._exit(DEVICE_DEAD)
