"""Answers of `/v1/responses`: whole, and event by event.

created, in_progress
    output_item.added, content_part.added, output_text.delta …,
        output_text.done, content_part.done, output_item.done
    output_item.added, function_call_arguments.delta …, function_call_arguments.done, output_item.done
completed, incomplete, or failed
"""

from __future__ import annotations

from dataclasses import replace

from pilotlight_core.model.errors import BadOutput
from pilotlight_gateway.calls.collected_chunks import ANSWER_BYTES
from pilotlight_gateway.http.openai.answer_forms import AnswerHead, Json, error_event, logprobs_document, sse
from pilotlight_gateway.http.openai.generated_text import CalledTool, GeneratedText
from pilotlight_gateway.http.openai.generation_chunks import ChunkUsage, GenerationChunk, TokenLogprob, ToolCallPart

INCOMPLETE = {"length": "max_output_tokens", "content_filter": "content_filter"}
"""Why an answer ended -> why it is not complete."""


def response_document(head: AnswerHead, text: GeneratedText, usage: ChunkUsage | None, kept: Json) -> Json:
    """A whole answer; `kept` is what it repeats of its request."""
    output: list[Json] = []
    if text.text or not text.tools:
        output.append(_message(head, text.text, tuple(text.logprobs), "completed"))
    output += [_called(head, number, called, "completed") for number, called in sorted(text.tools.items())]
    finish = _end(text.finish)
    output[-1]["status"] = finish["status"]  # the last one is as whole as the response
    return {**_head(head, kept), **finish, "output": output, "usage": _usage(text.usage or usage)}


class ResponseStream:
    """Writes the events of one answer."""

    counts_tokens = False

    def __init__(self, head: AnswerHead, kept: Json) -> None:
        self._head = head
        self._kept = kept
        self._text = GeneratedText()
        self._size = 0
        self._number = 0
        self._places: dict[int, int] = {}
        """Of each called tool, among the items of the output."""
        self._text_place: int | None = None

    def begin(self) -> bytes:
        response = self._response("in_progress")
        return self._event("response.created", response=response) + self._event(
            "response.in_progress", response=response
        )

    def chunk(self, chunk: GenerationChunk) -> bytes:
        self._size += len(chunk.text) + sum(len(part.arguments) for part in chunk.tool_calls)
        if self._size > ANSWER_BYTES:  # its last events repeat all of it
            raise BadOutput("The answer is more than 10 MB, which a response cannot have: ask for a chat.")
        events = b""
        if chunk.text:
            events += self._delta(chunk.text, chunk.logprobs)
        known = set(self._text.tools)
        self._text.add(chunk)
        for part in chunk.tool_calls:
            events += self._tool(part, is_new=part.index not in known)
            known.add(part.index)
        return events

    def end(self, usage: ChunkUsage | None, fallback: str = "") -> bytes:
        self._head = replace(self._head, version=fallback or self._head.version)
        events = b""
        if self._text_place is None and not self._places:
            events += self._open_text()
        events += self._close_text() + b"".join(map(self._close_tool, sorted(self._places)))
        finish = _end(self._text.finish)
        response = self._response(finish["status"], usage) | finish
        return events + self._event(f"response.{finish['status']}", response=response)

    def fail(self, error: Json) -> bytes:
        response = self._response("failed") | {"error": {"code": "server_error", "message": error["message"]}}
        failed = self._event("response.failed", response=response)
        # By the second one the stock client raises.
        return failed + error_event(error)

    # -- text ----------------------------------------------------------------------------------------------------

    def _delta(self, text: str, logprobs: tuple[TokenLogprob, ...]) -> bytes:
        events = b"" if self._text_place is not None else self._open_text()
        return events + self._event(
            "response.output_text.delta", item_id=_message_id(self._head), output_index=self._text_place,
            content_index=0, delta=text, logprobs=_logprobs(logprobs),
        )  # fmt: skip

    def _open_text(self) -> bytes:
        self._text_place = place = len(self._places)
        item = _message(self._head, "", (), "in_progress") | {"content": []}
        return self._event("response.output_item.added", output_index=place, item=item) + self._event(
            "response.content_part.added", item_id=item["id"], output_index=place, content_index=0, part=_part("", ())
        )

    def _close_text(self) -> bytes:
        if (place := self._text_place) is None:
            return b""
        text, logprobs = self._text.text, tuple(self._text.logprobs)
        where = {"item_id": _message_id(self._head), "output_index": place, "content_index": 0}
        item = _message(self._head, text, logprobs, self._status_at(place))
        return (
            self._event("response.output_text.done", **where, text=text, logprobs=_logprobs(logprobs))
            + self._event("response.content_part.done", **where, part=_part(text, logprobs))
            + self._event("response.output_item.done", output_index=place, item=item)
        )

    # -- tools ---------------------------------------------------------------------------------------------------

    def _tool(self, part: ToolCallPart, *, is_new: bool) -> bytes:
        events = b""
        if is_new:
            place = self._places[part.index] = len(self._places) + (self._text_place is not None)
            item = _called(self._head, part.index, self._text.tools[part.index], "in_progress") | {"arguments": ""}
            events = self._event("response.output_item.added", output_index=place, item=item)
        if part.arguments:
            events += self._event(
                "response.function_call_arguments.delta", item_id=_tool_id(self._head, part.index),
                output_index=self._places[part.index], delta=part.arguments,
            )  # fmt: skip
        return events

    def _close_tool(self, number: int) -> bytes:
        place = self._places[number]
        item = _called(self._head, number, self._text.tools[number], self._status_at(place))
        done = self._event(
            "response.function_call_arguments.done", item_id=item["id"], output_index=place, name=item["name"],
            arguments=item["arguments"],
        )  # fmt: skip
        return done + self._event("response.output_item.done", output_index=place, item=item)

    # -- all of it -----------------------------------------------------------------------------------------------

    def _response(self, status: str, usage: ChunkUsage | None = None) -> Json:
        document = {**_head(self._head, self._kept), "status": status, "output": [], "usage": None}
        if status == "in_progress":
            return document
        items: list[tuple[int, Json]] = [
            (place, _called(self._head, number, self._text.tools[number], self._status_at(place)))
            for number, place in self._places.items()
        ]
        if (place := self._text_place) is not None:
            message = _message(self._head, self._text.text, tuple(self._text.logprobs), self._status_at(place))
            items.append((place, message))
        output = [item for _, item in sorted(items, key=lambda one: one[0])]
        return document | {"output": output, "usage": _usage(self._text.usage or usage)}

    def _status_at(self, place: int) -> str:
        """Of the item at a place of the output, which is over: the last one is as whole as the response."""
        is_last = place == len(self._places) + (self._text_place is not None) - 1
        return str(_end(self._text.finish)["status"]) if is_last else "completed"

    def _event(self, kind: str, **fields: object) -> bytes:
        event = sse({"type": kind, "sequence_number": self._number, **fields})
        self._number += 1
        return event


