"""Responses, as their routes answer."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from pilotlight_core.model.errors import BadOutput
from pilotlight_gateway.http.openai import response_form
from pilotlight_gateway.http.openai.answer_forms import AnswerHead
from pilotlight_gateway.http.openai.generated_text import GeneratedText
from pilotlight_gateway.http.openai.generation_chunks import ChunkUsage, GenerationChunk, ToolCallPart
from pilotlight_gateway.http.openai.response_form import ResponseStream, response_document

HEAD = AnswerHead(call_id="call_1", model="m", created_at=7)
TOOL = GenerationChunk(tool_calls=(ToolCallPart(0, "c", "look", "{}"),))


def events(written: bytes) -> list[dict[str, Any]]:
    """What a client reads."""
    return [msgspec.json.decode(block.removeprefix(b"data: ")) for block in written.split(b"\n\n") if block]


def told(*chunks: GenerationChunk) -> list[dict[str, Any]]:
    """All events of an answer."""
    stream = ResponseStream(HEAD, {"metadata": {"a": "b"}})
    return events(stream.begin() + b"".join(map(stream.chunk, chunks)) + stream.end(ChunkUsage(1, 2)))


@pytest.mark.parametrize(
    "chunks", [(), (GenerationChunk("a"),), (TOOL,), (GenerationChunk("a"), TOOL), (TOOL, GenerationChunk("a"))]
)
def test_events_are_numbered_and_the_last_has_all(chunks: tuple[GenerationChunk, ...]) -> None:
    """Its output is what a whole answer would have, in the order in which it came."""
    found = told(*chunks)
    assert [event["sequence_number"] for event in found] == list(range(len(found)))
    added = [event for event in found if event["type"] == "response.output_item.added"]
    done = {event["output_index"]: event["item"] for event in found if event["type"] == "response.output_item.done"}
    final = found[-1]["response"]
    assert [event["output_index"] for event in added] == list(range(len(added)))
    assert [done[place] for place in range(len(done))] == final["output"]
    assert final["usage"]["total_tokens"] == 3
    assert final["metadata"] == {"a": "b"}

    text = GeneratedText()
    for chunk in chunks:
        text.add(chunk)
    whole = response_document(HEAD, text, ChunkUsage(1, 2), {"metadata": {"a": "b"}})
    assert sorted(whole.pop("output"), key=str) == sorted(final.pop("output"), key=str)
    assert whole == final


def test_a_break_is_told_twice() -> None:
    """To who reads the response's state, and to stock clients, which raise by the second."""
    stream = ResponseStream(HEAD, {})
    stream.begin()
    stream.chunk(GenerationChunk("a"))
    failed, error = events(stream.fail({"message": "It died.", "type": "server_error", "param": None, "code": "x"}))
    assert (failed["type"], failed["response"]["status"]) == ("response.failed", "failed")
    assert error["error"]["code"] == "x"


def test_what_its_last_events_repeat_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of text, and of arguments."""
    monkeypatch.setattr(response_form, "ANSWER_BYTES", 10)
    for chunk in (GenerationChunk("x" * 11), GenerationChunk(tool_calls=(ToolCallPart(0, "", "", "x" * 11),))):
        with pytest.raises(BadOutput):
            ResponseStream(HEAD, {}).chunk(chunk)
