"""What is shown of models over HTTP, to the stock client where it has a method for it."""

from __future__ import annotations

from typing import Any

import numpy as np

from pilotlight_core.model.spec import Mode
from tests.builders.specs import method
from tests.gateway.served_models import ARRAY, FLOATS, model, served_models
from tests.gateway.world import World, function

DOUBLE = "shop.double"


async def test_the_stock_client_reads_servers_and_models(world: World) -> None:
    """Live, ready, metadata, configuration and statistics."""
    world.deploy(model(x=FLOATS, n={"type": "integer"}))

    def ask(client: Any) -> dict[str, Any]:
        return {
            "live": client.is_server_live(),
            "ready": client.is_server_ready(),
            "server": client.get_server_metadata(),
            "model_ready": client.is_model_ready(DOUBLE, "1"),
            "no_model": client.is_model_ready("shop.none"),
            "metadata": client.get_model_metadata(DOUBLE),
            "config": client.get_model_config(DOUBLE),
            "before": client.get_inference_statistics(),
            "statistics": client.get_inference_statistics(DOUBLE),
        }

    async with served_models(world) as served:
        found = await served.ask_http(ask)

    assert (found["live"], found["ready"], found["model_ready"], found["no_model"]) == (True, True, True, False)
    assert found["server"]["name"] == "pilotlight"
    assert "binary_tensor_data" in found["server"]["extensions"]
    assert found["metadata"] == {
        "name": DOUBLE, "versions": ["1"], "platform": "pilotlight",
        "inputs": [
            {"name": "x", "datatype": "FP32", "shape": [-1]}, {"name": "n", "datatype": "INT64", "shape": [1]}
        ],
        "outputs": [{"name": "output", "datatype": "FP32", "shape": [-1]}],
    }  # fmt: skip
    assert found["config"]["max_batch_size"] == 0
    assert found["config"]["input"][0] == {"name": "x", "data_type": "TYPE_FP32", "dims": [-1], "optional": False}
    assert found["before"] == {"model_stats": []}
    assert found["statistics"]["model_stats"][0]["inference_count"] == 0


async def test_what_was_called_is_counted(world: World) -> None:
    """Of the caller's tenant alone."""
    world.deploy(model(x=ARRAY))
    other = world.add_key("beta", "admin")

    def ask(client: Any) -> Any:
        import tritonclient.http as stock

        given = stock.InferInput("x", [1], "FP64")
        given.set_data_from_numpy(np.ones(1))
        client.infer(DOUBLE, [given])
        return client.get_inference_statistics()

    async with served_models(world) as served:
        ((mine),) = (await served.ask_http(ask))["model_stats"]
    async with world.client(other) as client:
        theirs = await client.get("/v2/models/stats")

    assert (mine["name"], mine["version"], mine["inference_count"]) == (DOUBLE, "1", 1)
    assert mine["inference_stats"]["success"]["ns"] > 0
    assert theirs.json() == {"model_stats": []}


async def test_a_generator_says_that_it_streams(world: World) -> None:
    """And is not called over HTTP, which has one answer."""
    world.deploy(function("tokens", method(attribute="tokens", mode=Mode.GENERATOR)))
    async with world.client() as client:
        config = await client.get("/v2/models/shop.tokens/config")
        refused = await client.post("/v2/models/shop.tokens/infer", json={"inputs": []})

    assert config.json()["model_transaction_policy"] == {"decoupled": True}
    assert refused.status_code == 422
    assert "ModelStreamInfer" in refused.json()["error"]


async def test_a_gateway_that_leaves_is_not_ready(world: World) -> None:
    """Its models neither."""
    world.deploy(model())
    world.calls.not_ready = "no home lease"
    async with world.client() as client:
        answers = [await client.get(path) for path in ("/v2/health/ready", f"/v2/models/{DOUBLE}/ready")]
        live = await client.get("/v2/health/live")
    assert [answer.status_code for answer in answers] == [503, 503]
    assert answers[0].json() == {"error": "Not ready: no home lease."}
    assert live.status_code == 200
