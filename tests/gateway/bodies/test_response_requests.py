"""Requests for responses, and what they come to."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from pilotlight_core.model.errors import BadInput
from pilotlight_gateway.bodies.response_requests import LONGEST_KEPT, MOST_ITEMS, read_response


def asked(**fields: Any) -> dict[str, Any]:
    """The fields of the generation document."""
    request = read_response(msgspec.json.encode({"model": "m", "input": "hi", **fields}))
    return {name: msgspec.json.decode(raw) for name, raw in request.fields.items()}


def test_a_text_is_what_a_user_says() -> None:
    """Behind the instructions."""
    assert asked(instructions="Be kind.")["messages"] == [
        {"role": "system", "content": "Be kind."}, {"role": "user", "content": "hi"},
    ]  # fmt: skip


def test_calls_of_tools_that_follow_each_other_are_one_message() -> None:
    """As chats have them."""
    calls = [{"type": "function_call", "call_id": f"c{n}", "name": "f", "arguments": "{}"} for n in range(2)]
    messages = asked(input=[*calls, {"role": "user", "content": "go on"}, calls[0]])["messages"]
    assert [len(message.get("tool_calls", ())) for message in messages] == [2, 0, 1]


@pytest.mark.parametrize(
    ("given", "form"),
    [
        ({"format": {"type": "text"}}, None),
        ({}, None),
        ({"format": {"type": "json_object"}}, {"type": "json_object"}),
        (
            {"format": {"type": "json_schema", "name": "n", "schema": {"type": "object"}, "strict": True}},
            {"type": "json_schema", "json_schema": {"name": "n", "schema": {"type": "object"}, "strict": True}},
        ),
    ],
)
def test_the_form_of_an_answer(given: dict[str, Any], form: Any) -> None:
    """In the words of chats."""
    assert asked(text=given).get("response_format") == form


@pytest.mark.parametrize(
    ("more", "field"),
    [
        ({"input": None}, "input"),
        ({"input": 7}, "input"),
        ({"input": [{"type": "item_reference", "id": "x"}]}, "input.0.type"),
        ({"input": [{"role": "user", "content": [{"type": "input_image", "image_url": "x"}]}]}, "input.0.content"),
        ({"input": [{"content": "nobody says it"}]}, "input.0.type"),
        ({"tools": [{"type": "web_search"}]}, "tools"),
        ({"tool_choice": {"type": "file_search"}}, "tool_choice"),
        ({"text": {"format": {"type": "grammar"}}}, "text.format"),
        ({"background": True}, "background"),
        ({"conversation": "c"}, "conversation"),
        ({"prompt": {"id": "p"}}, "prompt"),
        ({"truncation": "all"}, "truncation"),
        ({"top_logprobs": 99}, "top_logprobs"),
        ({"input": [{"role": "user", "content": ""}] * (MOST_ITEMS + 1)}, "input"),
    ],
)
def test_what_is_wrong_or_not_there_is_named(more: dict[str, Any], field: str) -> None:
    """As a mistake of the request."""
    with pytest.raises(BadInput) as refused:
        asked(**more)
    assert refused.value.wire_code == "bad_request"
    assert refused.value.more["field"] == field


def test_braces_in_a_text_are_no_items() -> None:
    """However many: code has some."""
    assert asked(input=[{"role": "user", "content": "{" * (MOST_ITEMS + 1)}])["messages"][0]["role"] == "user"


def test_an_answer_repeats_what_is_short() -> None:
    """What is long it does not."""
    body = {"model": "m", "input": "hi", "metadata": {"a": "b"}, "instructions": "x" * LONGEST_KEPT, "new": 1}
    request = read_response(msgspec.json.encode(body))
    assert set(request.kept) == {"metadata"}
    assert request.ignored == ("new",)


def test_likely_tokens_are_asked_for_by_either_word() -> None:
    """Or are not."""
    assert asked(include=["message.output_text.logprobs"])["logprobs"] == 0
    assert asked(top_logprobs=3)["logprobs"] == 3
    assert "logprobs" not in asked(include=["reasoning.encrypted_content"])
