"""From the document of a call to what an engine is asked for: a prompt in tokens, and how to go on from it."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import Any

from pilotlight_core.model.engines.generation import (
    MAX_LOGPROBS,
    MAX_STOP,
    MAX_STOPS,
    MOST_EMBEDDED,
    UnfitGeneration,
)
from pilotlight_engine.engine_port import Capabilities, Sampling
from pilotlight_engine.text.chat_template import PromptTemplate
from pilotlight_engine.text.template_time import TemplateRefusal
from pilotlight_engine.text.text_tokenizer import TextTokenizer

MOST_TOOLS = 128
LONG_TEXT = 8192
"""Characters: longer ones are read beside the event loop."""
LONGEST_TOKEN = 64
"""Characters: what has more of them for each token of the longest call is refused before it is read."""
PLAIN_FORMAT = "text"


@dataclass(frozen=True, kw_only=True)
class GenerationDocument:
    """The arguments of `generate`, as they came."""

    prompt: str | None = None
    prompt_ids: list[int] | None = None
    messages: list[dict[str, Any]] | None = None
    max_tokens: int | None = None
    min_tokens: int = 0
    temperature: float = 1.0
    top_p: float = 1.0
    top_k: int = 0
    seed: int | None = None
    stop: list[str] | None = None
    ignore_eos: bool = False
    logprobs: int | None = None
    adapter: str = ""
    tools: list[dict[str, Any]] | None = None
    tool_choice: str | dict[str, Any] | None = None
    response_format: dict[str, Any] | None = None
    at: float = 0.0
    """When the call began, in unix seconds."""

    @property
    def is_short(self) -> bool:
        """Whether it is read in no time: what a chat template does with messages may take long, however few."""
        return self.messages is None and self.size < LONG_TEXT

    @property
    def size(self) -> int:
        """About how many characters its prompt has: all of a message, and of a tool, may come into it."""
        ids = len(self.prompt_ids or ()) // 8  # they need no tokenizer
        said = [*(self.messages or ()), *(self.tools or ())]
        return len(self.prompt or "") + ids + sum(len(str(each)) for each in said)


@dataclass(frozen=True, kw_only=True)
class GenerationRead:
    """What a document asks of the engine, checked."""

    prompt_ids: tuple[int, ...]
    max_new: int
    min_new: int
    sampling: Sampling
    """Without its seed, if the document has none."""
    seed: int | None
    stops: tuple[str, ...]
    ignore_eos: bool
    logprobs: int | None
    adapter: str
    tools: bool
    """Whether its text may call tools."""

    def seeded(self, seed: int) -> Sampling:
        """How tokens are drawn, with the seed of the call."""
        return replace(self.sampling, seed=seed)


@dataclass(frozen=True, kw_only=True)
class GenerationReader:
    """Reads the documents of one engine."""

    tokenizer: TextTokenizer
    template: PromptTemplate | None
    capabilities: Capabilities
    adapters: tuple[str, ...] = ()

    def read(self, document: GenerationDocument) -> GenerationRead:
        """Raises UnfitGeneration, naming the field."""
        _check_numbers(document)
        self._check_adapter(document.adapter)
        tools = self._tools(document)
        prompt_ids = self._prompt_ids(document, tools)
        if not prompt_ids:
            raise UnfitGeneration("prompt: it is empty: there is nothing to go on from.")
        room = self.capabilities.max_sequence - len(prompt_ids)
        wanted = 1 if document.max_tokens is None else document.max_tokens
        if room < wanted:
            raise UnfitGeneration(
                f"{_field(document)}: {len(prompt_ids)} tokens, and max_tokens={document.max_tokens}: together they "
                f"must be at most {self.capabilities.max_sequence}, which is what this model takes. Shorten one."
            )
        sampling = Sampling(temperature=document.temperature, top_p=document.top_p, top_k=document.top_k)
        return GenerationRead(
            prompt_ids=prompt_ids,
            max_new=room if document.max_tokens is None else document.max_tokens,
            min_new=document.min_tokens,
            sampling=sampling,
            seed=document.seed,
            stops=tuple(document.stop or ()),
            ignore_eos=document.ignore_eos,
            logprobs=document.logprobs,
            adapter=document.adapter,
            tools=bool(tools),
        )

    def input_ids(self, texts: list[str]) -> list[list[int]]:
        """The tokens of texts for `embed`. Raises UnfitGeneration."""
        for place, text in enumerate(texts):
            if len(text) > LONGEST_TOKEN * self.capabilities.max_sequence:
                raise UnfitGeneration(f"input.{place}: {len(text)} characters are more than this model takes.")
        found = [self.tokenizer.encode(text, special=True) for text in texts]
        for place, ids in enumerate(found):
            if not 0 < len(ids) <= self.capabilities.max_sequence:
                raise UnfitGeneration(
                    f"input.{place}: {len(ids)} tokens: expected 1 to {self.capabilities.max_sequence}, which is what "
                    "this model takes."
                )
        total, most = sum(map(len, found)), max(MOST_EMBEDDED, self.capabilities.max_sequence)
        if total > most:
            raise UnfitGeneration(f"input: {total} tokens in {len(found)} texts: expected at most {most} in one call.")
        return found

    def _prompt_ids(self, document: GenerationDocument, tools: list[dict[str, Any]] | None) -> tuple[int, ...]:
        given = [name for name in ("prompt", "prompt_ids", "messages") if getattr(document, name) is not None]
        if len(given) != 1:
            found = " and ".join(given) or "none of them"
            raise UnfitGeneration(f"prompt: expected exactly one of prompt, prompt_ids and messages, not {found}.")
        if document.prompt_ids is not None:
            if (count := len(document.prompt_ids)) > self.capabilities.max_sequence:
                raise UnfitGeneration(
                    f"prompt_ids: {count} tokens are more than the {self.capabilities.max_sequence} that this model "
                    "takes."
                )
            for place, token in enumerate(document.prompt_ids):
                if not 0 <= token < self.capabilities.vocabulary:
                    raise UnfitGeneration(
                        f"prompt_ids.{place}: {token} is no token: this model has those from 0 to "
                        f"{self.capabilities.vocabulary - 1}."
                    )
            return tuple(document.prompt_ids)
        if document.size > LONGEST_TOKEN * self.capabilities.max_sequence:
            raise UnfitGeneration(
                f"{given[0]}: {document.size} characters are more than the {self.capabilities.max_sequence} tokens "
                "that this model takes."
            )
        if document.prompt is not None:
            return tuple(self.tokenizer.encode(document.prompt, special=True))
        if self.template is None:
            raise UnfitGeneration(
                "messages: this model has no chat template: its weights lack chat_template.jinja. Give prompt instead."
            )
        messages = [_message(each, place) for place, each in enumerate(document.messages or ())]
        try:
            text = self.template.render(messages, tools, document.at)
        except TemplateRefusal as error:
            raise UnfitGeneration(f"messages: {error}.") from error
        if len(text) > LONGEST_TOKEN * self.capabilities.max_sequence:
            raise UnfitGeneration(
                f"messages: the chat template makes {len(text)} characters of them, more than the "
                f"{self.capabilities.max_sequence} tokens that this model takes."
            )
        return tuple(self.tokenizer.encode(text, special=False))

    def _check_adapter(self, adapter: str) -> None:
        if adapter and adapter not in self.adapters:
            known = ", ".join(self.adapters) or "none"
            raise UnfitGeneration(f"adapter: there is no {adapter!r}: this function has {known}.")

    def _tools(self, document: GenerationDocument) -> list[dict[str, Any]] | None:
        """The tools that the prompt tells of. Raises UnfitGeneration for what this engine cannot hold a model to."""
        kind = (document.response_format or {}).get("type", PLAIN_FORMAT)
        if kind != PLAIN_FORMAT:
            raise UnfitGeneration(
                f"response_format: {kind!r} is not there on this engine, which cannot hold a model to a grammar: ask "
                "for JSON in the messages, or leave it out."
            )
        if document.tool_choice not in (None, "auto", "none"):
            raise UnfitGeneration(
                f"tool_choice: {document.tool_choice!r} is not there on this engine, which cannot hold a model to a "
                'call: expected "auto" or "none".'
            )
        if not document.tools or document.tool_choice == "none":
            return None
        if len(document.tools) > MOST_TOOLS:
            raise UnfitGeneration(f"tools: {len(document.tools)} of them: expected at most {MOST_TOOLS}.")
        if document.messages is None:
            raise UnfitGeneration("tools: they are for messages, not for a prompt.")
        if self.template is not None and not self.template.takes_tools:
            raise UnfitGeneration("tools: the chat template of this model knows none.")
        return document.tools


def _field(document: GenerationDocument) -> str:
    return next(name for name in ("prompt", "prompt_ids", "messages") if getattr(document, name) is not None)


def _message(message: dict[str, Any], place: int) -> dict[str, Any]:
    """A message as templates read it: with a role, and parts of text put together."""
    if not isinstance(message.get("role"), str):
        raise UnfitGeneration(f"messages.{place}.role: expected a text such as 'user'.")
    if isinstance(message.get("tool_calls"), list):
        message = {**message, "tool_calls": [_tool_call(each) for each in message["tool_calls"]]}
    content = message.get("content")
    if not isinstance(content, list):
        return message
    texts = []
    for number, part in enumerate(content):
        text = part.get("text") if isinstance(part, dict) and part.get("type", "text") == "text" else None
        if not isinstance(text, str):
            raise UnfitGeneration(f"messages.{place}.content.{number}: this model reads text only.")
        texts.append(text)
    return {**message, "content": "".join(texts)}


def _tool_call(call: Any) -> Any:
    """A call of before, whose arguments clients send as text and templates read as an object."""
    function = call.get("function") if isinstance(call, dict) else None
    if not isinstance(function, dict) or not isinstance(function.get("arguments"), str):
        return call
    try:
        return {**call, "function": {**function, "arguments": json.loads(function["arguments"])}}
    except (ValueError, RecursionError):
        return call


def _check_numbers(document: GenerationDocument) -> None:
    """The gateway has checked them by the schema; a job or a nested call of an older one may not have been."""
    rules = (
        (document.max_tokens is None or document.max_tokens >= 1, "max_tokens", "1 or more"),
        (document.min_tokens >= 0, "min_tokens", "0 or more"),
        (document.max_tokens is None or document.min_tokens <= document.max_tokens, "min_tokens", "at most max_tokens"),
        (0 <= document.temperature <= 100, "temperature", "0 to 100"),
        (0 < document.top_p <= 1, "top_p", "more than 0 and at most 1"),
        (document.top_k >= 0, "top_k", "0 or more"),
        (document.logprobs is None or 0 <= document.logprobs <= MAX_LOGPROBS, "logprobs", f"0 to {MAX_LOGPROBS}"),
        (len(document.stop or ()) <= MAX_STOPS, "stop", f"at most {MAX_STOPS} texts"),
        (all(0 < len(one) <= MAX_STOP for one in document.stop or ()), "stop", f"texts of 1 to {MAX_STOP} characters"),
    )
    for fits, field, expected in rules:
        if not fits:
            raise UnfitGeneration(f"{field}: {getattr(document, field)!r} is out of range: expected {expected}.")
