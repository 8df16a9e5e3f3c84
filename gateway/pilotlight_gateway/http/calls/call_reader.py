"""What a request to call a function asks for: its head and body, checked and packed."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from starlette.types import Scope

from pilotlight_core.model.api.call_api import CallRequest
from pilotlight_core.model.spec import MethodSpec, Mode, VersionRecord
from pilotlight_gateway.calls.call_port import PreparedCall
from pilotlight_gateway.calls.call_requests import (
    BodyFormat,
    pack_arguments,
    priority_of,
    read_call,
    seconds_to_wait,
)
from pilotlight_gateway.http.calls.call_limits import usage_of_call
from pilotlight_gateway.http.protocol.http_exchange import exchange_of
from pilotlight_gateway.schemas.schema_validators import Validators
from pilotlight_gateway.tenancy.registry_port import RegistryPort
from pilotlight_gateway.tenancy.scheduling_class import scheduling_class_of

THREAD_BYTES = 256 * 1024
"""Beyond it a body is read in a thread, so that other calls get their turns in between."""


class CallReader:
    """Makes a `PreparedCall` of a request. `clock`: monotonic seconds."""

    def __init__(self, registry: RegistryPort, validators: Validators, clock: Callable[[], float]) -> None:
        self._registry = registry
        self._validators = validators
        self._clock = clock

    async def prepare(
        self,
        scope: Scope,
        headers: dict[bytes, bytes],
        version: VersionRecord,
        body: bytes,
        kind: BodyFormat,
        answer: BodyFormat,
    ) -> tuple[CallRequest, PreparedCall]:
        """The request, and the call that it asks for.

        Raises:
            BadInput: `bad_request`, or naming the field.
        """
        if len(body) > THREAD_BYTES:
            request, method, packed = await asyncio.to_thread(self._read, version, body, kind)
        else:
            request, method, packed = self._read(version, body, kind)
        exchange, spec = exchange_of(scope), version.spec
        tenant = exchange.principal.tenant
        standing = scheduling_class_of(self._registry, tenant, f"{version.tenant}:{version.app}.{version.function}")
        patience = seconds_to_wait(request.deadline_ms, spec.timeout + spec.startup_timeout)
        call = PreparedCall(
            id=exchange.call_id,
            client_id=request.id,
            tenant=tenant,
            version=version,
            method=method,
            input=packed,
            priority=standing.lowered(priority_of(spec.priority, headers.get(b"pilotlight-priority", b""))),
            standing=standing,
            deadline=exchange.arrived_at + patience,
            arrived=exchange.arrived_at,
            stream=answer is BodyFormat.EVENTS or method.mode is not Mode.UNARY,
            traceparent=headers.get(b"traceparent", b"")[:64].decode("latin-1"),
            gateway_ms=(self._clock() - exchange.arrived_at) * 1000,
            tab=usage_of_call(exchange),
        )
        return request, call

    def _read(self, version: VersionRecord, body: bytes, kind: BodyFormat) -> tuple[CallRequest, MethodSpec, bytes]:
        asked = read_call(body, kind)
        method = version.spec.method(asked.request.method)
        self._validators.check_input(version.id, method, asked.arguments, asked.given)
        return asked.request, method, pack_arguments(asked.arguments)
