"""A worker process: handles large bodies, one at a time, from standard input to standard output.

It has no secrets, opens nothing, and is bounded in memory; the gateway ends it when it takes too long. It ends itself
when its input ends, that is when the gateway does, and after a body that has left it large.
"""

from __future__ import annotations

import contextlib
import os
import resource
import sys
from pathlib import Path
from typing import BinaryIO

import msgspec

from pilotlight_core.model.errors import BadInput, BadOutput, PilotlightError
from pilotlight_core.model.values import TooManyValues
from pilotlight_gateway.bodies.body_work import (
    IN_WORKER,
    check_output,
    output_json,
    output_tensors,
    read_call,
    read_infer,
)
from pilotlight_gateway.bodies.call_requests import BodyFormat
from pilotlight_gateway.bodies.deploy_requests import read_deploy
from pilotlight_gateway.bodies.embedding_vectors import embeddings_json
from pilotlight_gateway.bodies.model_readers import READERS
from pilotlight_gateway.bodies.model_request import sent
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
    head_of,
    read_work,
)
from pilotlight_gateway.schemas.schema_validators import Validators

MEMORY_BYTES = 512 * 2**20
"""Of address space. 10 MB of numbers take 300 MB on their way to JSON; of empty lists they would take 720."""
RESTART_BYTES = 256 * 2**20
"""Resident memory that a body may leave behind; beyond it the worker ends, and the next body has a new one."""
NICENESS = 5
"""The event loop goes first."""
SCHEMAS = 64
TOO_MANY_SENT = "The body stands for too many values: send fewer, or arrays in application/msgpack."
TOO_MANY_RETURNED = (
    "The function's answer stands for too many values to be JSON: return fewer, or ask for application/msgpack."
)


def perform(work: Work, payload: bytes, validators: Validators) -> tuple[WorkReply, bytes]:
    """The reply to a work, and its payload."""
    try:
        if isinstance(work, ReadCallWork):
            kind = BodyFormat(work.kind)
            request, method, arguments = read_call(payload, kind, work.version, work.spec, validators, IN_WORKER)
            return WorkReply(size=len(arguments), request=request, method=method.name), arguments
        if isinstance(work, ReadInferWork | TensorsWork):
            made = _perform_tensors(work, payload, validators)
            return WorkReply(size=len(made)), made
        if isinstance(work, ReadDeployWork):
            text = msgspec.json.encode(read_deploy(payload, work.app))
            return WorkReply(size=len(text)), text
        if isinstance(work, ReadModelWork):
            asked, values = sent(READERS[work.route](payload))
            return WorkReply(size=len(values), asked=asked), values
        if isinstance(work, EmbeddingsWork):
            text = embeddings_json(
                payload, model=work.model, count=work.count, as_base64=work.as_base64,
                prompt_tokens=work.prompt_tokens, most=IN_WORKER.values, arrays=IN_WORKER.arrays,
            )  # fmt: skip
            return WorkReply(size=len(text)), text
        return _perform_output(work, payload, validators)
    except PilotlightError as error:
        return WorkReply(code=error.wire_code, detail=error.detail, more=error.more), b""
    except (MemoryError, TooManyValues):
        if isinstance(work, ReadCallWork | ReadDeployWork | ReadInferWork):
            return WorkReply(code=BadInput.code, detail=TOO_MANY_SENT), b""
        return WorkReply(code=BadOutput.code, detail=TOO_MANY_RETURNED), b""


def _perform_tensors(work: ReadInferWork | TensorsWork, payload: bytes, validators: Validators) -> bytes:
    if isinstance(work, ReadInferWork):
        return msgspec.msgpack.encode(read_infer(payload, work.json_bytes, work.method, IN_WORKER))
    made = output_tensors(
        payload, work.version, work.method, work.wanted, validators, IN_WORKER, binary=work.binary
    )  # fmt: skip
    return msgspec.msgpack.encode(made)


def _perform_output(work: OutputWork, payload: bytes, validators: Validators) -> tuple[WorkReply, bytes]:
    if work.as_json:
        text = output_json(payload, work.version, work.method, validators, IN_WORKER)
        return WorkReply(size=len(text)), text
    if work.method is not None:
        check_output(payload, work.version, work.method, validators, IN_WORKER)
    return WorkReply(), b""


def serve(source: BinaryIO, sink: BinaryIO) -> None:
    """Perform works until the input ends."""
    validators = Validators(SCHEMAS)
    while (received := read_work(source)) is not None:
        work, payload = received
        del received
        reply, answer = perform(work, payload, validators)
        del work, payload
        last = _resident_bytes() > RESTART_BYTES
        sink.write(head_of(msgspec.structs.replace(reply, last=last)))
        sink.write(answer)
        sink.flush()
        if last:
            return
        del reply, answer


def _resident_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()


def main() -> None:
    """Take the bounds, and serve."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    os.nice(NICENESS)
    with contextlib.suppress(BrokenPipeError):  # the gateway is gone
        serve(sys.stdin.buffer, sys.stdout.buffer)


if __name__ == "__main__":
    main()
