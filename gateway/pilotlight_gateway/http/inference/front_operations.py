"""The operations of the Open Inference Protocol, and of the fixed inference API."""

from __future__ import annotations

from typing import Any

from pilotlight_gateway.http.inference import fixed_inference as fixed
from pilotlight_gateway.http.inference import model_endpoints as models
from pilotlight_gateway.http.inference.fixed_inference import RequestServices
from pilotlight_gateway.http.inference.inference_requests import InferenceAnswer, InferenceRequest, InferenceStatus
from pilotlight_gateway.http.inference.model_endpoints import TensorModelServices
from pilotlight_gateway.http.protocol.api_operations import Operation
from pilotlight_gateway.http.protocol.error_dialects import Dialect
from pilotlight_gateway.tensors.infer_bodies import InferBody

OBJECT: dict[str, Any] = {"type": "object"}
UNKNOWN = ("bad_input", "unknown_function", "unknown_version", "overloaded")
INFER_ERRORS = (
    "bad_request", "bad_input", "too_large", "unsupported_media_type", "deadline_exceeded", "slow_body",
    "unknown_function", "unknown_version", "queue_full", "rate_limited", "budget_exhausted", "cancelled",
    "function_raised", "load_failed", "bad_output", "container_died", "preempted", "breaker_open", "no_capacity",
    "draining", "overloaded", "misconfigured", "execution_timeout",
)  # fmt: skip
READS = ("invoke", "read", "deploy")


def _infer(path: str, name: str) -> Operation[None]:
    return Operation(
        method="POST", path=path, name=name, endpoint=None, scopes=("invoke",), dialect=Dialect.V2, rated=False,
        about="Call a function with named tensors: JSON, or JSON and behind it the bytes of tensors.",
        request=InferBody, answer=OBJECT, errors=INFER_ERRORS,
        answer_media=("application/json", "application/octet-stream"),
    )  # fmt: skip


INFER = (
    _infer("/v2/models/{model}/infer", "inferModel"),
    _infer("/v2/models/{model}/versions/{version}/infer", "inferModelVersion"),
)


def _shown(path: str, name: str, about: str, endpoint: Any, *, of_model: bool = True) -> Operation[TensorModelServices]:
    return Operation(
        method="GET", path=path, name=name, about=about, endpoint=endpoint, answer=OBJECT, dialect=Dialect.V2,
        scopes=READS if of_model else (), errors=UNKNOWN if of_model else (),
    )  # fmt: skip


def _of_model(path: str, name: str, about: str, endpoint: Any) -> tuple[Operation[TensorModelServices], ...]:
    """Of the deployed version, and of a named one."""
    return (
        _shown(f"/v2/models/{{model}}{path}", name, about, endpoint),
        _shown(f"/v2/models/{{model}}/versions/{{version}}{path}", f"{name}Version", about, endpoint),
    )


TENSOR_MODELS: tuple[Operation[TensorModelServices], ...] = (
    _shown("/v2", "getServerMetadata", "What this server is.", models.show_server, of_model=False),
    _shown("/v2/health/live", "getServerLive", "The process is alive.", models.show_live, of_model=False),
    _shown("/v2/health/ready", "getServerReady", "Calls are taken.", models.show_ready, of_model=False),
    _shown("/v2/models/stats", "listModelStatistics", "What was called over this gateway.", models.show_statistics),
    *_of_model("", "getModelMetadata", "What a function takes and answers, as tensors.", models.show_model),
    *_of_model("/ready", "getModelReady", "A function is deployed, and calls are taken.", models.show_model_ready),
    *_of_model("/config", "getModelConfig", "The same, as Triton's clients read it.", models.show_config),
    *_of_model("/stats", "getModelStatistics", "How often it was called over this gateway.", models.show_statistics),
)

FIXED: Operation[None] = Operation(
    method="POST", path="/v1/inference", name="runInference", endpoint=None, scopes=("invoke",), rated=False,
    about="Call a function by the fixed inference API.", request=InferenceRequest, answer=InferenceAnswer,
    errors=INFER_ERRORS,
)  # fmt: skip
REQUESTS: tuple[Operation[RequestServices], ...] = (
    Operation(
        method="GET", path="/internal/health", name="getInferenceHealth", about="Calls are taken.",
        endpoint=fixed.show_front_health, answer=OBJECT, errors=("draining",),
    ),
    Operation(
        method="GET", path="/internal/requests/{id}", name="getInferenceRequest", endpoint=fixed.show_request,
        about="How a request of the caller's tenant is, for as long as its gateway remembers it.",
        scopes=("invoke", "read"), answer=InferenceStatus, errors=("unknown_call", "call_lost", "overloaded"),
    ),
)  # fmt: skip
