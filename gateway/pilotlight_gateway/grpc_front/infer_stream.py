"""ModelStreamInfer: many requests over one stream, each with as many answers as its function gives.

Answers of one request keep their order; those of several come as they are ready. What one request does wrong is told
in an answer of its own, and the stream goes on.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import aclosing
from typing import Any

import structlog

from pilotlight_core.model.errors import DeadlineExceeded, PilotlightError
from pilotlight_gateway.grpc_front.grpc_requests import Context, error_text, headers_of
from pilotlight_gateway.grpc_front.infer_messages import InferMessage, message_class
from pilotlight_gateway.grpc_front.infer_values import answer_of, final_answer, mark_final
from pilotlight_gateway.grpc_front.model_answers import REQUEST, GrpcServices, ModelAnswer, ModelAnswers
from pilotlight_gateway.tenancy.auth import Principal

AT_A_TIME = 16
"""Requests of one stream that run; more are not read until one has ended."""
HELD_BYTES = 16 * 2**20
"""Of the requests of one stream that run: with as many no more are read. So a stream holds a message more at most."""
STUCK_S = 60.0
"""A client that reads nothing for so long counts as gone."""
RESPONSE = message_class("ModelStreamInferResponse")

log = structlog.get_logger(__name__)


class StreamStuck(Exception):
    """The client does not read."""


class InferStream:
    """One stream of a principal, of a task's own."""

    def __init__(self, services: GrpcServices, answers: ModelAnswers, principal: Principal, context: Context) -> None:
        self._services = services
        self._answers = answers
        self._principal = principal
        self._context = context
        self._running = 0
        self._held = 0
        """Bytes of the requests that run."""
        self._ended = asyncio.Event()
        self._turn = asyncio.Lock()

    async def serve(self, requests: AsyncIterator[bytes]) -> None:
        """Answer requests until there are no more.

        Raises:
            DeadlineExceeded: the client does not read. TooMuch: its tenant has too many streams.
        """
        with self._services.streams.slot(self._principal.tenant), self._answers.opened(self._principal):
            is_stuck = False
            try:
                async with asyncio.TaskGroup() as group:
                    while (data := await self._next(requests)) is not None:
                        group.create_task(self._answer(data))
                        del data
            except* StreamStuck:
                is_stuck = True
            if is_stuck:
                raise DeadlineExceeded(f"The client has read nothing for {STUCK_S:g} s.", code="slow_body")

    async def _next(self, requests: AsyncIterator[bytes]) -> bytes | None:
        """The next message, once there is room for it; None: there are no more.

        Nothing is read ahead: what waits for its turn here would be in nobody's count.
        """
        while self._running >= AT_A_TIME or self._held >= HELD_BYTES:
            self._ended.clear()
            await self._ended.wait()
        data = await anext(requests, None)
        if data is not None:
            self._running += 1
            self._held += len(data)
        return data

    async def _answer(self, data: bytes) -> None:
        client_id = ""
        try:
            with self._answers.opened(self._principal) as request:
                answers: Any = self._answers.run(request, data, headers_of(self._context))
                async with aclosing(answers):
                    async for answer in answers:
                        await self._send(_response(answer))
        except PilotlightError as error:
            client_id = _id_of(data)
            await self._send(_failure(client_id, error))
        except (StreamStuck, asyncio.CancelledError):
            raise
        except Exception:
            log.exception("a request of a stream failed unexpectedly")
            await self._send(_failure(client_id, PilotlightError(code="internal")))
        finally:
            self._running -= 1
            self._held -= len(data)
            self._ended.set()

    async def _send(self, response: InferMessage | None) -> None:
        if response is None:
            return
        data = response.SerializeToString()
        async with self._turn:
            try:
                async with asyncio.timeout(STUCK_S):
                    await self._context.write(data)
            except TimeoutError:
                raise StreamStuck from None


def _response(answer: ModelAnswer) -> InferMessage | None:
    if answer.tensors is None:
        return RESPONSE(infer_response=final_answer(answer.model, answer.client_id)) if answer.tells_end else None
    told = answer_of(answer.model, answer.client_id, answer.tensors)
    return RESPONSE(infer_response=mark_final(told, is_final=False) if answer.tells_end else told)


def _failure(client_id: str, error: PilotlightError) -> InferMessage:
    told = message_class("ModelInferResponse")(id=client_id)
    return RESPONSE(error_message=f"{error_text(error)} ({error.wire_code})", infer_response=told)


def _id_of(data: bytes) -> str:
    """The client's name for a request, if it can be read."""
    try:
        return str(REQUEST.FromString(data).id)[:256]
    except Exception:  # noqa: BLE001 - then it has none
        return ""
