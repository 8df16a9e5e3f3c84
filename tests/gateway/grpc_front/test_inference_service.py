"""gRPC with the stock client, over real connections."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from pilotlight_core.model import values
from pilotlight_core.model.errors import DeadlineExceeded, FunctionRaised
from pilotlight_core.model.spec import Mode
from pilotlight_gateway.calls.call_port import ChunkEvent
from pilotlight_gateway.grpc_front import inference_service
from tests.builders.specs import method
from tests.gateway.served_models import FLOATS, model, served_models
from tests.gateway.world import World, function, packed

DOUBLE = "shop.double"


def ask_for(array: np.ndarray[Any, Any], datatype: str, **options: Any) -> Any:
    """Ask for the tensor `x` back, which the fake answers."""

    def ask(client: Any) -> Any:
        return client.infer(DOUBLE, [stock_input(array, datatype)], **options)

    return ask


def stock_input(array: np.ndarray[Any, Any], datatype: str) -> Any:
    import tritonclient.grpc as stock

    given = stock.InferInput("x", list(array.shape), datatype)
    given.set_data_from_numpy(array)
    return given


@pytest.mark.parametrize("datatype", ["BOOL", "INT8", "UINT16", "INT64", "FP16", "FP32", "FP64"])
async def test_the_stock_client_gets_its_numbers_back(world: World, datatype: str) -> None:
    """Of every width."""
    from tritonclient.utils import triton_to_np_dtype

    world.deploy(model())
    array = np.array([[0, 1, 2], [3, 4, 5]]).astype(triton_to_np_dtype(datatype))
    async with served_models(world) as served:
        result = await served.ask_grpc(ask_for(array, datatype, request_id="mine"))

    assert (result.get_response().id, result.get_response().model_version) == ("mine", "1")
    assert result.as_numpy("x").dtype == array.dtype
    assert np.array_equal(result.as_numpy("x"), array)


async def test_what_a_server_and_a_model_are(world: World) -> None:
    """Live, ready, metadata, configuration and statistics."""
    world.deploy(model(x=FLOATS, output=FLOATS))
    world.calls.output = values.encode(np.ones(2, np.float32))
    async with served_models(world) as served:
        assert await served.ask_grpc(lambda client: client.is_server_live(), with_key=False)
        assert await served.ask_grpc(lambda client: client.is_server_ready(), with_key=False)
        server = await served.ask_grpc(lambda client: client.get_server_metadata(as_json=True))
        assert await served.ask_grpc(lambda client: client.is_model_ready(DOUBLE))
        metadata = await served.ask_grpc(lambda client: client.get_model_metadata(DOUBLE, as_json=True))
        config = await served.ask_grpc(lambda client: client.get_model_config(DOUBLE, as_json=True))
        await served.ask_grpc(ask_for(np.ones(2, np.float32), "FP32"))
        statistics = await served.ask_grpc(lambda client: client.get_inference_statistics(DOUBLE, as_json=True))

    assert server["name"] == "pilotlight"
    assert metadata["inputs"] == [{"name": "x", "datatype": "FP32", "shape": ["-1"]}]
    assert metadata["outputs"] == [{"name": "output", "datatype": "FP32", "shape": ["-1"]}]
    assert config["config"]["input"] == [{"name": "x", "data_type": "TYPE_FP32", "dims": ["-1"]}]
    assert statistics["model_stats"][0]["inference_count"] == "1"


async def test_errors_are_statuses(world: World) -> None:
    """With the text, and the code and the request's id behind it."""
    from tritonclient.utils import InferenceServerException

    world.deploy(model())
    array = np.ones(2, np.float32)
    async with served_models(world) as served:
        with pytest.raises(InferenceServerException) as unknown:
            await served.ask_grpc(lambda client: client.get_model_metadata("shop.none"))
        with pytest.raises(InferenceServerException) as nobody:
            await served.ask_grpc(ask_for(array, "FP32"), with_key=False)
        world.calls.error = FunctionRaised("It broke: ü.")
        with pytest.raises(InferenceServerException) as broke:
            await served.ask_grpc(ask_for(array, "FP32"))
        with pytest.raises(InferenceServerException) as refused:
            await served.ask_grpc(lambda client: client.get_model_repository_index())

    assert unknown.value.status() == "StatusCode.NOT_FOUND"
    assert nobody.value.status() == "StatusCode.UNAUTHENTICATED"
    assert (broke.value.status(), broke.value.message()) == ("StatusCode.INTERNAL", "It broke: ü.")
    assert refused.value.status() == "StatusCode.UNIMPLEMENTED"


