"""What is shown of models, in the words of the Open Inference Protocol and of Triton's extensions to it."""

from __future__ import annotations

from typing import Any

from pilotlight_gateway.http.inference.inference_counts import CountedModel, ModelCounts
from pilotlight_gateway.http.inference.model_lookup import FoundModel
from pilotlight_gateway.tensors.datatypes import BYTES
from pilotlight_gateway.tensors.value_kinds import TensorMetadata, input_metadata, output_metadata

SERVER, PLATFORM = "pilotlight", "pilotlight"
EXTENSIONS = ("binary_tensor_data", "parameters", "model_configuration", "statistics")

View = dict[str, Any]


def server_view(version: str) -> View:
    """The metadata of the server."""
    return {"name": SERVER, "version": version, "extensions": list(EXTENSIONS)}


def model_view(model: FoundModel, versions: list[str]) -> View:
    """The metadata of a model."""
    return {
        "name": model.name,
        "versions": versions,
        "platform": PLATFORM,
        "inputs": [_tensor_view(one) for one in input_metadata(model.method)],
        "outputs": [_tensor_view(one) for one in output_metadata(model.method)],
    }


def config_view(model: FoundModel) -> View:
    """The configuration of a model, as Triton's clients read it. Batches are made by the platform: nobody sends one."""
    return {
        "name": model.name,
        "platform": PLATFORM,
        "backend": PLATFORM,
        "max_batch_size": 0,
        "input": [_config_tensor(one) | {"optional": one.optional} for one in input_metadata(model.method)],
        "output": [_config_tensor(one) for one in output_metadata(model.method)],
        "model_transaction_policy": {"decoupled": model.streams},
    }


def statistics_view(model: CountedModel, counts: ModelCounts) -> View:
    """What was counted of a model, as Triton's clients read it."""
    done = counts.succeeded
    return {
        "name": model.name,
        "version": model.version,
        "last_inference": counts.last_ms,
        "inference_count": done,
        "execution_count": done,
        "inference_stats": {
            "success": _duration(done, counts.succeeded_ns),
            "fail": _duration(counts.failed, counts.failed_ns),
            "queue": _duration(done, counts.queue_ns),
            "compute_input": _duration(done, counts.input_ns),
            "compute_infer": _duration(done, counts.compute_ns),
            "compute_output": _duration(done, counts.output_ns),
        },
        "batch_stats": [],
    }


def _tensor_view(one: TensorMetadata) -> View:
    return {"name": one.name, "datatype": one.datatype, "shape": list(one.shape)}


def _config_tensor(one: TensorMetadata) -> View:
    kind = "TYPE_STRING" if one.datatype == BYTES else f"TYPE_{one.datatype}"
    return {"name": one.name, "data_type": kind, "dims": list(one.shape)}


def _duration(count: int, ns: int) -> View:
    return {"count": count, "ns": ns}
