"""Whole answers of chunks."""

from __future__ import annotations

import pytest

from pilotlight_core.model.errors import BadOutput
from pilotlight_gateway.http.openai.generated_text import MOST_TOKENS, MOST_TOOL_CALLS, GeneratedText
from pilotlight_gateway.http.openai.generation_chunks import (
    ChunkUsage,
    GenerationChunk,
    TokenLogprob,
    ToolCallPart,
    TopToken,
)


def test_chunks_are_one_answer() -> None:
    """The last word about end and usage counts."""
    text = GeneratedText()
    text.add(GenerationChunk("Hel", usage=ChunkUsage(1)))
    text.add(GenerationChunk("lo", finish_reason="length", usage=ChunkUsage(2)))
    assert (text.text, text.finish, text.usage) == ("Hello", "length", ChunkUsage(2))


def test_a_tool_is_put_together() -> None:
    """By its index; the first id and name stay."""
    text = GeneratedText()
    text.add(GenerationChunk(tool_calls=(ToolCallPart(0, "c", "look", "{"),)))
    text.add(GenerationChunk(tool_calls=(ToolCallPart(0, "x", "y", "}"), ToolCallPart(1, "d", "go"))))
    assert (text.tools[0].id, text.tools[0].name, "".join(text.tools[0].arguments)) == ("c", "look", "{}")
    assert text.finish == "tool_calls"


def test_an_answer_is_bounded() -> None:
    """In tools, and in what it says of tokens."""
    with pytest.raises(BadOutput):
        GeneratedText().add(GenerationChunk(tool_calls=tuple(map(ToolCallPart, range(MOST_TOOL_CALLS + 1)))))
    token = TokenLogprob("a", -1.0, top=(TopToken("b", -2.0),) * 20)
    text, chunk = GeneratedText(), GenerationChunk(logprobs=(token,) * 1_000)
    with pytest.raises(BadOutput):  # noqa: PT012 - it fails somewhere within
        for _ in range(MOST_TOKENS // 21_000 + 1):
            text.add(chunk)