def _head(head: AnswerHead, kept: Json) -> Json:
    return {
        "id": f"resp_{head.call_id}", "object": "response", "created_at": head.created_at, "model": head.model,
        "error": None, "incomplete_details": None, "instructions": None, "metadata": {}, "parallel_tool_calls": True,
        "temperature": None, "top_p": None, "tool_choice": "auto", "tools": [], "store": False,
        "previous_response_id": None, "system_fingerprint": head.version, "text": {"format": {"type": "text"}}, **kept,
    }  # fmt: skip


def _end(finish: str) -> Json:
    if (reason := INCOMPLETE.get(finish)) is None:
        return {"status": "completed"}
    return {"status": "incomplete", "incomplete_details": {"reason": reason}}


def _message_id(head: AnswerHead) -> str:
    return f"msg_{head.call_id}"


def _tool_id(head: AnswerHead, number: int) -> str:
    return f"fc_{head.call_id}_{number}"


def _message(head: AnswerHead, text: str, logprobs: tuple[TokenLogprob, ...], status: str) -> Json:
    return {
        "id": _message_id(head), "type": "message", "role": "assistant", "status": status,
        "content": [_part(text, logprobs)],
    }  # fmt: skip


def _part(text: str, logprobs: tuple[TokenLogprob, ...]) -> Json:
    return {"type": "output_text", "text": text, "annotations": [], "logprobs": _logprobs(logprobs)}


def _logprobs(logprobs: tuple[TokenLogprob, ...]) -> list[Json]:
    content: list[Json] = logprobs_document(logprobs)["content"] if logprobs else []
    return content


def _called(head: AnswerHead, number: int, called: CalledTool, status: str) -> Json:
    return {
        "id": _tool_id(head, number), "type": "function_call", "status": status, "name": called.name,
        "call_id": called.id or f"call_{number}", "arguments": "".join(called.arguments),
    }  # fmt: skip


def _usage(usage: ChunkUsage | None) -> Json | None:
    if usage is None:
        return None
    return {
        "input_tokens": usage.prompt_tokens,
        "input_tokens_details": {"cached_tokens": usage.cached_tokens},
        "output_tokens": usage.completion_tokens,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": usage.prompt_tokens + usage.completion_tokens,
    }
