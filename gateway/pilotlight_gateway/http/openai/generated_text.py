"""A whole answer, put together from chunks."""

from __future__ import annotations

from dataclasses import dataclass, field

from pilotlight_core.model.errors import BadOutput
from pilotlight_gateway.http.openai.generation_chunks import (
    ChunkUsage,
    GenerationChunk,
    TokenLogprob,
    ToolCallPart,
    finish_of,
)

MOST_TOOL_CALLS = 128
MOST_TOKENS = 200_000
"""Of which an answer says how likely they were, with those that might have been."""


@dataclass
class CalledTool:
    """A call of a tool that an answer asks for."""

    id: str = ""
    name: str = ""
    arguments: list[str] = field(default_factory=list)


class GeneratedText:
    """Collects chunks. What they take together is bounded by whoever adds them."""

    def __init__(self) -> None:
        self._texts: list[str] = []
        self.logprobs: list[TokenLogprob] = []
        self._tokens = 0
        self.tools: dict[int, CalledTool] = {}
        self._finish: str | None = None
        self.usage: ChunkUsage | None = None

    def add(self, chunk: GenerationChunk) -> None:
        """Add the next one. Raises BadOutput: it calls too many tools, or says too much of its tokens."""
        self._texts.append(chunk.text)
        self.logprobs += chunk.logprobs
        self._tokens += sum(1 + len(token.top) for token in chunk.logprobs)
        if self._tokens > MOST_TOKENS:
            raise BadOutput("The function's answer says of too many tokens how likely they were.")
        for part in chunk.tool_calls:
            self._add_tool(part)
        self._finish = chunk.finish_reason or self._finish
        self.usage = chunk.usage or self.usage

    def _add_tool(self, part: ToolCallPart) -> None:
        if part.index not in self.tools and len(self.tools) >= MOST_TOOL_CALLS:
            raise BadOutput(f"The function's answer calls more than {MOST_TOOL_CALLS} tools.")
        called = self.tools.setdefault(part.index, CalledTool())
        called.id, called.name = called.id or part.id, called.name or part.name
        called.arguments.append(part.arguments)

    @property
    def text(self) -> str:
        return "".join(self._texts)

    @property
    def finish(self) -> str:
        """Why it ended."""
        return finish_of(self._finish or ("tool_calls" if self.tools else None))
