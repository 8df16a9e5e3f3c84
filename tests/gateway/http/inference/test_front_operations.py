"""The operations of the protocol."""

from __future__ import annotations

from typing import Any

from pilotlight_gateway.http.inference.front_operations import INFER, TENSOR_MODELS
from pilotlight_gateway.http.protocol.api_operations import Operation
from pilotlight_gateway.http.protocol.error_dialects import Dialect


def test_all_speak_the_dialect_of_the_protocol() -> None:
    """And each path and name is there once."""
    operations: tuple[Operation[Any], ...] = (*INFER, *TENSOR_MODELS)
    assert {operation.dialect for operation in operations} == {Dialect.V2}
    assert len({(operation.method, operation.path) for operation in operations}) == len(operations)
    assert len({operation.name for operation in operations}) == len(operations)


def test_what_is_about_a_tenants_function_needs_a_key() -> None:
    """What is not tells nothing of any."""
    open_to_all = {operation.path for operation in TENSOR_MODELS if not operation.scopes}
    assert open_to_all == {"/v2", "/v2/health/live", "/v2/health/ready"}
    assert all(operation.scopes == ("invoke",) for operation in INFER)
