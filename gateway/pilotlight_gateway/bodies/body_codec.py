"""Reads, checks and renders bodies: at once what is small, in a worker process what is large or stands for much."""

from __future__ import annotations

import msgspec

from pilotlight_core.model.api.call_api import CallRequest, DeployRequest
from pilotlight_core.model.errors import BadInput, BadOutput, PilotlightError, error_from_code
from pilotlight_core.model.spec import MethodSpec, VersionRecord
from pilotlight_core.model.values import TooManyValues
from pilotlight_gateway.bodies.body_work import AT_ONCE, AT_ONCE_BYTES, SmallBodies
from pilotlight_gateway.bodies.byte_budget import ByteBudget
from pilotlight_gateway.bodies.call_requests import BodyFormat
from pilotlight_gateway.bodies.embedding_vectors import embeddings_json
from pilotlight_gateway.bodies.model_readers import READERS, ModelRoute
from pilotlight_gateway.bodies.model_request import ModelRequest, received
from pilotlight_gateway.bodies.worker_frames import (
    EmbeddingsWork,
    OutputWork,
    ReadCallWork,
    ReadDeployWork,
    ReadInferWork,
    ReadModelWork,
    TensorsWork,
    Work,
    WorkReply,
)
from pilotlight_gateway.bodies.worker_pool import BodyWorkers, WorkerDied
from pilotlight_gateway.schemas.schema_validators import Validators
from pilotlight_gateway.tensors.infer_requests import InferCall, InferRequest
from pilotlight_gateway.tensors.tensor_answers import WrittenTensor

JSON_BYTES = 64 * 10**6
"""The longest output as JSON: 10 MB of small numbers are 40 MB."""


class BodyCodec:
    """What a gateway does with bodies. The budget counts what a worker returns until it is returned to the caller."""

    def __init__(self, validators: Validators, pool: BodyWorkers, budget: ByteBudget) -> None:
        self.at_once = SmallBodies(validators)
        """For what is small; raises TooManyValues else."""
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
            return self.at_once.read_call(body, kind, version)
        except TooManyValues:
            pass
        work = ReadCallWork(size=len(body), kind=kind.value, version=version.id, spec=version.spec)
        reply, pieces = await self._in_worker(work, body, tenant)
        return reply.request or CallRequest(), version.spec.method(reply.method), b"".join(pieces)

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
            return [self.at_once.output_json(output, version, method)]
        except TooManyValues:
            pass
        work = OutputWork(size=len(output), version=version, method=method, as_json=True)
        return (await self._in_worker(work, output, tenant))[1]

    async def check_output(self, output: bytes, version: str, method: MethodSpec, tenant: str) -> None:
        """Check a function's output by its type hints; raises as `output_json`."""
        try:
            self.at_once.check_output(output, version, method)
        except TooManyValues:
            work = OutputWork(size=len(output), version=version, method=method, as_json=False)
            await self._in_worker(work, output, tenant)

    async def read_model(self, body: bytes, route: ModelRoute, tenant: str) -> ModelRequest:
        """Read a request to a model, whose values stay as they came.

        Raises:
            BadInput: `bad_request`, naming the field. Unavailable: too many large bodies of the tenant wait.
        """
        if len(body) <= AT_ONCE_BYTES:
            return READERS[route](body)
        reply, pieces = await self._in_worker(ReadModelWork(size=len(body), route=route), body, tenant)
        assert reply.asked is not None  # noqa: S101 - a reply without a code has it
        return received(reply.asked, b"".join(pieces))

    async def embeddings(self, output: bytes, asked: EmbeddingsWork, tenant: str) -> list[bytes]:
        """Embeddings as the answer of OpenAI's route, in pieces.

        Raises:
            BadOutput: they are not as many vectors as `asked` counts. Unavailable: as `output_json`.
        """
        if len(output) <= AT_ONCE_BYTES:
            try:
                text = embeddings_json(
                    output, model=asked.model, count=asked.count, as_base64=asked.as_base64,
                    prompt_tokens=asked.prompt_tokens, most=AT_ONCE.values, arrays=AT_ONCE.arrays,
                )  # fmt: skip
            except TooManyValues:
                pass
            else:
                return [text]
        return (await self._in_worker(asked, output, tenant))[1]

    async def read_infer(self, body: bytes, json_bytes: int, method: MethodSpec, tenant: str) -> InferCall:
        """The call that a request for tensors asks for, whose first `json_bytes` are JSON.

        Raises:
            BadInput: `bad_request` if it cannot be read, else naming what is wrong.
            Unavailable: too many large bodies of the tenant wait.
        """
        try:
            return self.at_once.read_infer(body, json_bytes, method)
        except TooManyValues:
            pass
        return await self._infer_call(ReadInferWork(size=len(body), json_bytes=json_bytes, method=method), body, tenant)

    async def infer_call(self, request: InferRequest, method: MethodSpec, tenant: str) -> InferCall:
        """The same of a request that came over gRPC."""
        try:
            return self.at_once.infer_call(request, method)
        except TooManyValues:
            pass
        body = msgspec.msgpack.encode(request)
        return await self._infer_call(ReadInferWork(size=len(body), json_bytes=0, method=method), body, tenant)

    async def _infer_call(self, work: ReadInferWork, body: bytes, tenant: str) -> InferCall:
        pieces = (await self._in_worker(work, body, tenant))[1]
        return msgspec.msgpack.decode(b"".join(pieces), type=InferCall)

    async def output_tensors(
        self, output: bytes, version: str, method: MethodSpec, asked: InferCall, tenant: str
    ) -> list[WrittenTensor]:
        """A function's output as the tensors that `asked` wants, checked by the hints of a version's method.

        Raises:
            BadOutput: it cannot be decoded, does not match the hints, or is no tensors.
            BadInput: an output was asked for that it has not.
            Unavailable: too many large bodies of the tenant wait, or the byte budget has no room for it.
        """
        wanted, binary = asked.wanted, asked.binary
        try:
            return self.at_once.output_tensors(output, version, method, wanted, binary=binary)
        except TooManyValues:
            pass
        work = TensorsWork(size=len(output), version=version, method=method, wanted=wanted, binary=binary)
        pieces = (await self._in_worker(work, output, tenant))[1]
        return msgspec.msgpack.decode(b"".join(pieces), type=list[WrittenTensor])

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
    if isinstance(work, ReadCallWork | ReadDeployWork | ReadInferWork):
        return BadInput(f"The body {why}.", field="input" if isinstance(work, ReadCallWork) else "body")
    return BadOutput(f"The function's answer {why}.")
