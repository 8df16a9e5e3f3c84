"""Prompts of messages."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pilotlight_engine.text.chat_template import ChatTemplate, template_of
from pilotlight_engine.text.template_time import TemplateRefusal

MESSAGES = [{"role": "user", "content": "<hi>"}]
CHATML = (
    "{%- for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
    "{%- if tools %}{{ tools | tojson }}{% endif %}{%- if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)


def test_messages_become_the_prompt_that_a_model_was_trained_with() -> None:
    """Nothing is escaped, and tools are JSON."""
    template = ChatTemplate(CHATML, {})

    assert template.render(MESSAGES, None) == "<|im_start|>user\n<hi><|im_end|>\n<|im_start|>assistant\n"
    assert '[{"name": "<f>"}]' in template.render(MESSAGES, [{"name": "<f>"}])
    assert template.takes_tools
    assert not ChatTemplate("{{ messages }}", {}).takes_tools


def test_its_time_is_that_of_the_call() -> None:
    """Wherever it goes on."""
    assert ChatTemplate("{{ strftime_now('%Y-%m-%d') }}", {}).render(MESSAGES, None, 86_400.0) == "1970-01-02"


def test_a_template_refuses_in_its_own_words_and_cannot_leave_its_sandbox() -> None:
    with pytest.raises(TemplateRefusal, match="refuses them: no system"):
        ChatTemplate("{{ raise_exception('no system') }}", {}).render(MESSAGES, None)
    for text in ("{{ messages.__class__.__mro__ }}", "{{ ''.__class__.__subclasses__() }}", "{{ messages.append(1) }}"):
        with pytest.raises(TemplateRefusal, match="does not take them"):
            ChatTemplate(text, {}).render(MESSAGES, None)
    with pytest.raises(TemplateRefusal, match="more than"):
        ChatTemplate("{% for _ in range(99999) %}{{ 'x' * 1000 }}{% endfor %}", {}).render(MESSAGES, None)
    with pytest.raises(ValueError, match="a fault in line 1"):
        ChatTemplate("{% for %}", {})


def test_it_is_found_where_models_have_it(tmp_path: Path) -> None:
    """In a file of its own, in the tokenizer's configuration, or in the function's options."""
    assert template_of(tmp_path) is None
    config = {"bos_token": {"content": "<s>"}, "chat_template": "{{ bos_token }}{{ messages[0].content }}"}
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(config))
    found = template_of(tmp_path)
    assert found is not None
    assert found.render(MESSAGES, None) == "<s><hi>"
    (tmp_path / "chat_template.jinja").write_text("file")
    assert (found := template_of(tmp_path)) is not None
    assert found.render(MESSAGES, None) == "file"
    assert (found := template_of(tmp_path, "own")) is not None
    assert found.render(MESSAGES, None) == "own"


def test_one_of_several_is_that_for_tools(tmp_path: Path) -> None:
    named = [{"name": "default", "template": "plain"}, {"name": "tool_use", "template": "with tools"}]
    (tmp_path / "tokenizer_config.json").write_text(json.dumps({"chat_template": named}))
    found = template_of(tmp_path)

    assert found is not None
    assert (found.render(MESSAGES, None), found.render(MESSAGES, [{}])) == ("plain", "with tools")
    assert template_of(None) is not None
    (tmp_path / "tokenizer_config.json").write_text("{")
    with pytest.raises(ValueError, match="is no JSON"):
        template_of(tmp_path)
