"""Requests for text, and what they come to."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from pilotlight_core.model.errors import BadInput
from pilotlight_gateway.bodies.generation_requests import read_chat, read_completion

HI = [{"role": "user", "content": "hi"}]


def chat(**fields: Any) -> bytes:
    """A body."""
    return msgspec.json.encode({"model": "m", "messages": HI, **fields})


def fields_of(body: bytes) -> dict[str, Any]:
    """The fields of the generation document, read."""
    return {name: msgspec.json.decode(raw) for name, raw in read_chat(body).fields.items()}


def test_what_a_client_sends_becomes_the_generation_document() -> None:
    """Under the names of that; what is null is as if it were not there."""
    body = chat(
        max_tokens=1, max_completion_tokens=2, stop="x", seed=3, temperature=0.5, top_p=None, top_k=4, logprobs=True,
        top_logprobs=2, tools=[], response_format={"type": "json_object"}, stream=None,
    )  # fmt: skip
    assert fields_of(body) == {
        "messages": HI, "max_tokens": 2, "stop": ["x"], "seed": 3, "temperature": 0.5, "top_k": 4, "logprobs": 2,
        "tools": [], "response_format": {"type": "json_object"},
    }  # fmt: skip


@pytest.mark.parametrize(
    "more",
    [
        {"n": 1}, {"logit_bias": {}}, {"presence_penalty": 0}, {"frequency_penalty": 0.0}, {"modalities": ["text"]},
        {"response_format": {"type": "text"}}, {"functions": []}, {"stop": None},
    ],
)  # fmt: skip
def test_what_asks_for_nothing_is_let_in(more: dict[str, Any]) -> None:
    """As clients send it by themselves."""
    assert fields_of(chat(**more)) == {"messages": HI}


@pytest.mark.parametrize(
    ("more", "field"),
    [
        ({"n": 2}, "n"),
        ({"n": "x" * 10_000}, "n"),
        ({"logit_bias": {"1": 2}}, "logit_bias"),
        ({"presence_penalty": 0.1}, "presence_penalty"),
        ({"audio": {"voice": "x"}}, "audio"),
        ({"functions": [{"name": "x"}]}, "functions"),
        ({"model": ""}, "model"),
        ({"model": 7}, "model"),
        ({"messages": None}, "messages"),
        ({"stop": ["x"] * 17}, "stop"),
        ({"stop": [1]}, "stop.0"),
        ({"stop": "x" * 100_000}, "stop"),
        ({"top_logprobs": 1}, "top_logprobs"),
        ({"logprobs": True, "top_logprobs": -1}, "top_logprobs"),
        ({"logprobs": 1}, "logprobs"),
        ({"stream": "yes"}, "stream"),
        ({"stream_options": {"include_usage": 1}}, "stream_options.include_usage"),
    ],
)
def test_what_is_wrong_is_named(more: dict[str, Any], field: str) -> None:
    """As a mistake of the request, in the words of its fields."""
    with pytest.raises(BadInput) as refused:
        read_chat(chat(**more))
    assert refused.value.wire_code == "bad_request"
    assert str(refused.value.more["field"]).startswith(field.partition(".0")[0])
    assert refused.value.detail.startswith(field.partition(".")[0])


def test_usage_is_told_of_streams_alone() -> None:
    """Of a whole answer it always is."""
    options = {"include_usage": True, "continuous_usage_stats": True}
    assert read_chat(chat(stream=True, stream_options=options)).include_usage
    assert not read_chat(chat(stream_options=options)).include_usage


def test_what_nothing_goes_by_is_named() -> None:
    """Of chats a prompt too, of completions tools."""
    assert read_chat(chat(best="u", prompt="p")).ignored == ("best", "prompt")
    asked = read_completion(msgspec.json.encode({"model": "m", "prompt": "p", "tools": []}))
    assert asked.ignored == ("tools",)


@pytest.mark.parametrize(
    ("prompt", "name", "value"),
    [
        ("hi", "prompt", "hi"),
        (["hi"], "prompt", "hi"),
        ([1, 2], "prompt_ids", [1, 2]),
        ([[1, 2]], "prompt_ids", [1, 2]),
        ("[not a list", "prompt", "[not a list"),
    ],
)
def test_prompts(prompt: Any, name: str, value: Any) -> None:
    """A text, or the ids of its tokens; a list of one is that one."""
    fields = read_completion(msgspec.json.encode({"model": "m", "prompt": prompt})).fields
    assert {name: msgspec.json.decode(raw) for name, raw in fields.items()} == {name: value}


@pytest.mark.parametrize("prompt", [["a", "b"], [], {}, 7, True, [[1], [2]], [None], [{}]])
def test_no_prompts(prompt: Any) -> None:
    """Several are refused by name."""
    with pytest.raises(BadInput) as refused:
        read_completion(msgspec.json.encode({"model": "m", "prompt": prompt}))
    assert refused.value.more["field"] == "prompt"


def test_completions_count_likely_tokens() -> None:
    """0 asks for the chosen ones alone."""
    for count in (0, 5):
        asked = read_completion(msgspec.json.encode({"model": "m", "prompt": "p", "logprobs": count}))
        assert msgspec.json.decode(asked.fields["logprobs"]) == count
