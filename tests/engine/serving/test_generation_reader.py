"""Documents of calls, and what an engine is asked for."""

from __future__ import annotations

from typing import Any

import pytest

from pilotlight_core.model.engines.generation import UnfitGeneration
from pilotlight_engine.engine_port import Capabilities
from pilotlight_engine.serving.generation_reader import (
    LONG_TEXT,
    GenerationDocument,
    GenerationRead,
    GenerationReader,
)
from pilotlight_engine.text.chat_template import ChatTemplate, PlainTemplate
from pilotlight_engine.text.text_tokenizer import SimTokenizer

ABLE = Capabilities(
    architecture="Sim", vocabulary=257, max_sequence=64, max_running=4, kv_tokens=256, page=16, lora=True,
    prefix_cache=True,
)  # fmt: skip
USER = {"role": "user", "content": "hi"}


def read(template: str | None = "", **document: Any) -> GenerationRead:
    own = PlainTemplate() if template == "" else ChatTemplate(template, {}) if template else None
    reader = GenerationReader(tokenizer=SimTokenizer(), template=own, capabilities=ABLE, adapters=("legal",))
    return reader.read(GenerationDocument(**document))


def test_a_prompt_leaves_room_for_the_answer() -> None:
    assert read(prompt="hello").max_new == 59
    assert read(prompt="hello", max_tokens=7).max_new == 7
    assert read(prompt_ids=[1, 2]).prompt_ids == (1, 2)
    assert bytes(read(messages=[USER]).prompt_ids) == b"user: hi\nassistant: "


def test_what_may_take_long_to_read_is_not_short() -> None:
    """Long texts, and whatever a chat template works on."""
    assert GenerationDocument(prompt="hello").is_short
    assert GenerationDocument(prompt_ids=[1] * 1000).is_short
    assert not GenerationDocument(prompt="a" * LONG_TEXT).is_short
    assert not GenerationDocument(messages=[USER]).is_short


def test_parts_of_text_are_put_together() -> None:
    parts = [{"type": "text", "text": "h"}, {"type": "text", "text": "i"}]

    assert read(messages=[{"role": "user", "content": parts}]).prompt_ids == read(messages=[USER]).prompt_ids


def test_tools_are_for_templates_that_know_them() -> None:
    tools = [{"type": "function", "function": {"name": "f"}}]

    assert read("{{ tools }}", messages=[USER], tools=tools).tools
    assert not read("{{ tools }} x", messages=[USER], tools=tools, tool_choice="none").tools
    assert read(prompt="a", adapter="legal", seed=3).seeded(3).seed == 3


def test_calls_of_before_are_objects_to_a_template() -> None:
    """Clients send their arguments as text."""
    called = {"function": {"name": "f", "arguments": '{"a": 1}'}}
    said = {"role": "assistant", "content": None, "tool_calls": [called, {"function": {"arguments": "{"}}, 3]}

    assert bytes(read("{{ messages[0].tool_calls[0].function.arguments.a }}", messages=[said]).prompt_ids) == b"1"


def test_what_a_template_makes_of_a_few_words_is_bounded_before_it_is_read() -> None:
    with pytest.raises(UnfitGeneration, match="the chat template makes 9000 characters"):
        read("{{ messages[0].content * 4500 }}", messages=[USER])


def test_arguments_that_are_too_deep_stay_text() -> None:
    called = {"function": {"name": "f", "arguments": "[" * 2000}}
    said = {"role": "assistant", "content": None, "tool_calls": [called]}

    assert bytes(read("{{ messages[0].tool_calls[0].function.arguments[0] }}", messages=[said]).prompt_ids) == b"["


@pytest.mark.parametrize(
    ("document", "text"),
    [
        ({"prompt": "a" * 5000}, "prompt: 5000 characters are more than the 64 tokens"),
        ({"messages": [{**USER, "name": "a" * 5000}]}, "messages: 5.* characters are more than the 64 tokens"),
        ({"messages": [USER], "tools": [{"a": "a" * 5000}], "tool_choice": "none"}, "messages: 5.* characters"),
        ({"prompt_ids": [1] * 65}, "prompt_ids: 65 tokens are more than the 64"),
        ({}, "exactly one of prompt, prompt_ids and messages, not none"),
        ({"prompt": "a", "messages": [USER]}, "not prompt and messages"),
        ({"prompt": "a" * 64}, "prompt: 64 tokens"),
        ({"prompt": "a" * 60, "max_tokens": 5}, "at most 64"),
        ({"prompt_ids": [257]}, "prompt_ids.0: 257 is no token"),
        ({"prompt": "a", "adapter": "other"}, "adapter: there is no 'other': this function has legal"),
        ({"messages": [{"content": "x"}]}, "messages.0.role"),
        ({"messages": [{"role": "user", "content": [{"type": "image_url"}]}]}, "messages.0.content.0: .* text only"),
        ({"prompt": "a", "response_format": {"type": "json_schema"}}, "response_format: 'json_schema' is not there"),
        ({"messages": [USER], "tools": [{}], "tool_choice": "required"}, "tool_choice: 'required' is not there"),
        ({"messages": [USER], "tools": [{}]}, "tools: the chat template of this model knows none"),
        ({"prompt": "a", "tools": [{}]}, "tools: they are for messages"),
        ({"messages": [USER], "tools": [{}] * 129}, "tools: 129 of them"),
        ({"prompt": "a", "temperature": -1.0}, "temperature: -1.0 is out of range: expected 0 to 100"),
        ({"prompt": "a", "max_tokens": 2, "min_tokens": 3}, "min_tokens: 3 is out of range: expected at most"),
        ({"prompt": "a", "stop": [""]}, "stop: .* expected texts of 1 to 256"),
    ],
)
def test_what_does_not_fit_is_refused_by_its_field(document: dict[str, Any], text: str) -> None:
    with pytest.raises(UnfitGeneration, match=text):
        read(**document)


def test_messages_need_a_template() -> None:
    with pytest.raises(UnfitGeneration, match="messages: this model has no chat template"):
        read(None, messages=[USER])
    with pytest.raises(UnfitGeneration, match="messages: the chat template refuses them: no"):
        read("{{ raise_exception('no') }}", messages=[USER])


def test_texts_to_embed_fit_the_model() -> None:
    reader = GenerationReader(tokenizer=SimTokenizer(), template=None, capabilities=ABLE)

    assert reader.input_ids(["ab"]) == [[97, 98]]
    with pytest.raises(UnfitGeneration, match=r"input.0: 5000 characters"):
        reader.input_ids(["a" * 5000])
    with pytest.raises(UnfitGeneration, match=r"input.1: 65 tokens: expected 1 to 64"):
        reader.input_ids(["a", "a" * 65])


def test_texts_have_no_more_tokens_together_than_are_billed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each of them is as short as it has to be."""
    monkeypatch.setattr("pilotlight_engine.serving.generation_reader.MOST_EMBEDDED", 100)
    reader = GenerationReader(tokenizer=SimTokenizer(), template=None, capabilities=ABLE)

    assert len(reader.input_ids(["a" * 50] * 2)) == 2
    with pytest.raises(UnfitGeneration, match="input: 150 tokens in 3 texts: expected at most 100"):
        reader.input_ids(["a" * 50] * 3)
