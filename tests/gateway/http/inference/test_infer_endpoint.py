"""`POST /v2/models/{model}/infer`, with the stock client over real connections."""

from __future__ import annotations

from typing import Any

import httpx
import numpy as np
import pytest

from tests.gateway.served_models import FLOATS, model, served_models
from tests.gateway.world import World

DOUBLE = "shop.double"
BIG = np.arange(400_000, dtype=np.float32)


def ask_for(array: np.ndarray[Any, Any], datatype: str, **options: Any) -> Any:
    """Ask for the tensor `x` back, which the fake answers."""

    def ask(client: Any) -> Any:
        import tritonclient.http as stock

        binary = options.pop("binary", True)
        given = stock.InferInput("x", list(array.shape), datatype)
        given.set_data_from_numpy(array, binary_data=binary)
        outputs = [stock.InferRequestedOutput("x", binary_data=False)] if not binary else None
        return client.infer(DOUBLE, [given], outputs=outputs, **options)

    return ask


@pytest.mark.parametrize("binary", [True, False])
@pytest.mark.parametrize("datatype", ["BOOL", "UINT8", "INT8", "INT16", "INT32", "INT64", "UINT64", "FP32", "FP64"])
async def test_the_stock_client_gets_its_numbers_back(world: World, datatype: str, binary: bool) -> None:
    """As bytes behind the JSON, and as JSON."""
    from tritonclient.utils import triton_to_np_dtype

    world.deploy(model())
    array = np.array([[0, 1, 2], [3, 4, 5]]).astype(triton_to_np_dtype(datatype))
    async with served_models(world) as served:
        result = await served.ask_http(ask_for(array, datatype, binary=binary, request_id="mine"))

    assert result.get_response()["id"] == "mine"
    assert result.get_response()["model_version"] == "1"
    found = result.as_numpy("x")
    assert found.dtype == array.dtype
    assert np.array_equal(found, array)


async def test_large_tensors_and_compressed_ones_come_back_whole(world: World) -> None:
    """More than the event loop reads at once, in either coding."""
    world.deploy(model())
    async with served_models(world) as served:
        for options in (
            {},
            {"request_compression_algorithm": "gzip", "response_compression_algorithm": "deflate"},
            {"request_compression_algorithm": "deflate", "response_compression_algorithm": "gzip"},
        ):
            result = await served.ask_http(ask_for(BIG, "FP32", **options))
            assert np.array_equal(result.as_numpy("x"), BIG)


async def test_texts_are_strings_and_bytes(world: World) -> None:
    """A parameter that is a string takes one element, a list takes any number."""
    world.deploy(model(x={"type": "array", "items": {"type": "string"}}))
    array = np.array([b"ab", "ü".encode()], dtype=np.object_)
    async with served_models(world) as served:
        result = await served.ask_http(ask_for(array, "BYTES"))
        as_json = await served.ask_http(ask_for(array, "BYTES", binary=False))

    assert list(result.as_numpy("x")) == list(array)
    assert list(as_json.as_numpy("x")) == ["ab", "ü"] or list(as_json.as_numpy("x")) == list(array)


async def test_what_is_wrong_is_said_as_the_protocol_has_it(world: World) -> None:
    """`{"error": "text"}`, which the stock client raises."""
    from tritonclient.utils import InferenceServerException

    world.deploy(model(x=FLOATS))
    async with served_models(world) as served:
        with pytest.raises(InferenceServerException, match=r"inputs.x: it takes FP32, and INT64 came"):
            await served.ask_http(ask_for(np.arange(3), "INT64"))
        with pytest.raises(InferenceServerException, match="no version v7"):
            await served.ask_http(ask_for(np.arange(3), "INT64", model_version="7"))


async def test_priority_and_timeout_reach_the_call(world: World) -> None:
    """Class 2 is standard, and the timeout counts microseconds."""
    world.deploy(model())
    async with served_models(world) as served:
        await served.ask_http(ask_for(BIG[:3], "FP32", priority=3, timeout=2_000_000))

    (call,) = world.calls.seen
    assert call.priority == "batch"
    assert call.deadline_at - call.arrived_at == pytest.approx(2.0)


async def test_a_key_is_needed(world: World) -> None:
    """And one that may call."""
    world.deploy(model())
    reader = world.add_key("acme", "read")
    body = {"inputs": [{"name": "x", "shape": [1], "datatype": "FP32", "data": [1.0]}]}
    async with served_models(world) as served, httpx.AsyncClient(base_url=f"http://{served.http}") as client:
        nobody = await client.post(f"/v2/models/{DOUBLE}/infer", json=body)
        headers = {"authorization": f"Bearer {reader}"}
        forbidden = await client.post(f"/v2/models/{DOUBLE}/infer", json=body, headers=headers)

    assert (nobody.status_code, forbidden.status_code) == (401, 403)
    assert nobody.json() == {"error": "There is no Authorization header."}
    assert world.calls.seen == []
