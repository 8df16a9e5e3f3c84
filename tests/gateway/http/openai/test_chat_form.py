"""Chats, as their routes answer."""

from __future__ import annotations

import msgspec

from pilotlight_gateway.http.openai.answer_forms import AnswerHead
from pilotlight_gateway.http.openai.chat_form import ChatStream, chat_document
from pilotlight_gateway.http.openai.generated_text import GeneratedText
from pilotlight_gateway.http.openai.generation_chunks import ChunkUsage, GenerationChunk, ToolCallPart

HEAD = AnswerHead(call_id="call_1", model='a"b', created_at=7, version="shop.tells@v1")


def events(written: bytes) -> list[object]:
    """What a client reads."""
    lines = [block.removeprefix(b"data: ") for block in written.split(b"\n\n") if block]
    return [line if line == b"[DONE]" else msgspec.json.decode(line) for line in lines]


def test_the_fast_way_writes_what_the_slow_one_does() -> None:
    """A text that is all of its chunk, whatever it is, and one beside a tool."""
    for text in ("hi", "\0", '","x":"', "é\n", "data: [DONE]"):
        stream = ChatStream(HEAD, include_usage=True)
        (fast,) = events(stream.chunk(GenerationChunk(text)))
        (slow,) = events(
            stream._event({"index": 0, "delta": {"content": text}, "logprobs": None, "finish_reason": None})
        )
        assert fast == slow


def test_an_empty_chunk_is_no_event() -> None:
    """But why it ended is kept for the end."""
    stream = ChatStream(HEAD, include_usage=False)
    assert stream.chunk(GenerationChunk(finish_reason="length")) == b""
    last, done = events(stream.end(None))
    assert isinstance(last, dict)
    assert last["choices"][0]["finish_reason"] == "length"
    assert done == b"[DONE]"


def test_usage_comes_last_and_only_if_it_is_known() -> None:
    """From a chunk, or else from what the call has counted."""
    stream = ChatStream(HEAD, include_usage=True)
    _, told, _ = events(stream.end(ChunkUsage(1, 2)))
    assert isinstance(told, dict)
    assert (told["choices"], told["usage"]["total_tokens"]) == ([], 3)
    assert len(events(ChatStream(HEAD, include_usage=True).end(None))) == 2
    assert len(events(ChatStream(HEAD, include_usage=False).end(ChunkUsage(1, 2)))) == 2


def test_the_version_that_answers_is_named() -> None:
    """Another one at the end, if that has answered in place of the first."""
    stream = ChatStream(HEAD, include_usage=False)
    first, last = events(stream.begin())[0], events(stream.end(None, "shop.small@v2"))[0]
    assert isinstance(first, dict)
    assert isinstance(last, dict)
    assert (first["system_fingerprint"], last["system_fingerprint"]) == ("shop.tells@v1", "shop.small@v2")
    assert chat_document(HEAD, GeneratedText(), None)["system_fingerprint"] == "shop.tells@v1"


def test_a_whole_answer_with_and_without_text() -> None:
    """Of called tools alone the content is null; of nothing it is empty."""
    text = GeneratedText()
    assert chat_document(HEAD, text, None)["choices"][0]["message"]["content"] == ""
    assert "usage" not in chat_document(HEAD, text, None)
    text.add(GenerationChunk(tool_calls=(ToolCallPart(3, "", "look", "{}"),)))
    message = chat_document(HEAD, text, ChunkUsage(1))["choices"][0]["message"]
    assert (message["content"], message["tool_calls"][0]["id"]) == (None, "call_3")
