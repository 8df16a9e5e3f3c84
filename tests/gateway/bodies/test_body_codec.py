"""Bodies that are read and rendered: what is large in a worker process, with the same outcome."""

from __future__ import annotations

import msgspec
import pytest

from pilotlight_core.model.errors import BadInput, BadOutput, Unavailable
from pilotlight_gateway.bodies import body_codec, worker_pool
from pilotlight_gateway.bodies.body_codec import BodyCodec
from pilotlight_gateway.bodies.body_work import AT_ONCE_BYTES
from pilotlight_gateway.bodies.byte_budget import ByteBudget
from pilotlight_gateway.bodies.call_requests import BodyFormat
from pilotlight_gateway.bodies.worker_pool import BodyWorkers
from pilotlight_gateway.schemas.schema_validators import Validators
from tests.builders.specs import function_spec, method, version_record
from tests.waiting import until

NUMBERS = method(
    input_schema={"type": "object", "properties": {"n": {"type": "array", "items": {"type": "integer"}}}},
    output_schema={"type": "array", "items": {"type": "integer"}},
)


@pytest.fixture
def codec(workers: BodyWorkers) -> BodyCodec:
    return BodyCodec(Validators(), workers, ByteBudget(limit=100 * 10**6))


async def test_a_large_body_is_read_in_a_worker(codec: BodyCodec, workers: BodyWorkers) -> None:
    """As a small one is at once; a refusal names the field, and the worker stays."""
    one = version_record(function_spec("f", NUMBERS))
    numbers = list(range(AT_ONCE_BYTES))

    _, called, arguments = await codec.read_call(
        msgspec.json.encode({"input": {"n": numbers}}), BodyFormat.JSON, one, "acme"
    )

    assert msgspec.msgpack.decode(arguments) == {"n": numbers}
    assert (called, workers.processes) == (NUMBERS, 1)
    with pytest.raises(BadInput, match="too large to say where"):
        await codec.read_call(msgspec.json.encode({"input": {"n": [*numbers, "x"]}}), BodyFormat.JSON, one, "acme")
    with pytest.raises(BadInput, match="The body is not JSON"):
        await codec.read_call(b'{"input":' + b" " * AT_ONCE_BYTES, BodyFormat.JSON, one, "acme")
    assert workers.processes == 1


async def test_a_large_output_becomes_json_in_a_worker(codec: BodyCodec) -> None:
    """In pieces; one that breaks its hints is the function's error."""
    numbers = list(range(AT_ONCE_BYTES))
    output = msgspec.msgpack.encode(numbers)

    pieces = await codec.output_json(output, "ver_1", NUMBERS, "acme")
    await codec.check_output(output, "ver_1", NUMBERS, "acme")

    assert msgspec.json.decode(b"".join(pieces)) == numbers
    with pytest.raises(BadOutput, match="does not match its schema"):
        await codec.check_output(msgspec.msgpack.encode([*numbers, "x"]), "ver_1", NUMBERS, "acme")


async def test_what_fills_a_workers_memory_is_refused_and_ends_nothing_else(codec: BodyCodec) -> None:
    """Ten million empty lists; afterwards the next body is read."""
    bomb = b"\xdd" + (10**7).to_bytes(4, "big") + b"\x80" * 10**7

    with pytest.raises(BadOutput, match="too many values"):
        await codec.output_json(bomb, "ver_1", None, "acme")
    pieces = await codec.output_json(msgspec.msgpack.encode([1] * 10_000), "ver_1", None, "acme")

    assert len(b"".join(pieces)) == 20_001


async def test_the_budget_counts_what_an_output_becomes(workers: BodyWorkers) -> None:
    """A megabyte of small numbers is two of JSON, for which a small budget has no room."""
    budget = ByteBudget(limit=2 * 10**6)
    codec = BodyCodec(Validators(), workers, budget)

    with pytest.raises(Unavailable, match="already holds"):
        await codec.output_json(b"\xdd" + (10**6).to_bytes(4, "big") + b"\x01" * 10**6, "ver_1", None, "acme")

    budget.check_integrity()
    assert budget.used == 0


async def test_a_worker_that_dies_or_takes_too_long_refuses_one_body(
    codec: BodyCodec, workers: BodyWorkers, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The next body has a new worker."""
    output = msgspec.msgpack.encode([1] * 10_000)
    await codec.output_json(output, "ver_1", None, "acme")
    (worker,) = workers._all
    worker.kill()
    await until(lambda: not worker.alive)
    await codec.output_json(output, "ver_1", None, "acme")

    with monkeypatch.context() as patched:
        patched.setattr(worker_pool, "WORK_S", 0.0)
        with pytest.raises(BadOutput, match="takes too long"):
            await codec.output_json(output, "ver_1", None, "acme")

    assert await codec.output_json(output, "ver_1", None, "acme")


async def test_json_has_a_longest_form(codec: BodyCodec, monkeypatch: pytest.MonkeyPatch) -> None:
    """Beyond it the caller is told what to ask for."""
    monkeypatch.setattr(body_codec, "JSON_BYTES", 1_000)

    with pytest.raises(BadOutput, match="ask for application/msgpack"):
        await codec.output_json(msgspec.msgpack.encode([1] * 10_000), "ver_1", None, "acme")