async def test_each_chunk_of_a_generator_is_a_response(world: World) -> None:
    """Over the stock client's stream, with the answer that says it was the last."""
    world.deploy(function("double", method(attribute="double", mode=Mode.GENERATOR)))
    one, two = packed([1, 2], [3, 4])
    world.calls.events = [ChunkEvent(seq=1, data=one), ChunkEvent(seq=2, data=two)]

    def ask(client: Any) -> list[tuple[Any, Any]]:
        import queue

        found: queue.Queue[tuple[Any, Any]] = queue.Queue()
        client.start_stream(callback=lambda result, error: found.put((result, error)))
        client.async_stream_infer(
            DOUBLE, [stock_input(np.ones(1), "FP64")], request_id="a", enable_empty_final_response=True
        )
        answers = [found.get(timeout=20) for _ in range(3)]
        client.async_stream_infer("shop.none", [stock_input(np.ones(1), "FP64")], request_id="b")
        answers.append(found.get(timeout=20))
        client.stop_stream()
        return answers

    async with served_models(world) as served:
        answers = await served.ask_grpc(ask)

    chunks = [result.as_numpy("output").tolist() for result, _ in answers[:2]]
    ends = [result.get_response().parameters["triton_final_response"].bool_param for result, _ in answers[:3]]
    assert (chunks, ends) == ([[1, 2], [3, 4]], [False, False, True])
    assert {result.get_response().id for result, _ in answers[:3]} == {"a"}
    assert "no function shop.none" in str(answers[3][1])


async def test_without_a_key_nothing_is_read(world: World) -> None:
    """A server is live whatever else is sent; a model's request that is too long, or is none, is refused."""
    import grpc

    def send(method: str, data: bytes, *, with_key: bool = False) -> Any:
        def ask(_client: Any) -> Any:
            with grpc.insecure_channel(served.grpc) as channel:
                call = channel.unary_unary(f"/inference.GRPCInferenceService/{method}")
                metadata = (("authorization", f"Bearer {world.key}"),) if with_key else ()
                try:
                    return call(data, metadata=metadata, timeout=20)
                except grpc.RpcError as error:
                    return error.code().name

        return ask

    world.deploy(model())
    async with served_models(world) as served:
        live = await served.ask_grpc(send("ServerLive", b"\xff" * 2**20))
        nobody = await served.ask_grpc(send("ModelInfer", b"\xff" * 2**20))
        long = await served.ask_grpc(send("ModelMetadata", b"\xff" * 2**20, with_key=True))
        none = await served.ask_grpc(send("ModelMetadata", b"\xff\xff", with_key=True))
        refused = await served.ask_grpc(send("RepositoryIndex", b"\xff" * 2**20))
    assert live == b"\x08\x01"
    assert (nobody, long, none, refused) == ("UNAUTHENTICATED", "INVALID_ARGUMENT", "INVALID_ARGUMENT", "UNIMPLEMENTED")


async def test_requests_that_do_not_arrive_hold_up_their_own_tenant_alone(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They take turns, and end; what another tenant asks meanwhile is answered."""
    import threading

    import grpc

    world.deploy(model())
    other, over = world.add_key("rival", "invoke", "read"), threading.Event()

    def silent() -> Iterator[bytes]:
        over.wait(60)
        yield from ()

    def ask(_client: Any) -> Any:
        path = "/inference.GRPCInferenceService"
        with grpc.insecure_channel(served.grpc) as channel:
            opened = [
                channel.stream_stream(f"{path}/ModelInfer")(silent(), metadata=bearer(world.key)) for _ in range(3)
            ]
            asked = channel.unary_unary(f"{path}/ModelMetadata")
            with pytest.raises(grpc.RpcError) as answered:
                asked(b"\x0a\x04none", metadata=bearer(other), timeout=20)
            codes = [one.code().name for one in opened]
            over.set()
            return answered.value.code().name, codes

    monkeypatch.setattr(inference_service, "ARRIVING", 1)
    monkeypatch.setattr(inference_service, "FIRST_MESSAGE_S", 0.5)
    async with served_models(world) as served:
        assert await served.ask_grpc(ask) == ("NOT_FOUND", ["DEADLINE_EXCEEDED"] * 3)


def bearer(key: object) -> tuple[tuple[str, str], ...]:
    return (("authorization", f"Bearer {key}"),)


async def test_a_client_that_reads_no_answer_counts_as_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its request would stay open for ever, and the server takes so many only."""
    from pilotlight_gateway.grpc_front.infer_messages import message_class

    class Unread:
        async def write(self, _data: bytes) -> None:
            await asyncio.Event().wait()

    monkeypatch.setattr(inference_service, "STUCK_S", 0.01)
    with pytest.raises(DeadlineExceeded, match="read nothing"):
        await inference_service.send_only_answer(Unread(), message_class("ServerLiveResponse")(live=True))
