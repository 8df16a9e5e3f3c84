"""Batches over HTTP: a submission is one batch however often it is sent, and ids are no paths."""

from __future__ import annotations

from urllib.parse import parse_qs

import pytest

from pilotlight.client.resources.batches import BatchesClient
from pilotlight.client.resources.platform import PlatformClient
from pilotlight.client.transport.platform_connection import PlatformConnection
from pilotlight.definitions.errors import BadInput, BadOutput, NotFound
from tests.sdk.scripted import Answer, ScriptedPlatform, answer, problem

BATCH = {"id": "batch_1", "state": "running"}


@pytest.fixture
def batches(connection: PlatformConnection) -> BatchesClient:
    return BatchesClient(connection, PlatformClient(connection))


async def test_wrong_lines_come_back_with_the_error(platform: ScriptedPlatform, batches: BatchesClient) -> None:
    """They are not sent again."""
    errors = [{"line": 3, "field": "name", "detail": "missing"}]
    platform.will("POST", "/v1/batches", problem("bad_input", "line 3: name: missing", errors=errors))
    with pytest.raises(BadInput, match="line 3") as caught:
        await batches.submit({}, "key-1", lambda: b"{}\n")
    assert caught.value.more["errors"] == errors
    assert len(platform.requests) == 1


async def test_an_answer_that_cannot_be_read_is_an_error(platform: ScriptedPlatform, batches: BatchesClient) -> None:
    """The error is BadOutput, and not one of msgspec."""
    platform.will("POST", "/v1/batches", Answer(pieces=[b"<html>"]))
    with pytest.raises(BadOutput, match="cannot be read"):
        await batches.submit({}, "key-1", lambda: b"{}\n")


async def test_each_attempt_reads_the_lines_anew(platform: ScriptedPlatform, batches: BatchesClient) -> None:
    """After a broken connection or a refusal the same lines are sent under the same key."""
    platform.will(
        "POST", "/v1/batches", Answer(cut=True), problem("no_capacity", headers={"retry-after": "0"}), answer(BATCH)
    )
    reads: list[int] = []

    def read() -> bytes:
        reads.append(1)
        return b'{"input": {}}\n'

    assert await batches.submit({"function": "hello.greet"}, "key-1", read) == BATCH
    assert len(reads) == 3
    assert {(request.headers["idempotency-key"], request.body) for request in platform.requests} == {
        ("key-1", b'{"input": {}}\n')
    }
    assert parse_qs(platform.requests[0].query) == {"function": ["hello.greet"]}


async def test_each_request_has_its_route(platform: ScriptedPlatform, batches: BatchesClient) -> None:
    """A batch is read, cancelled and resumed under its own path."""
    platform.will("GET", "/v1/batches", answer({"batches": [BATCH]}))
    platform.will("GET", "/v1/batches/batch_1", answer(BATCH))
    platform.will("POST", "/v1/batches/batch_1/cancel", answer(BATCH | {"state": "cancelling"}))
    platform.will("POST", "/v1/batches/batch_1/resume", answer(BATCH))
    assert await batches.list_batches() == [BATCH]
    assert await batches.get("batch_1") == BATCH
    assert (await batches.cancel("batch_1"))["state"] == "cancelling"
    assert await batches.resume("batch_1") == BATCH


async def test_results_come_in_pieces_of_the_given_states(platform: ScriptedPlatform, batches: BatchesClient) -> None:
    """No state means all of them."""
    platform.will("GET", "/v1/batches/batch_1/results", Answer(pieces=[b'{"index":0}\n', b'{"index":1}\n']))
    for states in ("failed,expired", ""):
        read = [piece async for piece in batches.read_results("batch_1", states)]
        assert b"".join(read) == b'{"index":0}\n{"index":1}\n'
    assert [parse_qs(request.query) for request in platform.requests] == [{"state": ["failed,expired"]}, {}]


async def test_an_id_with_slashes_stays_one_part_of_the_path(
    platform: ScriptedPlatform, batches: BatchesClient
) -> None:
    """No other resource is reached."""
    platform.will("POST", "/v1/webhooks/wh_1/cancel", answer({}))
    with pytest.raises(NotFound):
        await batches.cancel("../webhooks/wh_1")
    assert not platform.asked("/v1/webhooks/wh_1/cancel")
