"""What a function takes of a generation document."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from pilotlight_core.model.errors import BadInput
from pilotlight_gateway.http.openai.function_inputs import call_body, fitted, method_called, parameters_of
from tests.builders.specs import method
from tests.gateway.http.openai.models import taking
from tests.gateway.world import function


def fields(**values: Any) -> dict[str, msgspec.Raw]:
    return {name: msgspec.Raw(msgspec.json.encode(value)) for name, value in values.items()}


def test_a_function_gets_what_it_has_parameters_for() -> None:
    """What else changes nothing of what the answer is about is named."""
    found = fitted(taking("messages", "max_tokens"), fields(messages=[], max_tokens=1, seed=3, adapter="x"), "m")
    assert set(found.arguments) == {"messages", "max_tokens"}
    assert found.ignored == ("seed", "adapter")


def test_one_that_takes_anything_gets_all() -> None:
    """By its schema, or without one."""
    asked = fields(messages=[], tools=[])
    for schema in ({}, {"type": "object", "properties": {}, "additionalProperties": True}):
        assert parameters_of(method(input_schema=schema)) is None
        assert fitted(method(input_schema=schema), asked, "m") == (asked, ())


@pytest.mark.parametrize("field", ["tools", "response_format", "stop", "logprobs", "tool_choice"])
def test_what_the_answer_has_to_obey_is_not_left_out(field: str) -> None:
    """It is refused, naming model and field."""
    with pytest.raises(BadInput, match=f"{field} is not supported by acme/m"):
        fitted(taking("messages"), fields(messages=[], **{field: []}), "acme/m")


def test_chats_and_completions_find_each_other() -> None:
    """A model for the one says where the other is."""
    with pytest.raises(BadInput, match="takes a prompt, and no messages: send it to /v1/completions"):
        fitted(taking("prompt"), fields(messages=[]), "m")
    with pytest.raises(BadInput, match="takes messages, and no prompt: send it to /v1/chat/completions"):
        fitted(taking("messages"), fields(prompt="x"), "m")
    with pytest.raises(BadInput, match="takes no messages"):
        fitted(taking("text"), fields(messages=[]), "m")
    with pytest.raises(BadInput, match="takes no token ids"):
        fitted(taking("prompt"), fields(prompt_ids=[1]), "m")


def test_a_method_is_found_by_its_name() -> None:
    """Or is the only one."""
    generate, embed = method(name="generate", attribute="generate"), method(name="embed", attribute="embed")
    engine = function("engine", generate, embed, is_class=True)
    assert method_called(engine, "embed") is embed
    assert method_called(function("one", embed, is_class=True), "generate") is embed
    with pytest.raises(BadInput, match="no method generate, but embed, other"):
        method_called(function("two", embed, method(name="other", attribute="other"), is_class=True), "generate")


def test_a_call_has_its_arguments_as_they_came() -> None:
    """And its method and deadline, if there are any."""
    assert call_body(taking("a"), {"a": msgspec.Raw(b"[1, 2]")}, None) == b'{"input":{"a":[1, 2]}}'
    body = msgspec.json.decode(call_body(method(name="generate", attribute="generate"), {}, 5.0))
    assert body == {"input": {}, "method": "generate", "deadline_ms": 5.0}
