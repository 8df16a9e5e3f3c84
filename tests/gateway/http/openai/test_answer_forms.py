"""What the forms share."""

from __future__ import annotations

from pilotlight_gateway.http.openai.answer_forms import logprobs_document, sse, usage_document
from pilotlight_gateway.http.openai.generation_chunks import ChunkUsage, TokenLogprob, TopToken


def test_an_event_is_one_line_of_data() -> None:
    """Without a name, a number, or a break that a text brings."""
    assert sse({"text": "a\n\nb: \r"}) == b'data: {"text":"a\\n\\nb: \\r"}\n\n'


def test_usage_has_its_sum() -> None:
    """And what was cached."""
    told = usage_document(ChunkUsage(3, 4, 1))
    assert (told["total_tokens"], told["prompt_tokens_details"]) == (7, {"cached_tokens": 1})


def test_a_token_is_told_with_its_bytes() -> None:
    """Half a character has some too."""
    told = logprobs_document((TokenLogprob("é", -0.1, top=(TopToken("\ufffd", -3.0),)),))
    assert told["content"][0]["bytes"] == [195, 169]
    assert told["content"][0]["top_logprobs"][0]["bytes"] == [239, 191, 189]
