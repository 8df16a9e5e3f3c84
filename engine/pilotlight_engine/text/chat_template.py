"""A prompt of messages, by the chat template of a model's weights: jinja, in its sandbox, as models are shipped with.

A template is a tenant's text and runs in that tenant's container; jinja's sandbox keeps it from the interpreter all the
same, since weights are often a third party's, and its time has a bound (`template_world.py`).
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Protocol

from pilotlight_engine.text.template_time import TemplateRefusal, allow_time

TEMPLATE_FILE = "chat_template.jinja"
CONFIG_FILE = "tokenizer_config.json"
DEFAULT_NAME = "default"
TOOLS_NAME = "tool_use"
SPECIAL = ("bos_token", "eos_token", "unk_token", "pad_token")
MOST_PROMPT = 8 * 2**20
"""Characters of a prompt that a template has made."""


class PromptTemplate(Protocol):
    """What makes a prompt of messages."""

    takes_tools: bool
    """Whether it knows of tools."""

    def render(
        self, messages: Sequence[Mapping[str, Any]], tools: Sequence[Mapping[str, Any]] | None, at: float = 0.0
    ) -> str:
        """The prompt of these messages, up to where the model goes on. Its time is `at`, in unix seconds.

        Raises:
            TemplateRefusal: they do not fit, the prompt is too long, or the template takes too long.
        """


class PlainTemplate:
    """For engines without a model, in environments without jinja: each message is a line."""

    takes_tools = False

    def render(
        self,
        messages: Sequence[Mapping[str, Any]],
        tools: Sequence[Mapping[str, Any]] | None,  # noqa: ARG002
        at: float = 0.0,  # noqa: ARG002
    ) -> str:
        """A line for each."""
        lines = [f"{message['role']}: {message.get('content') or ''}\n" for message in messages]
        return "".join((*lines, "assistant: "))


class ChatTemplate:
    """The template of one model. `special` are texts that it may name, such as bos_token."""

    def __init__(self, source: str, special: Mapping[str, str], tools_source: str = "") -> None:
        """Raises ValueError if a source is no template."""
        from jinja2 import TemplateSyntaxError

        from pilotlight_engine.text.template_world import TemplateWorld

        world = TemplateWorld()
        self._special = dict(special)
        try:
            self._plain = world.from_string(source)
            self._tools = world.from_string(tools_source) if tools_source else self._plain
        except TemplateSyntaxError as error:
            raise ValueError(f"the chat template has a fault in line {error.lineno}: {error.message}") from error
        self.takes_tools = "tools" in (tools_source or source)

    def render(
        self, messages: Sequence[Mapping[str, Any]], tools: Sequence[Mapping[str, Any]] | None, at: float = 0.0
    ) -> str:
        """The prompt of these messages. Raises as `PromptTemplate`."""
        template = self._tools if tools else self._plain
        pieces, size = [], 0
        allow_time()
        try:
            for piece in template.generate(
                messages=list(messages),
                tools=list(tools) if tools else None,
                add_generation_prompt=True,
                strftime_now=datetime.fromtimestamp(at, UTC).strftime,
                **self._special,
            ):
                pieces.append(piece)
                size += len(piece)
                if size > MOST_PROMPT:
                    raise TemplateRefusal(f"the chat template makes more than {MOST_PROMPT} characters of them")
        except TemplateRefusal:
            raise
        except Exception as error:  # a template may fail in any way
            raise TemplateRefusal(f"the chat template does not take them: {error}") from error
        return "".join(pieces)


def template_of(folder: Path | None, own: str = "") -> PromptTemplate | None:
    """The chat template of a folder of weights, or the function's `own`; None: there is none.

    Raises:
        ValueError: it has one that cannot be read.
    """
    if folder is None:
        return ChatTemplate(own, {}) if own else PlainTemplate()
    config = _read_config(folder / CONFIG_FILE)
    special = {name: text for name in SPECIAL if (text := _token_text(config.get(name)))}
    file, stored = folder / TEMPLATE_FILE, config.get("chat_template")
    if own:
        return ChatTemplate(own, special)
    if file.is_file():
        return ChatTemplate(file.read_text("utf-8"), special)
    if isinstance(stored, str):
        return ChatTemplate(stored, special)
    if isinstance(stored, list):
        named = {one.get("name"): one.get("template") for one in stored if isinstance(one, dict)}
        if isinstance(source := named.get(DEFAULT_NAME), str):
            return ChatTemplate(source, special, str(named.get(TOOLS_NAME) or ""))
    return None


def _read_config(path: Path) -> dict[str, Any]:
    try:
        read = json.loads(path.read_text("utf-8")) if path.is_file() else {}
    except ValueError as error:
        raise ValueError(f"{path.name} of the weights {path.parent.name} is no JSON: {error}") from error
    return read if isinstance(read, dict) else {}


def _token_text(token: Any) -> str:
    """A special token in a tokenizer's configuration: a text, or an object with its content."""
    content = token.get("content") if isinstance(token, dict) else token
    return content if isinstance(content, str) else ""
