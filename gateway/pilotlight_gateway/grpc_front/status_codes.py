"""The gRPC status of each error, by the table of errors' HTTP statuses."""

from __future__ import annotations

import grpc

from pilotlight_core.model.errors import PilotlightError

STATUS: dict[int, grpc.StatusCode] = {
    400: grpc.StatusCode.INVALID_ARGUMENT,
    401: grpc.StatusCode.UNAUTHENTICATED,
    402: grpc.StatusCode.FAILED_PRECONDITION,  # a budget is used up: coming again does not help
    403: grpc.StatusCode.PERMISSION_DENIED,
    404: grpc.StatusCode.NOT_FOUND,
    405: grpc.StatusCode.UNIMPLEMENTED,
    406: grpc.StatusCode.INVALID_ARGUMENT,
    408: grpc.StatusCode.DEADLINE_EXCEEDED,
    409: grpc.StatusCode.ABORTED,
    410: grpc.StatusCode.NOT_FOUND,
    413: grpc.StatusCode.INVALID_ARGUMENT,
    415: grpc.StatusCode.INVALID_ARGUMENT,
    422: grpc.StatusCode.INVALID_ARGUMENT,
    429: grpc.StatusCode.RESOURCE_EXHAUSTED,
    499: grpc.StatusCode.CANCELLED,
    500: grpc.StatusCode.INTERNAL,
    501: grpc.StatusCode.UNIMPLEMENTED,
    502: grpc.StatusCode.INTERNAL,  # a container died: what it did may not be done twice
    503: grpc.StatusCode.UNAVAILABLE,
    504: grpc.StatusCode.DEADLINE_EXCEEDED,
}
NO_RETRY = {"preempted": grpc.StatusCode.ABORTED}
"""Stock clients send again by themselves what is UNAVAILABLE."""


def status_of(error: PilotlightError) -> grpc.StatusCode:
    """The status that tells of an error."""
    return NO_RETRY.get(error.wire_code) or STATUS.get(error.meaning.status, grpc.StatusCode.UNKNOWN)
