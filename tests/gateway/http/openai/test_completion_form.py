"""Completions, as their routes answer."""

from __future__ import annotations

from pilotlight_gateway.http.openai.answer_forms import AnswerHead
from pilotlight_gateway.http.openai.completion_form import CompletionStream, completion_document
from pilotlight_gateway.http.openai.generated_text import GeneratedText
from pilotlight_gateway.http.openai.generation_chunks import ChunkUsage, GenerationChunk, TokenLogprob
from tests.gateway.http.openai.test_chat_form import events

HEAD = AnswerHead(call_id="call_1", model="m", created_at=7)


def test_offsets_go_on_over_chunks() -> None:
    """Each token's place in the text so far."""
    stream = CompletionStream(HEAD, include_usage=False)
    found = []
    for text in ("ab", "c"):
        (event,) = events(stream.chunk(GenerationChunk(text, logprobs=(TokenLogprob(text, -1.0),))))
        assert isinstance(event, dict)
        found += event["choices"][0]["logprobs"]["text_offset"]
    assert found == [0, 2]
    assert stream.begin() == stream.chunk(GenerationChunk()) == b""


def test_the_end_has_reason_and_usage() -> None:
    """And then no more."""
    stream = CompletionStream(HEAD, include_usage=True)
    stream.chunk(GenerationChunk(finish_reason="length", usage=ChunkUsage(1, 1)))
    last, told, done = events(stream.end(None))
    assert isinstance(last, dict)
    assert isinstance(told, dict)
    assert (last["choices"][0]["finish_reason"], told["usage"]["total_tokens"], done) == ("length", 2, b"[DONE]")


def test_a_whole_answer() -> None:
    """Without usage if nobody has counted."""
    text = GeneratedText()
    text.add(GenerationChunk("ab"))
    told = completion_document(HEAD, text, None)
    assert (told["choices"][0]["text"], told["object"], "usage" in told) == ("ab", "text_completion", False)
