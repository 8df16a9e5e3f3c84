"""A unary call with an `Idempotency-Key`: its answer, or the first one's.

A client that sends a key wants the answer even if the connection breaks. So the call runs on when its caller hangs up,
and counts in the gate, the byte budget and its tenant's limits until it has ended.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from starlette.types import Scope

from pilotlight_core.model.errors import BadInput, PilotlightError
from pilotlight_gateway.bodies.byte_budget import ByteBudget
from pilotlight_gateway.bodies.call_requests import BodyFormat
from pilotlight_gateway.calls.prepared_call import PreparedCall
from pilotlight_gateway.http.protocol.http_exchange import Exchange, exchange_of, header
from pilotlight_gateway.http.protocol.large_answers import PIECE_BYTES, answer_in_pieces
from pilotlight_gateway.http.protocol.problem_answers import problem_of
from pilotlight_gateway.idempotency.key_decision import HEADER
from pilotlight_gateway.idempotency.key_header import PREFER, read_wait, require_key
from pilotlight_gateway.idempotency.key_record import StoredAnswer, fingerprint_of
from pilotlight_gateway.idempotency.keyed_calls import Idempotency, KeyedAnswer, KeyedRequest

THREAD_BYTES = 256 * 1024
"""A longer input is hashed in a thread."""
REPEATED = frozenset({b"content-type", b"cache-control"})
"""Headers of an error that are repeated with it; not those about retries, since a key's answer never changes."""


class KeyedCallAnswers:
    """Answers requests with keys."""

    def __init__(self, idempotency: Idempotency, budget: ByteBudget) -> None:
        self._idempotency = idempotency
        self._budget = budget

    async def answer(
        self, call: PreparedCall, form: BodyFormat, scope: Scope, work: Callable[[], Awaitable[bytes]]
    ) -> None:
        """Answer a request with a key; `work` runs the call and returns the body of its answer.

        Raises:
            PilotlightError: the call failed, or there is no answer (see `Idempotency.give`).
            BadInput: `bad_request`: the key is malformed, there are several, or the request wants a stream.
        """
        exchange = exchange_of(scope)
        if form is BodyFormat.EVENTS:
            raise BadInput(
                f"{HEADER}: an event stream is not kept, so it cannot be repeated; accept application/json.",
                code="bad_request", field=HEADER,
            )  # fmt: skip
        ask = await _ask_of(call, form, scope)

        async def run() -> StoredAnswer:
            return StoredAnswer(status=200, headers=((b"content-type", form.value),), body=await work())

        def stored_error(error: PilotlightError) -> StoredAnswer:
            problem = problem_of(error, exchange.request_id, dialect=exchange.dialect)
            repeated = tuple(pair for pair in problem.headers if pair[0] in REPEATED)
            return StoredAnswer(
                status=problem.status, headers=(*repeated, (b"x-should-retry", b"false")), body=problem.encode()
            )

        try:
            given = await self._idempotency.give(ask, run, stored_error)
        except PilotlightError as error:
            exchange.call_id = str(error.more.get("call_id", "")) or call.call_id
            raise
        await self._send(call.tenant, exchange, given)

    async def _send(self, tenant: str, exchange: Exchange, given: KeyedAnswer) -> None:
        exchange.call_id = given.call_id
        headers, body = list(given.answer.headers), given.answer.body
        if given.replayed:
            headers.append((b"idempotent-replayed", b"true"))
        if given.answer.status == 200 and len(body) > PIECE_BYTES:
            with self._budget.holding(len(body), tenant):
                await answer_in_pieces(exchange, headers, [body])
        else:
            await exchange.answer(given.answer.status, headers, body)


async def _ask_of(call: PreparedCall, form: BodyFormat, scope: Scope) -> KeyedRequest:
    key = require_key(scope["headers"])
    said = (scope["path"], call.method.name, form.value, call.input)
    if len(call.input) > THREAD_BYTES:
        fingerprint = await asyncio.to_thread(fingerprint_of, *said)
    else:
        fingerprint = fingerprint_of(*said)
    return KeyedRequest(
        tenant=call.tenant,
        key=key,
        fingerprint=fingerprint,
        call_id=call.call_id,
        idempotent=call.version.spec.idempotent,
        timeout_s=max(0.0, call.deadline_at - call.arrived_at),
        wait_s=min(read_wait(header(scope, PREFER)), max(0.0, call.deadline_at - call.arrived_at)),
    )
