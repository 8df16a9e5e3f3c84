"""Reads, checks and renders bodies: at once what is small, in a worker process what is large or stands for much."""

from __future__ import annotations

import msgspec

from pilotlight_core.model.api.call_api import CallRequest, DeployRequest
from pilotlight_core.model.errors import BadInput, BadOutput, PilotlightError, error_from_code
from pilotlight_core.model.spec import MethodSpec, VersionRecord
from pilotlight_core.model.values import TooManyValues
from pilotlight_gateway.bodies import body_work
from pilotlight_gateway.bodies.body_work import AT_ONCE
from pilotlight_gateway.bodies.byte_budget import ByteBudget
from pilotlight_gateway.bodies.call_requests import BodyFormat
from pilotlight_gateway.bodies.worker_frames import OutputWork, ReadCallWork, ReadDeployWork, Work, WorkReply
from pilotlight_gateway.bodies.worker_pool import BodyWorkers, WorkerDied
from pilotlight_gateway.schemas.schema_validators import Validators

AT_ONCE_BYTES = 128 * 1024
"""Longer bodies go to a worker unseen: decoding this much takes 4 ms at worst."""
JSON_BYTES = 64 * 10**6
"""The longest output as JSON: 10 MB of small numbers are 40 MB."""


class BodyCodec:
    """What a gateway does with bodies. The budget counts what a worker returns until it is returned to the caller."""

    def __init__(self, validators: Validators, pool: BodyWorkers, budget: ByteBudget) -> None:
        self._validators = validators
        self._pool = pool
        self._budget = budget

    async def read_call(
        self, body: bytes, kind: BodyFormat, version: VersionRecord, tenant: str
    ) -> tuple[CallRequest, MethodSpec, bytes]:
        """Read the request of a call: without its arguments, the method, and these as msgpack.

        Raises:
            BadInput: `bad_request` if it cannot be decoded, else naming the field.
            Unavailable: too many large bodies of the tenant wait.
        """
        try:
            return self.read_call_now(body, kind, version)
        except TooManyValues:
            pass
        work = ReadCallWork(size=len(body), kind=kind.value, version=version.id, spec=version.spec)
        reply, pieces = await self._in_worker(work, body, tenant)
        return reply.request or CallRequest(), version.spec.method(reply.method), b"".join(pieces)

    def read_call_now(
        self, body: bytes, kind: BodyFormat, version: VersionRecord
    ) -> tuple[CallRequest, MethodSpec, bytes]:
        """As `read_call`, on the event loop.

        Raises:
            BadInput: as `read_call`.
            TooManyValues: it would take too long here.
        """
        if len(body) > AT_ONCE_BYTES:
            raise TooManyValues
        return body_work.read_call(body, kind, version.id, version.spec, self._validators, AT_ONCE)

    async def read_deploy(self, body: bytes, app: str, tenant: str) -> DeployRequest:
        """Read and check the request of a deploy: in a worker, since its schemas and patterns are compiled.

        Raises:
            BadInput: `bad_request` if it cannot be decoded, else naming the field.
            Unavailable: too many large bodies of the tenant wait.
        """
        pieces = (await self._in_worker(ReadDeployWork(size=len(body), app=app), body, tenant))[1]
        return msgspec.json.decode(b"".join(pieces), type=DeployRequest)

    async def output_json(self, output: bytes, version: str, method: MethodSpec | None, tenant: str) -> list[bytes]:
        """A function's output as pieces of JSON text, checked by the hints of a version's method (None: unchecked).

        Raises:
            BadOutput: it cannot be decoded, does not match the hints, or is too large for JSON.
            Unavailable: too many large bodies of the tenant wait, or the byte budget has no room for it.
        """
        try:
            return [self.output_json_now(output, version, method)]
        except TooManyValues:
            pass
        work = OutputWork(size=len(output), version=version, method=method, as_json=True)
        return (await self._in_worker(work, output, tenant))[1]

    async def check_output(self, output: bytes, version: str, method: MethodSpec, tenant: str) -> None:
        """Check a function's output by its type hints; raises as `output_json`."""
        try:
            self.check_output_now(output, version, method)
        except TooManyValues:
            work = OutputWork(size=len(output), version=version, method=method, as_json=False)
            await self._in_worker(work, output, tenant)

    def output_json_now(self, output: bytes, version: str, method: MethodSpec | None) -> bytes:
        """As `output_json`, on the event loop and in one piece.

        Raises:
            BadOutput: as `output_json`.
            TooManyValues: it would take too long here.
        """
        if len(output) > AT_ONCE_BYTES:
            raise TooManyValues
        return body_work.output_json(output, version, method, self._validators, AT_ONCE)

    def check_output_now(self, output: bytes, version: str, method: MethodSpec) -> None:
        """As `check_output`, on the event loop; raises as `output_json_now`."""
        if not method.output_schema:
            return
        if len(output) > AT_ONCE_BYTES:
            raise TooManyValues
        body_work.check_output(output, version, method, self._validators, AT_ONCE)

    async def _in_worker(self, work: Work, payload: bytes, tenant: str) -> tuple[WorkReply, list[bytes]]:
        try:
            async with self._pool.worker(tenant) as worker:
                reply = await worker.send(work, payload)
                if reply.size > JSON_BYTES:
                    raise BadOutput(
                        f"The function's answer would be {reply.size} bytes of JSON, more than {JSON_BYTES}: ask for"
                        f" application/msgpack."
                    )
                with self._budget.holding(reply.size, tenant):
                    pieces = await worker.pieces(reply.size)
        except WorkerDied:
            raise _refusal(work, "takes too long or too much memory to read") from None
        if reply.code:
            raise error_from_code(reply.code, reply.detail, **reply.more)
        return reply, pieces


def _refusal(work: Work, why: str) -> PilotlightError:
    if not isinstance(work, OutputWork):
        return BadInput(f"The body {why}.", field="input" if isinstance(work, ReadCallWork) else "body")
    return BadOutput(f"The function's answer {why}.")
